"""Compactions: a summary replaces a part of the conversation, in the view only.

The state lists each compaction in effect among `evicted_keys`, as `e41:e5..e40`: event 41 has a summary of events 5 to
40. Rewinds and forks keep that list in step with the view, so replaced events can be skipped without reading them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.values import Value

Ranges = Sequence[tuple[Seq, Seq]]

_RANGE = re.compile(r"(?:e([1-9]\d{0,15}):)?e([1-9]\d{0,15})\.\.e([1-9]\d{0,15})")


class Compaction(msgspec.Struct, frozen=True):
    """Events `first` to `last`, replaced by the summary in event `seq`."""

    seq: Seq
    first: Seq
    last: Seq

    def holds(self, other: Compaction) -> bool:
        return self.first <= other.first and other.last <= self.last

    def meets(self, first: Seq, last: Seq) -> bool:
        return self.first <= last and first <= self.last


def parse_range(key: str) -> tuple[Seq, Seq] | None:
    """`e5..e40` as (5, 40); None for anything else."""
    match = _RANGE.fullmatch(key)
    if match is None or match[1] or int(match[2]) > int(match[3]):
        return None
    return int(match[2]), int(match[3])


def parse_compaction(key: str) -> Compaction | None:
    """`e41:e5..e40` as the compaction at 41; None for anything else."""
    match = _RANGE.fullmatch(key)
    return Compaction(*(int(number) for number in match.groups())) if match and match[1] else None


def compactions_in(evicted: Mapping[str, Value]) -> list[Compaction]:
    """The compactions that a state's `evicted_keys` lists, oldest first, including those that another one covers. One
    that names later events is left out: it would hide what is said after it."""
    compactions = [c for key, left in evicted.items() if (c := parse_compaction(key)) and left["seq"] == c.seq]
    return sorted((c for c in compactions if c.first <= c.last < c.seq), key=lambda c: c.seq)


def outermost(compactions: Sequence[Compaction]) -> list[Compaction]:
    """Those that no other one covers, in order of position."""
    outer = [c for c in compactions if not any(o is not c and o.holds(c) for o in compactions)]
    return sorted(outer, key=lambda c: c.first)


def subtract(ranges: Ranges, hidden: Iterable[tuple[Seq, Seq]]) -> list[tuple[Seq, Seq]]:
    """`ranges`, in order, without the hidden ranges."""
    left = list(ranges)
    for first, last in hidden:
        cut: list[tuple[Seq, Seq]] = []
        for a, b in left:
            if b < first or last < a:
                cut.append((a, b))
                continue
            if a < first:
                cut.append((a, first - 1))
            if last < b:
                cut.append((last + 1, b))
        left = cut
    return left
