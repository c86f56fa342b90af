"""Which change brought a line into a file.

If changes were recorded with content before and after, the line is followed back from the newest content, through each
change that kept it, to the one that made it. If no content was recorded, the answer is the newest change of the file.
The answer says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq

Way = Literal["lines", "newest change", "older", "elsewhere"]
"""How it was found: by following lines; as all that can be said; or not at all, because the line is older than the
session, or came into the file from elsewhere between two recorded changes."""
LINES_MAX = 3000
"""Differing parts up to this many lines on each side are compared in full."""


class LineFound(msgspec.Struct, frozen=True):
    """The change behind a line, and how it was found."""

    seq: Seq
    """0 when no recorded change made it."""
    way: Way
    text: str
    """The line; empty when no content is recorded."""
    note: str = ""
    """What the answer does not cover."""


class _Version(msgspec.Struct, frozen=True):
    seq: Seq
    before: list[str] | None
    after: list[str] | None


def find_line(log: Log, path: str, changes: Sequence[Seq], line: int) -> LineFound:
    """The change, of those given, oldest first, that brought line `line` (from 1) into the file."""
    newest = _version(log, changes[-1])
    if newest.after is None:
        return LineFound(newest.seq, "newest change", "", _missing(log.entry(newest.seq)))
    if not 0 < line <= len(newest.after):
        raise NotFoundError(
            f"{path} has {len(newest.after)} lines after event {newest.seq}, and no line {line}", kind="line-not-found"
        )
    return _follow(log, changes, newest, line - 1)


def _follow(log: Log, changes: Sequence[Seq], version: _Version, place: int) -> LineFound:
    text = (version.after or [])[place]
    for number in range(len(changes) - 1, -1, -1):
        earlier = _version(log, changes[number - 1]) if number else _Version(0, None, None)
        before = version.before if version.before is not None else earlier.after
        if before is None:
            return LineFound(version.seq, "lines", text, "the content before it is not recorded")
        was = _same_line(before, version.after or [], place)
        if was is None:
            return LineFound(version.seq, "lines", text)
        if not number:
            note = f"the line is older than this session; the first change of the file is e{version.seq}"
            return LineFound(0, "older", text, note)
        if earlier.after is None:
            note = f"the line is older than e{version.seq}, and no earlier content is recorded"
            return LineFound(earlier.seq, "newest change", text, note)
        then = was if earlier.after is before else _same_line(earlier.after, before, was)
        if then is None:
            note = f"the line came in between e{earlier.seq} and e{version.seq}, from elsewhere"
            return LineFound(0, "elsewhere", text, note)
        version, place = earlier, then
    raise AssertionError("a file has at least one change")


def _version(log: Log, seq: Seq) -> _Version:
    entry = log.entry(seq)
    body = entry.body
    before = _lines(log, entry, "before")
    if before is None and body.get("change") == "created":
        before = []
    after = [] if body.get("change") == "deleted" else _lines(log, entry, "after")
    return _Version(seq, before, after)


def _missing(entry: Entry) -> str:
    if not entry.is_intact:
        return "its content was removed from the log"
    missing = entry.body.get("missing")
    reason = missing.get("after") if isinstance(missing, dict) else None
    return f"its content is not recorded: {reason}" if isinstance(reason, str) else "its content is not recorded"


def _lines(log: Log, entry: Entry, field: str) -> list[str] | None:
    try:
        value = log.value(entry, entry.body.get(field))
    except NotFoundError:
        return None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    # As editors and git count them: only a line feed ends a line.
    return value.removesuffix("\n").split("\n") if isinstance(value, str) and value else [] if value == "" else None


def _same_line(before: list[str], after: list[str], place: int) -> int | None:
    """Where in `before` the line at `place` of `after` was; None when it was not there."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    if place < head:
        return place
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    if place >= len(after) - tail:
        return place - len(after) + len(before)
    was = _in_the_middle(before[head : len(before) - tail], after[head : len(after) - tail], place - head)
    return None if was is None else head + was


def _in_the_middle(before: list[str], after: list[str], place: int) -> int | None:
    if max(len(before), len(after)) > LINES_MAX:
        # Comparing would cost the square of the length: a line that stands once on both sides is the same line.
        line = after[place]
        return before.index(line) if before.count(line) == after.count(line) == 1 else None
    import difflib

    for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        if block.b <= place < block.b + block.size:
            return block.a + place - block.b
    return None
