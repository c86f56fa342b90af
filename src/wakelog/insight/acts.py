"""What a call did, for the rules: its act, whether it was refused, and which files it changed."""

from __future__ import annotations

import re
from typing import Final

from wakelog.insight.blocks import Did
from wakelog.model.call_acts import SHELL_TOOLS, Act, act_of_call
from wakelog.model.command_lines import command_line, patched_files, written_files

__all__ = ["Act", "act_of", "files_of", "is_refused", "is_rejected", "is_scratch", "target_of", "works_on_files"]

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
    r"^(?:/private)?/(?:var/)?tmp(?:/|$)|^\$\{?\w+\}?\*?$|^\$\{?(?:TMPDIR|TMP|TEMP)\b|^\$\("
    r"|(?:^|/)(?:node_modules|__pycache__|\.next|\.nuxt|\.turbo|\.cache|\.vite|\.parcel-cache|\.pytest_cache"
    r"|\.mypy_cache|\.ruff_cache|dist|build|target|out|coverage|htmlcov|\.coverage|\.eggs|[\w.*-]+\.egg-info)/*\*?$"
    r"|(?:^|/)(?:node_modules|__pycache__|\.next|\.turbo|\.cache)/"
)
"""What a shell writes for itself: in a directory for temporary files, only in a variable, or made anew by each
build."""
_REPLACED: Final = frozenset({"old_string", "old_str", "edits"})
"""Arguments of tools that replace text."""
_PATHS: Final = ("file_path", "path", "notebook_path", "absolute_path", "filename", "target_file", "filePath", "file")


def act_of(call: Did) -> Act:
    """The act of a call, whether it succeeded or not."""
    return act_of_call(call.tool, call.effect, call.input, has_files=bool(call.files))


def works_on_files(call: Did) -> bool:
    """Whether a call is work on a computer: a shell command, or one that names a file."""
    if call.files or SHELL_TOOLS.search(call.tool) or command_line(call.input):
        return True
    return isinstance(call.input, dict) and any(isinstance(call.input.get(name), str) for name in _PATHS)


def is_refused(call: Did) -> bool:
    """Whether a call that should have changed something did not."""
    return call.has_failed or bool(_REFUSED.search(call.output[:400]))


def is_rejected(call: Did) -> bool:
    """Whether the user did not let a call run."""
    return call.outcome == "denied" or (call.has_failed and bool(_REJECTED.search(call.output[:400])))


def files_of(call: Did) -> list[str]:
    """The files that a call changed: as recorded, else as named in its input."""
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
        for name in _PATHS:
            if isinstance(call.input.get(name), str):
                return [str(call.input[name])]
        texts = [v for v in call.input.values() if isinstance(v, str)]
        return [p for t in texts for p in patched_files(t)] or ["(a file)"]
    return patched_files(line) or ["(a file)"]


def is_scratch(call: Did) -> bool:
    """Whether a call only writes scratch files, which are not the effect of a decision. An edit replaces text of a file
    that was there before."""
    if isinstance(call.input, dict) and call.input.keys() & _REPLACED:
        return False
    files = files_of(call)
    return bool(files) and all(_SCRATCH.search(path) for path in files)


def target_of(call: Did) -> str:
    """The file that a call was to change, whether it did or not; empty if it names none."""
    given = call.input if isinstance(call.input, dict) else {}
    return next((str(given[name]) for name in _PATHS if isinstance(given.get(name), str)), "")
