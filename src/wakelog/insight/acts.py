"""What a call did, for the rules: its act, whether it was refused, and which files it changed."""

from __future__ import annotations

import re
from typing import Final

from wakelog.insight.blocks import Did
from wakelog.model.call_acts import PATHS, SHELL_TOOLS, WRITE_TOOLS, Act, act_of_call, plain_name
from wakelog.model.check_programs import check_of_tool, checks_in, runs_test_script
from wakelog.model.command_lines import command_line, patched_files, shell_commands, written_files
from wakelog.model.values import Value

__all__ = [
    "Act",
    "act_of",
    "checks_of",
    "files_of",
    "is_refused",
    "is_rejected",
    "is_scratch",
    "is_test_script",
    "target_of",
    "works_on_files",
]

_REFUSED: Final = re.compile(
    r"patch rejected by user|has (?:NOT|not) been applied|edit has introduced (?:new )?(?:syntax )?error"
    r"|^\s*ERROR: No repl"
    r"|String to replace not found|EXACTLY ONE action|was not applied|^failed\b",
)
_REJECTED: Final = re.compile(
    r"\b[Tt]he user (?:doesn't want to proceed with this|denied this|rejected this)|rejected by (?:the )?user"
    r"|rejected permission|^Skipping edits",
    re.MULTILINE,
)
_SCRATCH: Final = re.compile(
    r"^(?!.*\btests?/.)(?:.*/)?(?:\w+_)?(?:repro|test|debug|verif|check|demo|try|tmp|dummy|sample|example)\w*\.\w+$"
)
"""Files made only to try something."""
_THROWN_AWAY: Final = re.compile(
    r"^(?:/private)?/(?:var/)?tmp(?:/|$)|^/usr/|\.log$|^\$\{?\w+\}?\*?$|^\$\{?(?:TMPDIR|TMP|TEMP)\b|^\$\("
    r"|(?:^|/)(?:node_modules|__pycache__|\.next|\.nuxt|\.turbo|\.cache|\.vite|\.parcel-cache|\.pytest_cache"
    r"|\.mypy_cache|\.ruff_cache|dist|build|target|out|coverage|htmlcov|\.coverage|\.eggs|[\w.*-]+\.egg-info)/*\*?$"
    r"|(?:^|/)(?:node_modules|__pycache__|\.next|\.turbo|\.cache|\.local/(?:state|share))/"
)
"""What a shell writes for itself: in a directory for temporary files, for installed programs or for their state, a log,
only in a variable, or rebuilt by each build."""
_AGENTS_OWN: Final = re.compile(
    r"(?:^~|[/\\](?:Users|home)[/\\][^/\\]+|^/root)[/\\]"
    r"(?:\.claude[/\\](?:plans|projects|todos)|\.gemini[/\\](?:antigravity[\w-]*|tmp)|\.cursor[/\\](?:plans|projects)"
    r"|\.codex)[/\\]"
)
"""Plans, memories and logs that an agent keeps for itself, not in the project."""
_FILE_TOOLS: Final = re.compile(
    r"^(?:read|grep|glob|ls)$|(?<!pro)file|codebase|notebook|director(?:y|ies)|_lints$", re.IGNORECASE
)
"""Tools that read a project, by their names. A profile is what services have."""
_REPLACED: Final = frozenset({"old_string", "old_str", "edits"})
"""Arguments of tools that replace text."""
_COUNTS: Final = re.compile(
    r"\b\d+ (?:tests? |specs? |checks? |assertions? )?(?:passed|failed|passing|failing)\b"
    r"|\b(?:passed|failed|failures)\b[ \t]*[:=][ \t]*\d|\b\d+ ?/ ?\d+\b[^\n]{0,20}\bpass(?:ed|ing)?\b"
    r"|^Ran \d+ tests? in\b",
    re.IGNORECASE | re.MULTILINE,
)
"""How many tests have passed or failed, as a test says at its end."""


def act_of(call: Did) -> Act:
    """The act of a call, whether it succeeded or not."""
    act = act_of_call(call.tool, call.effect, call.input, has_files=bool(call.files))
    return "check" if act == "run" and _counts_tests(call) else act


def checks_of(call: Did) -> list[str]:
    """The kinds of check that a call ran, each once. A script that is a test by its name is one if it says how many
    tests have passed; otherwise it may only try something."""
    if not SHELL_TOOLS.search(call.tool):
        kind = check_of_tool(plain_name(call.tool))
        return [kind] if kind else []
    commands = shell_commands(command_line(call.input))
    return checks_in(commands) or (["test"] if _counts_tests(call) else [])


def _counts_tests(call: Did) -> bool:
    return is_test_script(call) and bool(_COUNTS.search(call.output))


def is_test_script(call: Did) -> bool:
    """Whether a call runs a script that is a test by its name, and writes none."""
    line = command_line(call.input) if SHELL_TOOLS.search(call.tool) else ""
    return any(map(runs_test_script, shell_commands(line))) and not written_files(line)


def works_on_files(call: Did) -> bool:
    """Whether a call is work on a computer: a shell command, an edit, or one that names a file."""
    if call.files or SHELL_TOOLS.search(call.tool) or command_line(call.input):
        return True
    if WRITE_TOOLS.match(plain_name(call.tool)) or _FILE_TOOLS.search(plain_name(call.tool)):
        return True  # by its name; an export may leave out its arguments
    return isinstance(call.input, dict) and any(isinstance(call.input.get(name), str) for name in PATHS)


def is_refused(call: Did) -> bool:
    """Whether a call that should have changed something did not."""
    return call.has_failed or bool(_REFUSED.search(call.output[:400]))


def is_rejected(call: Did) -> bool:
    """Whether the user did not let a call run."""
    return call.outcome == "denied" or (call.has_failed and bool(_REJECTED.search(call.output[:400])))


def files_of(call: Did) -> list[str]:
    """The files of a project that a call changed: as recorded, else as named in its input."""
    return [path for path in _changed_by(call) if not _AGENTS_OWN.search(path)]


def _changed_by(call: Did) -> list[str]:
    if is_refused(call):
        return []
    if call.files:
        return list(call.files)
    line = command_line(call.input)
    if SHELL_TOOLS.search(call.tool):
        return [path for path in written_files(line) if not _THROWN_AWAY.search(path)]
    if act_of(call) != "write":
        return []
    if isinstance(call.input, dict):
        for name in PATHS:
            if isinstance(call.input.get(name), str):
                return [str(call.input[name])]
        if named := _listed_files(call.input):
            return named
        texts = [v for v in call.input.values() if isinstance(v, str)]
        return [p for t in texts for p in patched_files(t)] or ["(a file)"]
    return patched_files(line) or ["(a file)"]


def _listed_files(data: dict[str, Value]) -> list[str]:
    """The files that a list of edits names."""
    edits = [edit for value in data.values() if isinstance(value, list) for edit in value if isinstance(edit, dict)]
    return list(dict.fromkeys(str(edit[name]) for edit in edits for name in PATHS if isinstance(edit.get(name), str)))


def is_scratch(call: Did) -> bool:
    """Whether a call only writes scratch files, which are not the effect of a decision. An edit replaces text of a file
    that was there before."""
    if isinstance(call.input, dict) and call.input.keys() & _REPLACED:
        return False
    files = files_of(call)
    return bool(files) and all(_SCRATCH.search(path) for path in files)


def target_of(call: Did) -> str:
    """The file that a call was to change, whether it did or not; empty if it names none."""
    data = call.input if isinstance(call.input, dict) else {}
    return next((str(data[name]) for name in PATHS if isinstance(data.get(name), str)), "")
