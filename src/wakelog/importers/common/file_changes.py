"""Builds `file.changed` events from what a transcript says about an edit."""

from __future__ import annotations

import hashlib
import os.path
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from wakelog.files.line_diff import counts
from wakelog.importers.common.amounts import edited_lines
from wakelog.model.events import FileChanged
from wakelog.model.json_fields import as_list, as_text, dicts_in

UNKNOWN = "not in the transcript"
CONTENT_MAX = 8 << 20
TRACKED_MAX = 16 << 20
"""How many characters of file contents are kept in memory. Contents beyond that count as unknown."""


def file_change(
    path: str,
    *,
    folder: str = "",
    before: str | None = None,
    after: str | None = None,
    change: Literal["created", "modified", "deleted", ""] = "",
    lines: tuple[int, int] | None = None,
    action: str = "",
) -> FileChanged:
    """`before` and `after` are None if unknown. A created file has no `before`, a deleted one no `after`."""
    change = change or "modified"
    missing: dict[str, str] = {}
    if before is None and change != "created":
        missing["before"] = UNKNOWN
    if after is None and change != "deleted":
        missing["after"] = UNKNOWN
    for side, text in (("before", before), ("after", after)):
        if text is not None and len(text) > CONTENT_MAX:
            missing[side] = "too large"
    if lines is None:
        known = before is not None or change == "created", after is not None or change == "deleted"
        lines = counts(before or "", after or "") if all(known) and not missing else (0, 0)
    place = _relative(path, folder)
    return FileChanged(
        path=place,
        change=change,
        added=lines[0],
        removed=lines[1],
        before=None if "before" in missing or change == "created" else before,
        after=None if "after" in missing or change == "deleted" else after,
        before_hash="" if before is None or change == "created" else _sha256(before),
        after_hash="" if after is None or change == "deleted" else _sha256(after),
        missing=missing,
        folder="" if os.path.isabs(place) else folder,
        action=action,
    )


def patch_counts(hunks: Any) -> tuple[int, int] | None:
    """Lines added and removed by hunks, whose lines start with +, - or a space. None if there are no hunks."""
    if not isinstance(hunks, list):
        return None
    return _count_signs(as_text(line) for hunk in dicts_in(hunks) for line in as_list(hunk.get("lines")))


def diff_counts(diff: str) -> tuple[int, int]:
    """Lines added and removed by a unified diff."""
    return _count_signs(line for line in diff.splitlines() if not line.startswith(("+++", "---")))


def _count_signs(lines: Iterable[str]) -> tuple[int, int]:
    signs = Counter(line[:1] for line in lines)
    return signs["+"], signs["-"]


def replace_text(text: str, old: str, new: str, *, all: bool = False) -> str | None:
    """The text after an edit. None if it does not contain the old part."""
    if not old or old not in text:
        return None
    return text.replace(old, new) if all else text.replace(old, new, 1)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is the folder itself or inside it."""
    return bool(folder) and (path.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")


class TrackedFiles:
    """Files whose contents are known because the agent wrote or read them as a whole."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._size = 0

    def text(self, path: str) -> str | None:
        return self._texts.get(path)

    def track(self, path: str, text: str | None) -> None:
        """Sets a file's current content. None if it is unknown or the file is gone."""
        self._size -= len(self._texts.pop(path, ""))
        if text is not None and self._size + len(text) <= TRACKED_MAX:
            self._texts[path] = text
            self._size += len(text)

    def edit(self, path: str, old: str, new: str, *, all: bool = False, **fields: Any) -> FileChanged:
        """Replaces a part of a file. If its content is unknown, the lines of the two parts are counted."""
        before = self.text(path)
        after = replace_text(before, old, new, all=all) if before is not None else None
        self.track(path, after)
        lines = edited_lines([(old, new)]) if after is None else None
        return file_change(path, before=before, after=after, lines=lines, **fields)


def _relative(path: str, folder: str) -> str:
    path = os.path.normpath(path) if path else path
    if folder and path.startswith(folder.rstrip("/") + "/"):
        return path[len(folder.rstrip("/")) + 1 :]
    return path


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
