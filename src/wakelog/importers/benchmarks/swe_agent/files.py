"""Files in SWE-agent transcripts: which file an edit changed, and its content afterwards.

The editor shows a window of the open file after each command: `[File: path (N lines total)]` and numbered lines. The
command itself names no file, the state beside it does. If a window shows all lines, the content is known. Only the
observation says that the linter refused an edit.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Literal

from wakelog.importers.common.amounts import edited_lines
from wakelog.importers.common.file_changes import file_change, replace_text
from wakelog.importers.common.shell_writes import shell_writes
from wakelog.importers.steps import CallStep
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, as_list, as_text, text_in

_WINDOW = re.compile(r"^\[File: (?P<path>.+?) \((?P<count>\d+) lines total\)\]$", re.MULTILINE)
_LINE = re.compile(r"(\d+):(.*)")
_RANGE = re.compile(r"edit\s+(\d+):(\d+)")
_CURSOR = re.compile(r"<<<<< (START|END) CURSOR >>>>>")
REFUSED = re.compile(
    r"Your (?:proposed )?edit has introduced new syntax error|No replacement was performed|Text not found in|"
    r"Your edit was not applied|No file open|Invalid `path` parameter|The path \S+ does not exist|"
    r"Error: file \S+ already exists|Usage: (?:edit|create|insert|open)|Invalid (?:start|end|line)|"
    r"Search string not found|Error: (?:start|end|invalid|file)",
    re.IGNORECASE,
)
EDITS = frozenset({"edit", "create", "insert", "append", "str_replace_editor"})


class OpenFiles:
    """Tracks the known contents of a run's files."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def changes(self, call: CallStep, command: str, observation: str, state: dict[str, Any]) -> tuple[FileChanged, ...]:
        """The changes of a successful call."""
        folder = text_in(state, "working_dir")
        changes: tuple[FileChanged, ...] = ()
        if call.tool == "str_replace_editor":
            changes = self._text_edit(as_dict(call.input), folder)
        elif call.tool in EDITS:
            changes = self._line_edit(call, command, observation, state, folder)
        elif call.tool == "bash":
            changes = tuple(shell_writes(command, self._known, folder))
        self._remember_window(observation, state)
        return changes

    def _line_edit(
        self, call: CallStep, command: str, observation: str, state: dict[str, Any], folder: str
    ) -> tuple[FileChanged, ...]:
        path, shown = _window(observation)
        is_new = call.tool == "create"
        named = as_text(as_dict(call.input).get("filename")) or "".join(command.split()[1:2]) if is_new else ""
        path = _absolute(path or named or text_in(state, "open_file"), folder)
        if not path or path.endswith("/n/a") or path == "n/a":
            return ()
        before = None if is_new else self._known.get(path)
        lines = None if is_new or (before is not None and shown is not None) else _counts(call, command)
        change = file_change(
            path, folder=folder, before=before, after=shown, change="created" if is_new else "modified", lines=lines
        )
        return (change,)

    def _text_edit(self, data: dict[str, Any], folder: str) -> tuple[FileChanged, ...]:
        """An edit of the newer editor, which names its file and holds all that it writes."""
        path, what = text_in(data, "path"), data.get("command")
        if not path or what not in ("create", "str_replace", "insert"):
            return ()
        place = _absolute(path, folder)
        old, new = text_in(data, "old_str"), text_in(data, "new_str")
        before = self._known.pop(place, None)
        if what == "create":
            after: str | None = text_in(data, "file_text")
            lines = None
        else:
            after = replace_text(before, old, new) if before is not None and what == "str_replace" else None
            lines = edited_lines([(old, new)])
        if after is not None:
            self._known[place] = after
        is_new = what == "create" and before is None
        change: Literal["created", "modified"] = "created" if is_new else "modified"
        lines = None if is_new or (before is not None and after is not None) else lines
        return (file_change(place, folder=folder, before=before, after=after, change=change, lines=lines),)

    def _remember_window(self, observation: str, state: dict[str, Any]) -> None:
        """Remembers a file if all its lines are shown."""
        path, shown = _window(observation)
        if path and shown is not None:
            self._known[_absolute(path, text_in(state, "working_dir"))] = shown


def _window(observation: str) -> tuple[str, str | None]:
    """The path of the window in an observation, and the file's content if the window shows all of it."""
    matches = list(_WINDOW.finditer(observation.replace("\r\n", "\n")))
    if not matches:
        return "", None
    lines: list[str] = []
    for line in observation.replace("\r\n", "\n")[matches[-1].end() :].lstrip("\n").split("\n"):
        if _CURSOR.match(line):
            continue
        numbered = _LINE.match(line)
        if numbered is None or int(numbered[1][:9]) != len(lines) + 1:
            break
        lines.append(numbered[2])
    whole = bool(lines) and len(lines) == int(matches[-1]["count"][:9])
    return matches[-1]["path"], "\n".join(lines) if whole else None


def _counts(call: CallStep, command: str) -> tuple[int, int]:
    """Lines added and removed, according to the edit command."""
    data = as_dict(call.input)
    if "replace" in data or "search" in data:
        return len(text_in(data, "replace").splitlines()), len(text_in(data, "search").splitlines())
    if call.tool in ("insert", "append"):
        return len(text_in(data, "text").splitlines() or command.splitlines()), 0
    span = _RANGE.match(command)
    body = command.split("\n")[1:]
    while body and body[-1].strip() in ("", "end_of_edit"):
        body.pop()
    if span is not None:
        return len(body), max(0, int(span[2][:9]) - int(span[1][:9]) + 1)
    if body and command.split("\n")[0].strip() == "edit":
        return len(body), 0
    try:
        parts = as_list(shlex.split(command))[1:]
    except ValueError:
        return 0, 0
    return (len(parts[1].splitlines()), len(parts[0].splitlines())) if len(parts) > 1 else (0, 0)


def _absolute(path: str, folder: str) -> str:
    return path if not path or path.startswith("/") or not folder else f"{folder.rstrip('/')}/{path}"
