"""Finds checks (tests, builds, lints) with their results, and calls that changed files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from wakelog.insight.acts import checks_of, files_of, is_test_script
from wakelog.insight.background import still_runs, with_later_output
from wakelog.insight.blocks import Did, Finding, TextSpan, TurnBlocks
from wakelog.model.call_acts import SHELL_TOOLS
from wakelog.model.check_programs import check_of, runs_test_script
from wakelog.model.command_lines import ShellCommand, command_line, shell_commands

_FAILED: Final = re.compile(
    r"^(?:FAIL|FAILED|--- FAIL|ERROR|FAILURES!?|FAILURE:)(?=\W|$)|\b[1-9]\d* (?:tests? )?(?:failed|failures?"
    r"|failing|errored)\b"
    r"|(?:failures|errors)=[1-9]|(?:Failures|Errors|[Ff]ailed): +[1-9]|error\[E\d+\]|\berror (?:TS|CS|MSB|FS|AVLN)\d+"
    r"|npm ERR!|npm error\b|ELIFECYCLE"
    r"|BUILD FAIL|[Bb]uild (?:failed|FAILED)|Compilation (?:failed|error)|Failed to compile|could not compile"
    r"|Type error:"
    r"|^make(?:\[\d+\])?: \*\*\*|\b[1-9]\d* (?:errors?|problems?|issues)\b(?! fixed)|^[Ee]rror: |^Exit code [1-9]"
    r"|(?:\b|_)(?i:exit(?:ed)?(?: with)?[ _]?(?:code|status)?|rc|returncode)[ \t]{0,3}[:= >]{1,2}[ \t]?[1-9]\d*\b"
    r"|^not ok \d|^# fail [1-9]|^test result: FAILED"
    r"|✖ [1-9]|^\s+\d+:\d+\s+error\s|^---- \S+ stdout ----|✘ \[ERROR\]|^\[ERROR\]"
    r"|^Traceback \(most recent call last\)|^(?:Syntax|Type|Reference|Module\w*|Import)Error\b|^panicked at|\bpanic: "
    r"|^\S+:\d+(?::\d+)?: (?:fatal )?error: |^error during build|^ERROR in |\*\* (?:BUILD|TEST) FAILED \*\*"
    r"|^> Task \S+ FAILED|^Process completed with exit code [1-9]",
    re.MULTILINE,
)
_PASSED: Final = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing)\b(?!.*\b[1-9]\d* fail)|^OK\b|^ok\s"
    r"|\b0 (?:issues|errors|problems|failures)\b|^100% tests passed|\*\* (?:BUILD|TEST) SUCCEEDED \*\*"
    r"|[Nn]o (?:issues|problems) found|test result: ok|All checks passed|Success: no issues|BUILD SUCCESS"
    r"|Build succeeded"
    r"|[Cc]ompiled successfully|\bbuilt in \d|^PASS\b|^# fail 0\b|All tests passed|Successfully ran target"
    r"|(?:\b|_)(?i:exit(?:ed)?(?: with)?[ _]?(?:code|status)?|rc|returncode)[:= >]+0\b|Passed! +- Failed: +0"
    r"|^TOTAL: \d+ SUCCESS|\b[Pp]assed: +[1-9]",
    re.MULTILINE,
)
_MIXED: Final = re.compile(r"\b[1-9]\d* fail|^FAIL|\b[Ff]ailed: +[1-9]", re.MULTILINE)
"""A failure beside which others have passed."""
_PLACE: Final = re.compile(
    r"^(?:\./)?[\w./\\-]+\.\w{1,5}[:(]\d+(?:[:,]\d+)?\)?:? (?!.*(?i:warning|note:))\S", re.MULTILINE
)
"""A place in a file, as compilers and linters begin a complaint."""
_STOPPED: Final = re.compile(
    r"Sibling tool call errored|The user doesn't want to proceed with this tool use|^The user denied"
    r"|^\W*(?:\[Request )?[Ii]nterrupted (?:by (?:the )?user\b|[·•-] )|^\W*(?:Interrupted|Cancell?ed|Aborted)\W*$"
)
_SHOWS_CODE: Final = re.compile(r"\$\?|PIPESTATUS|ERRORLEVEL|LASTEXITCODE", re.IGNORECASE)
_CODE_ZERO: Final = re.compile(r"\bexit(?:ed)?(?: with)?[ _]?(?:code|status)[:= ]+0\b", re.IGNORECASE)
_ONLY_CODE: Final = re.compile(r"(?:[\w ]*\bexit(?:ed)?(?: with)?[ _]?(?:code|status)[:= ]+1\b)?\W*", re.IGNORECASE)
"""Nothing, or only that the exit code is 1: a filter found no line."""
MUTE_MIN: Final = 3
"""If so many calls and all others of a turn have no output, an export left the outputs out."""
_CUT: Final = re.compile(r"^\s*(?:…|\.\.\.) \+\d+ lines\b", re.MULTILINE)
"""Where an export cut an output."""
_FILTERS: Final = frozenset({"grep", "egrep", "rg", "findstr", "Select-String"})
_TALKERS: Final = frozenset({"npm", "yarn", "pnpm", "bun", "vite", "next", "gradle", "gradlew", "mvn", "dotnet"})
"""Programs that say at least what they run; an export may leave that out."""
_COUNT: Final = re.compile(r"\s*(\d+)\s*")
_CLEAN: Final = re.compile(
    r"\bno (?:\w+ ){0,3}(?:errors?|problems?|issues?|diagnostics|lints?)\b|^\s*\[\s*\]", re.IGNORECASE
)
_COMPLAINS: Final = re.compile(
    r"\b[1-9]\d* (?:\w+ )?(?:errors?|problems?|issues|diagnostics)\b|<errors?\b"
    r"|\bseverity\W{1,4}(?:error\b|[18]\b)|\berror\b(?=\W*(?:\w+ ){0,2}(?:line|at|\d|\[|TS))|^\W*error\b\W",
    re.IGNORECASE | re.MULTILINE,
)
"""What the diagnostics of an editor say, if there are errors."""
_NOT_RUN: Final = re.compile(
    r"command not found|No module named (?:pytest|mypy|ruff|flake8|tox|nose)\b|^missing script:|Missing script:"
    r"|unknown command|no such (?:command|task)|executable file not found|not recognized as (?:an internal|the name of)"
    r"|could not determine executable to run|This is not the \w+ command you are looking for|No rule to make target"
    r"|: not found$",
    re.IGNORECASE | re.MULTILINE,
)


def find_checks(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that ran a check, as `test pass`, `test+lint fail` or `build unknown`."""
    calls = [block for block in turn.blocks if isinstance(block, Did)]
    checks = [
        (n, call, is_test_script(call)) for n, call in enumerate(calls) if checks_of(call) or is_test_script(call)
    ]
    # Where a turn runs tests with a runner, a script that is a test only by its name tries something.
    is_mute = len(calls) >= MUTE_MIN and not any(call.output.strip() for call in calls)
    has_runner = any(not is_script and "test" in checks_of(call) and _result(call) for _, call, is_script in checks)
    for n, call, is_script in checks:
        ended, last = with_later_output(call, calls[n + 1 :])
        kinds = checks_of(ended) or (["test"] if is_script and not has_runner else [])
        if not kinds:
            continue
        if result := _result(ended):
            result = "unknown" if is_mute and result == "pass" else result
            seqs = (call.seq,) if last is call else (call.seq, last.seq)
            yield Finding("check", TextSpan(call.seq, 0, 0, 0), calls=seqs, detail=f"{'+'.join(kinds)} {result}")


def _result(call: Did) -> str:
    """`pass`, `fail`, or `unknown` if neither the exit code nor the output says it; empty if the check did not run."""
    if call.outcome in ("denied", "abandoned") or _STOPPED.search(call.output):
        return ""
    commands = shell_commands(command_line(call.input)) if SHELL_TOOLS.search(call.tool) else []
    checks = [(kind, c.is_piped) for c in commands if (kind := check_of(c))]
    checks = checks or [("test", c.is_piped) for c in commands if runs_test_script(c)]
    is_lost = all(lost for _, lost in checks)
    # The exit code that a harness tells is the last command's, not that of a check whose own is lost.
    is_others = bool(checks) and is_lost and not _SHOWS_CODE.search(command_line(call.input))
    output = _CODE_ZERO.sub(" ", call.output) if is_others else call.output
    has_passed, has_failed = bool(_PASSED.search(output)), bool(_FAILED.search(output))
    if _NOT_RUN.search(call.output) and not has_passed:
        return ""
    if is_others and call.outcome == "failed" and _ONLY_CODE.fullmatch(output) and commands[-1].program in _FILTERS:
        return "unknown"
    if call.outcome in ("failed", "timed_out"):
        return "fail"
    if not SHELL_TOOLS.search(call.tool):
        return _diagnosed(call.output)
    if has_failed:
        # The word may be in a test's name or in a summary like "0 failed". A clear pass outweighs such a line, but not
        # the failure of another check.
        is_one = len({kind for kind, _ in checks}) == 1
        return "pass" if has_passed and is_one and not _MIXED.search(call.output) else "fail"
    if has_passed:
        return "pass"
    if still_runs(call.output) or call.outcome == "uncertain" or _is_in_background(call):
        return "unknown"
    if (count := _COUNT.fullmatch(call.output)) and is_lost and not any(kind == "test" for kind, _ in checks):
        return "pass" if count[1] == "0" else "fail"  # how many lines a linter had to say
    # Lines that a filter picked out of a test run, or that an export left of an output, do not tell how it ended.
    is_filtered = any(kind == "test" for kind, _ in checks) and any(c.program in _FILTERS for c in commands)
    if is_lost and (is_filtered or _CUT.search(call.output)):
        return "unknown"
    # Where the exit code is lost, a linter or compiler that complains names a place, and one that says nothing found
    # nothing.
    if is_lost and _PLACE.search(call.output):
        return "fail"
    # A test run says something, and so does a package manager. A script with tests that says nothing may have run none.
    is_silent = not call.output.strip()
    is_test = any(kind == "test" for kind, _ in checks) and (is_lost or is_test_script(call))
    return "unknown" if is_silent and (is_test or any(map(_talks, commands))) else "pass"


def _talks(command: ShellCommand) -> bool:
    is_told_not_to = bool(command.outputs) or any(word in ("-s", "--silent", "-q", "--quiet") for word in command.words)
    return command.program in _TALKERS and not is_told_not_to


def _diagnosed(output: str) -> str:
    """The result of an editor's tool, which returns a text or a list whether there are errors or not."""
    if _CLEAN.search(output):
        return "pass"
    if _COMPLAINS.search(output) or _FAILED.search(output):
        return "fail"
    return "pass" if output.strip() else "unknown"


def _is_in_background(call: Did) -> bool:
    given = call.input if isinstance(call.input, dict) else {}
    return any(given.get(name) is True for name in ("run_in_background", "is_background", "isBackground", "background"))


def has_failed_check(call: Did) -> bool:
    """Whether a call ran a check that failed."""
    return _result(call) == "fail"


def find_files(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that changed files."""
    for call in turn.blocks:
        if isinstance(call, Did) and files_of(call):
            yield Finding("file", TextSpan(call.seq, 0, 0, 0), calls=(call.seq,))
