"""Which change brought a line into a file.

If changes were recorded with content before and after, the line is followed back from the newest content, through each
change that kept it, to the one that made it. Changes without content are stepped over if the line was there before
them. If no content was recorded, the answer is the newest change of the file. The answer says which of the two it is.

The changes may be of several sessions, in the order of time; and the file as it is now may be given as the newest
content.
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
"""How it was found: by following the line; as the newest change, because no content is recorded; or not at all, because
the line is older than the session, or came into the file from elsewhere between two recorded changes."""
LINES_MAX = 3000
"""Differing parts up to this many lines on each side are compared in full."""


class LineChange(msgspec.Struct, frozen=True):
    """A change of a file in a session's log, and its name in notes."""

    log: Log
    seq: Seq
    name: str


class LineFound(msgspec.Struct, frozen=True):
    """The change behind a line, and how it was found."""

    seq: Seq
    """0 when no recorded change made it."""
    way: Way
    text: str
    """The line; empty when no content is recorded."""
    note: str = ""
    """What the answer does not cover."""
    place: int = 0
    """The index of the change at which the search ended."""
    line: int = 0
    """The number of the line in the content after that change; 0 when it is not known to be in there."""


class _Version(msgspec.Struct, frozen=True):
    before: list[str] | None
    after: list[str] | None


def find_line(log: Log, path: str, changes: Sequence[Seq], line: int) -> LineFound:
    """The change, of those given, oldest first, that brought line `line` (from 1) into the file."""
    return follow_line([LineChange(log, seq, f"e{seq}") for seq in changes], path, line)


def follow_line(changes: Sequence[LineChange], path: str, line: int, now: str | None = None) -> LineFound:
    """The same for changes of several logs. With `now`, the line is one of that content."""
    last = len(changes) - 1
    newest = _version(changes[last])
    lines = split_lines(now) if now is not None else newest.after
    if lines is None:
        return _answer_newest(changes, last, "", _missing(changes[last]))
    if not 0 < line <= len(lines):
        when = "now" if now is not None else f"after event {changes[last].seq}"
        raise NotFoundError(f"{path} has {len(lines)} lines {when}, and no line {line}", kind="line-not-found")
    text, at = lines[line - 1], line - 1
    if now is None:
        return _follow(changes, last, newest, at, text)
    found = _earlier(changes, last, lines, at)
    if found is None:
        return _answer_newest(changes, last, text, "no content of the file is recorded")
    number, version, was = found
    if was is not None:
        return _follow(changes, number, version, was, text)
    if number < last:
        return _answer_newest(changes, last, text, _missing(changes[last]))
    note = f"the line was not there after the last recorded change, {changes[last].name}: it is from elsewhere"
    return LineFound(0, "elsewhere", text, note, last)


def _follow(changes: Sequence[LineChange], number: int, version: _Version, at: int, text: str) -> LineFound:
    while True:
        change = changes[number]
        before = version.before
        if before is None:
            # The content before it is what the change before left, unless a change in between is not recorded.
            earlier = _earlier(changes, number - 1, version.after or [], at)
            if earlier is None or earlier[2] is None:
                note = "" if earlier and earlier[0] == number - 1 else "the content before it is not recorded"
                return LineFound(change.seq, "lines", text, note, number, at + 1)
            number, version, at = earlier[0], earlier[1], earlier[2]
            continue
        was = _same_line(before, version.after or [], at)
        if was is None:
            return LineFound(change.seq, "lines", text, "", number, at + 1)
        if not number:
            note = f"the line is older than this session; the first change of the file is {change.name}"
            return LineFound(0, "older", text, note, number, at + 1)
        earlier = _earlier(changes, number - 1, before, was)
        if earlier is None:
            note = f"the line is older than {change.name}, and no earlier content is recorded"
            return _answer_newest(changes, number - 1, text, note)
        back, version, then = earlier
        if then is None and back < number - 1:
            note = f"the line is older than {change.name}, and what {changes[number - 1].name} left is not recorded"
            return _answer_newest(changes, number - 1, text, note)
        if then is None:
            note = f"the line came in between {changes[back].name} and {change.name}, from elsewhere"
            return LineFound(0, "elsewhere", text, note, number, at + 1)
        number, at = back, then


def _earlier(
    changes: Sequence[LineChange], number: int, lines: list[str], at: int
) -> tuple[int, _Version, int | None] | None:
    """The newest change up to that number whose content is recorded, and where the line was in it."""
    while number >= 0:
        version = _version(changes[number])
        if version.after is not None:
            return number, version, _same_line(version.after, lines, at)
        number -= 1
    return None


def _answer_newest(changes: Sequence[LineChange], number: int, text: str, note: str) -> LineFound:
    return LineFound(changes[number].seq, "newest change", text, note, number)


def _version(change: LineChange) -> _Version:
    log, entry = change.log, change.log.entry(change.seq)
    body = entry.body
    before = _lines(log, entry, "before")
    if before is None and body.get("change") == "created":
        before = []
    after = [] if body.get("change") == "deleted" else _lines(log, entry, "after")
    return _Version(before, after)


def _missing(change: LineChange) -> str:
    entry = change.log.entry(change.seq)
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
    return split_lines(value) if isinstance(value, str) else None


def split_lines(text: str) -> list[str]:
    """Lines as editors and git count them: only a line feed ends one."""
    return text.removesuffix("\n").split("\n") if text else []


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
        # Comparing takes quadratic time. A line that occurs once on both sides is taken to be the same line.
        line = after[place]
        return before.index(line) if before.count(line) == after.count(line) == 1 else None
    import difflib

    for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        if block.b <= place < block.b + block.size:
            return block.a + place - block.b
    return None
