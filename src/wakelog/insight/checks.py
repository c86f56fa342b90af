"""Finds checks (tests, builds, lints) with their results, and calls that changed files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from wakelog.insight.acts import act_of, files_of
from wakelog.insight.blocks import Did, Finding, TextSpan, TurnBlocks
from wakelog.model.check_programs import check_of, checks_in
from wakelog.model.command_lines import ShellCommand, command_line, shell_commands

_FAILED: Final = re.compile(
    r"^(?:FAIL|FAILED|--- FAIL|ERROR|FAILURES!?)\b|\b[1-9]\d* (?:failed|failures?|failing|errored)\b"
    r"|(?:failures|errors)=[1-9]|(?:Failures|Errors): [1-9]|error\[E\d+\]|\berror TS\d+|npm ERR!|ELIFECYCLE"
    r"|BUILD FAIL|[Bb]uild failed|Compilation (?:failed|error)|Failed to compile|could not compile|Type error:"
    r"|^make(?:\[\d+\])?: \*\*\*|\b[1-9]\d* (?:errors?|problems?|issues)\b(?! fixed)|^error: |^Exit code [1-9]"
    r"|\b(?:exit(?:ed)?(?: with)?[ _]?(?:code|status)?|rc|returncode)[ \t]{0,3}[:= >]{1,2}[ \t]?[1-9]\d*\b|^not ok \d"
    r"|^# fail [1-9]|^test result: FAILED|✖ [1-9]|^\s+\d+:\d+\s+error\s|^---- \S+ stdout ----|✘ \[ERROR\]|^\[ERROR\]"
    r"|^Traceback \(most recent call last\)|^(?:Syntax|Type|Reference|Module\w*|Import)Error\b|^panicked at|\bpanic: ",
    re.MULTILINE,
)
_PASSED: Final = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b(?!.*\b[1-9]\d* fail)|^OK\b|^ok\s|\b0 (?:issues|errors|problems|failures)\b"
    r"|no (?:issues|problems) found|test result: ok|All checks passed|Success: no issues|BUILD SUCCESS|Build succeeded"
    r"|[Cc]ompiled successfully|\bbuilt in \d|^PASS\b|^# fail 0\b|All tests passed|\bexit(?:[ _]code)?[:= ]+0\b",
    re.MULTILINE,
)
_STOPPED: Final = re.compile(
    r"Sibling tool call errored|The user doesn't want to proceed with this tool use|^The user denied"
    r"|^\W*(?:\[Request )?[Ii]nterrupted by (?:the )?user"
)
_STARTED: Final = re.compile(r"running in (?:the )?background|moved to (?:the )?background|still running\b", re.I)
_NOT_RUN: Final = re.compile(
    r"command not found|No module named (?:pytest|mypy|ruff|flake8|tox|nose)\b|^missing script:|Missing script:"
    r"|unknown command|no such (?:command|task)|executable file not found|not recognized as an internal"
    r"|could not determine executable to run",
    re.IGNORECASE | re.MULTILINE,
)


def find_checks(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that ran a check, as `test pass`, `test+lint fail` or `build unknown`."""
    for call in turn.blocks:
        if not isinstance(call, Did) or act_of(call) != "check":
            continue
        commands = shell_commands(command_line(call.input))
        result = _result(call, commands)
        if result:
            kinds = "+".join(checks_in(commands))
            yield Finding("check", TextSpan(call.seq, 0, 0, 0), calls=(call.seq,), detail=f"{kinds} {result}")


def _result(call: Did, commands: Sequence[ShellCommand]) -> str:
    """`pass`, `fail`, or `unknown` if neither the exit code nor the output says it; empty if the check did not run."""
    if call.outcome in ("denied", "abandoned") or _STOPPED.search(call.output):
        return ""
    has_passed, has_failed = bool(_PASSED.search(call.output)), bool(_FAILED.search(call.output))
    if _NOT_RUN.search(call.output) and not has_passed:
        return ""
    if call.outcome in ("failed", "timed_out"):
        return "fail"
    if has_failed:
        # The word may be in a test's name or in a summary like "0 failed". A clear pass outweighs such a line.
        return "pass" if has_passed and not re.search(r"\b[1-9]\d* fail|^FAIL", call.output, re.M) else "fail"
    if has_passed:
        return "pass"
    if _STARTED.search(call.output[:400]):
        return "unknown"
    # Behind a pipe the exit code is lost. A linter that says nothing found nothing, but a test run says something.
    is_lost = any(check_of(c) == "test" and c.is_piped for c in commands)
    return "unknown" if call.outcome == "uncertain" or (is_lost and not call.output.strip()) else "pass"


def has_failed_check(call: Did) -> bool:
    """Whether a call ran a check that failed."""
    return _result(call, shell_commands(command_line(call.input))) == "fail"


def find_files(turn: TurnBlocks) -> Iterator[Finding]:
    """Each call that changed files."""
    for call in turn.blocks:
        if isinstance(call, Did) and files_of(call):
            yield Finding("file", TextSpan(call.seq, 0, 0, 0), calls=(call.seq,))
