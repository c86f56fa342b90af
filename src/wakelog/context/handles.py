"""The names of things in the window, and which of them were evicted.

    e12           an item: the message that event 12 added, or the call that it asked for, with its answer
    e12:output    only that call's answer; the call stays, with a note where the answer was
    e5..e40       everything from event 5 to event 40
    e41:e5..e40   the range that the summary in event 41 replaces: a compaction

Other programs may record any other key. Then the handle, an event's seq, says what is meant: the answer of a call, or
the whole of anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.compactions import parse_compaction, parse_range

_ITEM = re.compile(r"e([1-9]\d{0,15})(:output)?")

What = Literal["item", "output", "range", "compaction", "any"]


class Evicted(msgspec.Struct, frozen=True):
    """Something that was evicted, and the handle that restores it."""

    key: str
    handle: Seq
    tokens: int = 0
    """Its tokens; an estimate for a long range that was evicted at once, 0 if they were not counted."""
    what: What = "item"
    first: Seq = 0
    last: Seq = 0

    def covers(self, seq: Seq) -> bool:
        return self.first <= seq <= self.last


def item_key(seq: Seq) -> str:
    return f"e{seq}"


def output_key(seq: Seq) -> str:
    return f"e{seq}:output"


def range_key(first: Seq, last: Seq) -> str:
    return f"e{first}..e{last}"


def parse_item(key: str) -> tuple[Seq, bool] | None:
    """`e12` as (12, False), `e12:output` as (12, True); None for anything else."""
    match = _ITEM.fullmatch(key)
    return (int(match[1]), match[2] is not None) if match else None


def read_evicted(listed: Mapping[str, Value]) -> tuple[Evicted, ...]:
    """What a state's `evicted_keys` lists, ordered by place."""
    return by_place(evicted_as(key, left["handle"], left["tokens"]) for key, left in listed.items())


def evicted_as(key: str, handle: Seq, tokens: int) -> Evicted:
    """What a key and its handle mean."""
    if span := parse_range(key):
        return Evicted(key, handle, tokens, "range", *span)
    if compaction := parse_compaction(key):
        return Evicted(key, handle, tokens, "compaction", compaction.first, compaction.last)
    item = parse_item(key)
    what: What = "any" if item is None or item[0] != handle else "output" if item[1] else "item"
    return Evicted(key, handle, tokens, what, handle, handle)


def by_place(evicted: Iterable[Evicted]) -> tuple[Evicted, ...]:
    return tuple(sorted(evicted, key=lambda e: (e.first, e.last, e.key)))


class Coverage:
    """Says of an item whether it, or only its answer, was evicted."""

    def __init__(self, evicted: Sequence[Evicted] = ()) -> None:
        self.ranges = [(e.first, e.last) for e in evicted if e.what == "range"]
        self._items = {e.handle for e in evicted if e.what == "item"}
        self._any = {e.handle for e in evicted if e.what == "any"}
        self._outputs = {e.handle: e for e in evicted if e.what in ("output", "any")}

    def hides(self, place: Seq, events: Iterable[Seq], *, is_call: bool) -> bool:
        """Whether the whole item at `place` was evicted."""
        if any(first <= place <= last for first, last in self.ranges):
            return True
        return any(seq in self._items or (seq in self._any and not is_call) for seq in events)

    def output(self, events: Iterable[Seq]) -> Evicted | None:
        """The eviction of a call's answer, if there is one."""
        return next((self._outputs[seq] for seq in events if seq in self._outputs), None)
