"""Patches as Codex writes them: `*** Begin Patch` … `*** End Patch`, with a section for each file.

A section adds a file, deletes one, or changes one by hunks of context, removed and added lines. The patch does not hold
the old content. It is known for files that the same transcript created; those are tracked from patch to patch.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from wakelog.importers.common.file_changes import TrackedFiles, file_change
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_dict, text_in

_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_MOVE = re.compile(r"\*\*\* Move to: (.+?)\s*$")
_SIGNS = {"add": ("+", "Add"), "delete": ("-", "Delete")}
BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"


class PatchSection(msgspec.Struct, frozen=True):
    """What a patch does to one file."""

    change: str
    path: str
    lines: list[str]
    """With their first character: a space, a plus or a minus. `@@` starts a hunk."""
    move: str = ""


def patch_sections(text: str) -> Iterator[PatchSection]:
    """The sections of the first patch in a text. None if there is no patch."""
    start = text.find(BEGIN)
    if start < 0:
        return
    change = path = move = ""
    lines: list[str] = []
    for line in text[start:].splitlines()[1:]:
        if line.startswith(END):
            break
        if match := _SECTION.match(line):
            if path:
                yield PatchSection(change, path, lines, move)
            change, path, move, lines = match[1], match[2], "", []
        elif match := _MOVE.match(line):
            move = match[1]
        elif not line.startswith(END_OF_FILE):
            lines.append(line)
    if path:
        yield PatchSection(change, path, lines, move)


def change_sections(changes: dict[str, Any]) -> Iterator[PatchSection]:
    """The sections of a patch from the event at its end, which has a unified diff of each file."""
    for path, each in changes.items():
        change = as_dict(each)
        if text_in(change, "type") == "update":
            lines = [line for line in text_in(change, "unified_diff").splitlines() if line[:4] not in ("--- ", "+++ ")]
            hunks = ["@@" if line.startswith("@@") else line for line in lines]
            yield PatchSection("Update", path, hunks, text_in(change, "move_path"))
        elif text_in(change, "type") in _SIGNS:
            sign, name = _SIGNS[change["type"]]
            yield PatchSection(name, path, [sign + line for line in text_in(change, "content").splitlines()])


class PatchedFiles:
    """The files that the patches of one transcript change."""

    def __init__(self) -> None:
        self._files = TrackedFiles()

    def apply(self, patch: str, folder: str) -> tuple[FileChanged, ...]:
        """The changes of a patch that succeeded."""
        return tuple(c for section in patch_sections(patch) for c in self._change(section, folder))

    def apply_changes(self, changes: dict[str, Any], folder: str) -> tuple[FileChanged, ...]:
        """The changes that the event at the end of a patch lists."""
        return tuple(c for section in change_sections(changes) for c in self._change(section, folder))

    def _change(self, section: PatchSection, folder: str) -> Iterator[FileChanged]:
        path = _absolute(section.path, folder)
        before = self._files.text(path)
        added = sum(line.startswith("+") for line in section.lines)
        removed = sum(line.startswith("-") for line in section.lines)
        if section.change == "Add":
            after: str | None = "".join(line[1:] + "\n" for line in section.lines if line.startswith("+"))
            yield file_change(path, folder=folder, after=after, change="created", lines=(added, 0))
        elif section.change == "Delete":
            after = None
            if before is None and section.lines:
                before = "".join(line[1:] + "\n" for line in section.lines)
            count = before.count("\n") if before else 0
            yield file_change(path, folder=folder, before=before, change="deleted", lines=(0, count))
        else:
            after = None if before is None else apply_hunks(before, section.lines)
            if not section.move:
                yield file_change(path, folder=folder, before=before, after=after, lines=(added, removed))
            else:
                moved = _absolute(section.move, folder)
                yield file_change(path, folder=folder, before=before, change="deleted", lines=(0, removed))
                yield file_change(moved, folder=folder, after=after, change="created", lines=(added, 0))
                self._files.track(path, None)
                path = moved
        self._files.track(path, after)


def apply_hunks(text: str, lines: list[str]) -> str | None:
    """Applies the hunks of a section to a text. None if a hunk does not fit."""
    rows = text.splitlines()
    place = 0
    for hint, old, new in _hunks(lines):
        if hint:
            place = next((i + 1 for i in range(place, len(rows)) if rows[i].strip() == hint), place)
        if not old:
            place = len(rows) if not hint else place
            rows[place:place] = new
        else:
            found = _find(rows, old, place)
            if found is None:
                return None
            rows[found : found + len(old)] = new
            place = found
        place += len(new)
    return "".join(row + "\n" for row in rows)


def _hunks(lines: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """For each hunk: the line that it follows, if it says so, the lines that it replaces, and the new lines."""
    hint, old, new = "", list[str](), list[str]()
    for line in lines:
        if line.startswith("@@"):
            if old or new:
                yield hint, old, new
                old, new = [], []
            hint = line[2:].strip()
            continue
        if line[:1] in ("-", " ", ""):
            old.append(line[1:])
        if line[:1] in ("+", " ", ""):
            new.append(line[1:])
    if old or new:
        yield hint, old, new


def _find(rows: list[str], old: list[str], place: int) -> int | None:
    for start in (place, 0):
        for i in range(start, len(rows) - len(old) + 1):
            if rows[i] == old[0] and rows[i : i + len(old)] == old:
                return i
    return None


def _absolute(path: str, folder: str) -> str:
    return path if not folder or os.path.isabs(path) else os.path.join(folder, path)
