"""The older part of a long history, which no window within the budget can hold.

By the built-in policy the oldest leave first. So whatever stands before the newest items that already fill the budget
leaves whole, and need not be made into items to find that out. Some of it stays nevertheless: the system's words,
pending calls, what was pinned, and calls that were answered later. These are looked for in the stored bytes, and are
read as always. The rest is listed as ranges and weighed by its bytes: about, as everything here is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from wakelog.context.handles import Evicted, evicted_as, parse_item, range_key, read_evicted
from wakelog.context.items import Builder, Item
from wakelog.context.token_count import BYTES
from wakelog.context.window import ShownPart, Window, read_ranges, read_shown, read_window
from wakelog.log import Log
from wakelog.log.reader import Entry, read_commits
from wakelog.model.calls import ASKS
from wakelog.model.ids import Seq
from wakelog.model.records import Record
from wakelog.model.values import Value
from wakelog.timeline.compactions import Ranges, parse_range, subtract

FIRST = 512
"""So many of the newest events are looked at first, then twice as many each time."""
NEAR = 128
"""How far from its place something may reach, and how far the next item may be."""
KEPT_MAX = 64
"""Where more stays than this, everything is read."""

_SIZES = re.compile(rb'"size":(\d+),"media"')
_is_shown = re.compile(rb'"(?:action|message)\.').search

Reduced = Callable[[Window], int]
"""The least that a window takes once nothing but whole items can leave it."""


def older_part(
    log: Log, at: Seq, state: dict[str, Value], reduced: Reduced, budget: int, pinned: Iterable[str]
) -> tuple[Evicted, ...] | None:
    """What has left the window at a point, together with all that is too old for the budget, as ranges. None where
    everything must be read to tell."""
    left = read_evicted(state["evicted_keys"])
    scope = read_shown(log, at, state, left)
    if not scope.is_long:
        return None
    found = _newest_part(log, at, state, left, scope, reduced, budget)
    if found is None:
        return None
    window, entries = found
    begin = entries[0].seq
    keys = [*pinned, *window.restored]
    old = scope.within(1, begin - 1)
    if not old or any(span[0] < begin for key in keys if (span := parse_range(key))):
        return None
    sizes = _Sizes(log, old)
    kept = {named[0] for key in keys if (named := parse_item(key))}
    kept.update(pending["seq"] for pending in state["pending_actions"].values())
    kept.update(_asked_before(entries, begin), sizes.system)
    kept = {seq for seq in kept if seq < begin}
    if len(kept) > KEPT_MAX:
        return None
    kept |= _beside(log, kept)
    ranges = [_trimmed(log, scope, state, *span) for span in subtract([(1, begin - 1)], ((s, s) for s in kept))]
    older = [evicted_as(range_key(*span), span[0], sizes.tokens(*span)) for span in ranges if span is not None]
    return (*left, *older)


def _newest_part(
    log: Log,
    at: Seq,
    state: dict[str, Value],
    left: Sequence[Evicted],
    scope: ShownPart,
    reduced: Reduced,
    budget: int,
) -> tuple[Window, list[Entry]] | None:
    """The newest turns that fill the budget by themselves, and their events."""
    size = FIRST
    while 2 * size < sum(last - first + 1 for first, last in scope.ranges):
        entries = _from_turn(list(read_ranges(log, scope.within(_back(scope.ranges, size), at))))
        if entries and any(e.kind == "turn.ended" for e in entries) and not _names_unknown(entries):
            before = evicted_as(range_key(1, entries[0].seq - 1), 1, 0)
            window = read_window(log, at, state=state, evicted=[*left, before])
            if reduced(window) > budget:
                return window, entries
        size *= 2
    return None


def _back(ranges: Ranges, count: int) -> Seq:
    """The event so many events before the end."""
    for first, last in reversed(ranges):
        if count <= last - first + 1:
            return last - count + 1
        count -= last - first + 1
    return 1


def _from_turn(entries: list[Entry]) -> list[Entry]:
    """The events from the first whole turn on."""
    return entries[next((n for n, e in enumerate(entries) if e.kind == "turn.started"), len(entries)) :]


def _names_unknown(entries: Sequence[Entry]) -> bool:
    """Whether an answer names a call that is not among the events and not its cause."""
    asked: set[Value] = set()
    for entry in entries:
        if entry.kind in ASKS:
            asked.add(entry.body.get("action"))
        elif entry.kind.startswith("action."):
            if not entry.header.cause and entry.body.get("action") not in asked:
                return True
        elif entry.kind == "message.added":
            action = entry.body.get("action")
            if action and action not in asked:
                return True
            if any(first < entries[0].seq for first, _ in entry.header.derived_from):
                return True
    return False


def _asked_before(entries: Iterable[Entry], begin: Seq) -> Iterator[Seq]:
    """The calls before a place that some of these events answer."""
    for entry in entries:
        if 0 < entry.header.cause < begin and (entry.kind.startswith("action.") or entry.kind == "message.added"):
            yield entry.header.cause


def _beside(log: Log, kept: set[Seq]) -> set[Seq]:
    """The calls that were asked for before something that stays and answered after it, or whose answer stays."""
    found: set[Seq] = set()
    last = log.head().seq
    for seq in kept:
        for entry in log.entries(after=seq - 1, upto=min(seq + NEAR, last)):
            if entry.seq == seq:
                found.add(entry.header.cause if entry.kind.startswith("action.") else 0)
            else:
                found.update(_asked_before((entry,), seq))
    return found - {0}


def _trimmed(log: Log, scope: ShownPart, state: dict[str, Value], first: Seq, last: Seq) -> tuple[Seq, Seq] | None:
    """A range from its first item to the end of its last; None where it has none."""
    starts = [item.seq for item in _items(log, scope, state, first, min(last, first + NEAR))]
    ends = [item.last for item in _items(log, scope, state, max(first, last - NEAR), last)]
    for low, high in (*((c.first, c.last) for c in scope.compactions), *scope.pruned):
        if first <= low and high <= last:
            starts.append(low)
            ends.append(high)
    if not starts or not ends:
        return (first, last) if last - first > NEAR else None
    return min(starts), max(ends)


def _items(log: Log, scope: ShownPart, state: dict[str, Value], first: Seq, last: Seq) -> list[Item]:
    builder = Builder(log, pending=state["pending_actions"], cover=scope.cover, peek=True)
    for entry in read_ranges(log, scope.within(first, last)):
        builder.feed(entry)
    return builder.items()


def _may_be_system(record: Record) -> bool:
    said = record.body
    return b'"message.' in record.header and (b'"system"' in said or b'"developer"' in said)


class _Sizes:
    """What one look through the stored bytes of some ranges finds: how much is in them, and the system's words. Nothing
    depends on bytes that only this saw but how much a range is said to take."""

    def __init__(self, log: Log, ranges: Ranges) -> None:
        self.system: list[Seq] = []
        self._lasts: list[Seq] = []
        self._sums: list[int] = [0]
        for first, last in ranges:
            for commit, end in read_commits(log.engine, log.segments, after=first - 1, upto=last):
                start = max(first, commit.first)
                records = commit.records[start - commit.first : end + 1 - commit.first]
                shown = [record.body for record in records if _is_shown(record.header)]
                bodies = b"".join(shown)
                size = sum([len(body.partition(b'"delta":[')[0]) for body in shown])
                size += sum(map(int, _SIZES.findall(bodies)))
                self._lasts.append(commit.last)
                self._sums.append(self._sums[-1] + size)
                if b'"system"' in bodies or b'"developer"' in bodies:
                    self.system += [seq for seq, r in enumerate(records, start) if _may_be_system(r)]

    def tokens(self, first: Seq, last: Seq) -> int:
        """About how much a range takes, in two digits: bytes hold more than what is shown."""
        low, high = bisect_right(self._lasts, first - 1), bisect_right(self._lasts, last)
        tokens = (self._sums[high] - self._sums[low]) // BYTES
        told = str(tokens)
        return int(told[:2] + "0" * (len(told) - 2))
