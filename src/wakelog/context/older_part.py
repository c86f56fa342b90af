"""Evicts the older part of a long history as ranges, without building its items.

The built-in policy evicts the oldest items first. Once the newest items fill the budget, everything older is evicted.
Some older items stay in the window all the same: system messages, pending calls, pinned items, and calls that were
answered later. System messages are found by a scan of the stored bytes that decodes nothing; the others are known from
the state and the newest turns. The tokens of an evicted range are estimated from its bytes.
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
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.records import Record
from wakelog.model.values import Value
from wakelog.timeline.compactions import Ranges, parse_range, subtract

FIRST_BATCH = 512
"""How many of the newest events to read first. Doubled on each further try."""
NEAR = 128
"""How many events an item may span, and how far apart two items may be."""
KEPT_MAX = 64
"""If more older items stay than this, everything is read."""

_SIZES = re.compile(rb'"size":(\d+),"media"')
_is_shown = re.compile(rb'"(?:action|message)\.').search

LeastSize = Callable[[Window], int]
"""The tokens of a window after every answer that may be evicted was evicted."""


def older_part(
    log: Log, at: Seq, state: dict[str, Value], least_size: LeastSize, budget: int, pinned: Iterable[str]
) -> tuple[Evicted, ...] | None:
    """What was evicted before, plus everything that is too old for the budget, as ranges. None if everything must be
    read to decide."""
    evicted_items = read_evicted(state["evicted_keys"])
    scope = read_shown(log, at, state, evicted_items)
    if not scope.is_long:
        return None
    found = _newest_part(log, at, state, evicted_items, scope, least_size, budget)
    if found is None:
        return None
    window, entries = found
    begin = entries[0].seq
    keys = [*pinned, *window.restored]
    old = scope.within(1, begin - 1)
    if not old or any(span[0] < begin for key in keys if (span := parse_range(key))):
        return None
    sizes = _Sizes(log, old)
    kept = {item[0] for key in keys if (item := parse_item(key))}
    kept.update(pending["seq"] for pending in state["pending_actions"].values())
    kept.update(_asked_before(entries, begin), sizes.system)
    kept = {seq for seq in kept if seq < begin}
    if len(kept) > KEPT_MAX:
        return None
    kept |= _calls_around(log, kept)
    ranges = [_trimmed(log, scope, state, *span) for span in subtract([(1, begin - 1)], ((s, s) for s in kept))]
    older = [evicted_as(range_key(*span), span[0], sizes.tokens(*span)) for span in ranges if span is not None]
    return (*evicted_items, *older)


def _newest_part(
    log: Log,
    at: Seq,
    state: dict[str, Value],
    evicted_items: Sequence[Evicted],
    scope: ShownPart,
    least_size: LeastSize,
    budget: int,
) -> tuple[Window, list[Entry]] | None:
    """The newest turns that fill the budget on their own, as a window and as events; None if there are none."""
    size = FIRST_BATCH
    while 2 * size < sum(last - first + 1 for first, last in scope.ranges):
        entries = _from_first_turn(list(read_ranges(log, scope.within(_seq_before_end(scope.ranges, size), at))))
        if entries and any(e.kind == "turn.ended" for e in entries) and not _refers_to_unread(entries):
            before = evicted_as(range_key(1, entries[0].seq - 1), 1, 0)
            window = read_window(log, at, state=state, evicted=[*evicted_items, before])
            if least_size(window) > budget:
                return window, entries
        size *= 2
    return None


def _seq_before_end(ranges: Ranges, count: int) -> Seq:
    """The first of the last `count` events."""
    for first, last in reversed(ranges):
        if count <= last - first + 1:
            return last - count + 1
        count -= last - first + 1
    return 1


def _from_first_turn(entries: list[Entry]) -> list[Entry]:
    """The events from the first turn start on."""
    return entries[next((n for n, e in enumerate(entries) if e.kind == "turn.started"), len(entries)) :]


def _refers_to_unread(entries: Sequence[Entry]) -> bool:
    """Whether an event refers to a call, or to content, that is not among these events and not its cause."""
    asked: set[Value] = set()
    for entry in entries:
        if entry.kind in BEGIN_KINDS:
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
    """The calls before `begin` that these events answer."""
    for entry in entries:
        if 0 < entry.header.cause < begin and (entry.kind.startswith("action.") or entry.kind == "message.added"):
            yield entry.header.cause


def _calls_around(log: Log, kept: set[Seq]) -> set[Seq]:
    """Calls that must stay too: requested before a kept event and answered after it, or answered by one."""
    results: set[Seq] = set()
    last = log.head().seq
    for seq in kept:
        for entry in log.entries(after=seq - 1, upto=min(seq + NEAR, last)):
            if entry.seq == seq:
                results.add(entry.header.cause if entry.kind.startswith("action.") else 0)
            else:
                results.update(_asked_before((entry,), seq))
    return results - {0}


def _trimmed(log: Log, scope: ShownPart, state: dict[str, Value], first: Seq, last: Seq) -> tuple[Seq, Seq] | None:
    """A range cut to its first and last item; None if it has no items."""
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
    body = record.body
    return b'"message.' in record.header and (b'"system"' in body or b'"developer"' in body)


class _Sizes:
    """One scan of the stored bytes of some ranges: their sizes, and where system messages may be. The bytes are not
    verified: system messages are read again, and the sizes are estimates."""

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
        """The estimated tokens of a range, rounded to two digits: stored bytes contain more than what is shown."""
        low, high = bisect_right(self._lasts, first - 1), bisect_right(self._lasts, last)
        tokens = (self._sums[high] - self._sums[low]) // BYTES
        digits = str(tokens)
        return int(digits[:2] + "0" * (len(digits) - 2))
