"""Slices: events by position, turn, time, kind and tool."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.timeline.points import attempts_of, seq_at_time

PAGE = 512


class Slice(msgspec.Struct, frozen=True):
    """Which events to read. All conditions are optional, and all that are given must hold; times are microseconds."""

    after: Seq = 0
    upto: Seq | None = None
    turn: int | tuple[int, int] | None = None
    attempt: int | None = None
    since: int | None = None
    until: int | None = None
    kind: str | tuple[str, ...] | None = None
    """A kind, or its first word: "action" is all action events."""
    tool: str | None = None
    newest_first: bool = False


def read_slice(log: Log, part: Slice) -> Iterator[Entry]:
    """The events of a slice, read page by page."""
    after, upto = part.after, part.upto
    if part.turn is not None:
        low, high = _turns(part.turn)
        after = max(after, attempts_of(log, low)[0].first - 1)
        last = attempts_of(log, high)[-1].last
        upto = last if upto is None else min(upto, last)
    if part.since is not None:
        after = max(after, seq_at_time(log, part.since - 1))
    if part.until is not None:
        last = seq_at_time(log, part.until)
        upto = last if upto is None else min(upto, last)
    return _backwards(log, part, after, upto) if part.newest_first else _filtered(log, part, after, upto)


def _turns(wanted: int | tuple[int, int]) -> tuple[int, int]:
    numbers = (wanted, wanted) if isinstance(wanted, int) else tuple(wanted)
    if len(numbers) != 2 or not all(isinstance(each, int) for each in numbers):
        raise InvalidInputError(
            f"turn={wanted!r} is not the number of a turn"[:200],
            kind="bad-selector",
            hint='pass turn=5, or turn=(3, 7); session["@3..@7"] takes a position',
        )
    return numbers[0], numbers[-1]


def _backwards(log: Log, part: Slice, after: Seq, upto: Seq | None) -> Iterator[Entry]:
    """Reads a page at a time from the end, so a caller who stops early reads little more than needed."""
    last = log.head().seq if upto is None else upto
    while last > after:
        low = max(after, last - PAGE)
        yield from reversed(list(_filtered(log, part, low, last)))
        last = low


def _filtered(log: Log, part: Slice, after: Seq, upto: Seq | None) -> Iterator[Entry]:
    kinds = (part.kind,) if isinstance(part.kind, str) else part.kind
    tools: dict[str, str] = {}
    for entry in log.entries(after=after, upto=upto):
        header = entry.header
        if part.turn is not None and not header.turn:
            continue
        if part.attempt is not None and header.attempt != part.attempt:
            continue
        if kinds is not None and not any(header.kind == k or header.kind.startswith(k + ".") for k in kinds):
            continue
        if part.tool is not None and tool_of(log, entry, tools) != part.tool:
            continue
        yield entry


def tool_of(log: Log, entry: Entry, tools: dict[str, str]) -> str:
    """The tool an event is about. Outcomes name only the action: `tools` remembers the tool of each action. If the
    request was not read yet, it is looked up as the outcome's cause."""
    if not entry.kind.startswith("action."):
        return ""
    action = str(entry.body.get("action", ""))
    tool = entry.body.get("tool")
    if tool is None and action not in tools and entry.header.cause:
        tool = log.entry(entry.header.cause).body.get("tool")
    if isinstance(tool, str):
        tools[action] = tool
    return tools.get(action, "")
