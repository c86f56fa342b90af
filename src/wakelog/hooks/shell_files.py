"""Reads the files around a shell command, for the hooks before and after it.

An agent's own edits are in its transcript, but what a shell command does to files is not. Only the hook before the
command can see them as they were. A hook has no time to scan a project, so it reads the files that the command names:
other changes stay unknown.

Imports next to nothing, like spool.py.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILES_MAX = 16
FILE_MAX = 256 << 10
BEFORE = ("PreToolUse", "BeforeTool")
_BREAKS = str.maketrans(dict.fromkeys("\"'`;|&<>()=,{}[]$\n\t", " "))


def files_around(text: bytes) -> bytes:
    """A record with the current content of the files that a shell command names. If none exists, that counts too: one
    that exists afterwards was created. Empty if the input is not a shell command."""
    hook_input = json.loads(text)
    given = hook_input.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    folder = hook_input.get("cwd")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if not isinstance(command, str) or not isinstance(folder, str) or not os.path.isabs(folder):
        return b""
    if isinstance(given, dict) and isinstance(given.get("directory") or given.get("dir_path"), str):
        folder = os.path.join(folder, given.get("directory") or given["dir_path"])
    names = named_files(command, folder)
    is_before = hook_input.get("hook_event_name") in BEFORE
    about: dict[str, Any] = {
        "session_id": hook_input.get("session_id"),
        "cwd": hook_input.get("cwd"),
        "hook_event_name": "files.before" if is_before else "files.after",
        "tool_use_id": hook_input.get("tool_use_id"),
        "agent_id": hook_input.get("agent_id"),
        "command": command[:200],
        "files": {path: _content(path) for path in names[:FILES_MAX]},
        "more": len(names) > FILES_MAX,
    }
    return json.dumps(about).encode()


def named_files(command: str, folder: str) -> list[str]:
    """The files below a folder that a command names, as absolute paths, and at most one more than `FILES_MAX`."""
    top = os.path.realpath(folder)
    out: list[str] = []
    for word in command.translate(_BREAKS).split():
        path = os.path.realpath(os.path.join(top, os.path.expanduser(word)))
        if path in out or not path.startswith(top + os.sep) or not os.path.isfile(path):
            continue
        parts = path[len(top) :].split(os.sep)
        if ".git" in parts or ".wakelog" in parts or parts[-1].startswith(".env"):
            continue
        out.append(path)
        if len(out) > FILES_MAX:
            break
    return out


def _content(path: str) -> str | None:
    """A file's text. None if it is not text or too long."""
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_MAX + 1)
        return content.decode() if len(content) <= FILE_MAX else None
    except (OSError, UnicodeDecodeError):
        return None
