"""What a call did, for the rules: its act, whether it was refused, and which files it changed."""

from __future__ import annotations

import re
from typing import Final

from wakelog.insight.blocks import Did
from wakelog.model.call_acts import SHELL_TOOLS, Act, act_of_call
from wakelog.model.command_lines import command_line, patched_files, written_files

__all__ = ["Act", "act_of", "files_of", "is_refused", "works_on_files"]

_REFUSED: Final = re.compile(
    r"patch rejected by user|has (?:NOT|not) been applied|edit has introduced (?:new )?(?:syntax )?error"
    r"|^\s*ERROR: No repl"
    r"|String to replace not found|EXACTLY ONE action|was not applied|^failed\b",
)
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


def files_of(call: Did) -> list[str]:
    """The files that a call changed: as recorded, else as named in its input."""
    if is_refused(call):
        return []
    if call.files:
        return list(call.files)
    line = command_line(call.input)
    if SHELL_TOOLS.search(call.tool):
        return written_files(line)
    if act_of(call) != "write":
        return []
    if isinstance(call.input, dict):
        for name in _PATHS:
            if isinstance(call.input.get(name), str):
                return [str(call.input[name])]
        texts = [v for v in call.input.values() if isinstance(v, str)]
        return [p for t in texts for p in patched_files(t)] or ["(a file)"]
    return patched_files(line) or ["(a file)"]
