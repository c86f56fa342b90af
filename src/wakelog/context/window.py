"""The window at a point: what a model would be shown, and what it would not.

It is read from the events in view, without the ranges that were compacted or evicted. The state lists those, so they
are not read at all: the cost depends on what is in the window, not on the length of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from wakelog.context.handles import Coverage, Evicted, item_key, read_evicted
from wakelog.context.items import Builder, Item, pruned_item
from wakelog.context.token_count import Count, count_item, estimate
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.compactions import Compaction, Ranges, compactions_in, outermost, subtract

MANY = 4096
"""Above this many events, contents are fetched only for items that are shown."""
_QUIET = frozenset(
    {
        *("turn.started", "turn.ended", "action.started", "action.approved", "context.evicted", "context.restored"),
        *("budget.set", "budget.spent", "budget.reached", "checkpoint.named", "lease.taken", "lease.released"),
        *("session.opened", "session.resumed", "session.paused", "payload.redacted", "labels.set", "history.rewound"),
        *("git_commit.linked", "items.kept", "knowledge.recalled"),
    }
)
"""Kinds whose content is never shown to a model."""


class Window(msgspec.Struct, frozen=True):
    """Items in order, and what decides which of them may be evicted."""

    at: Seq
    state: dict[str, Value]
    items: tuple[Item, ...]
    evicted: tuple[Evicted, ...]
    compactions: tuple[Compaction, ...]
    """Those in effect that no other compaction covers."""
    fresh: Seq
    """Where the newest turn begins."""
    resumed: Seq
    """The same if that turn continues an interrupted attempt; else 0."""
    seen: Seq
    """In the newest turn, the model has already seen the answers of calls before this event."""
    restored: frozenset[str]
    """Keys that were restored or pinned for this turn."""
    quiet: frozenset[Seq]
    """Events that were read and show nothing."""
    hidden: dict[Seq, tuple[Seq, Seq]] = {}
    """By event of an evicted item: where the item begins, and its last event."""
    is_peek: bool = False
    """True if large contents were not fetched: their sizes are known, their texts are not."""

    def find(self, seq: Seq) -> Item | None:
        """The item that an event belongs to."""
        return next((i for i in self.items if i.key == item_key(seq) or seq in i.events), None)


class ShownPart(msgspec.Struct, frozen=True):
    """Which events a window is read from, and what hides the others."""

    ranges: Ranges
    compactions: tuple[Compaction, ...]
    cover: Coverage
    pruned: list[tuple[Seq, Seq]]

    @property
    def is_long(self) -> bool:
        return sum(last - first for first, last in self.ranges) > MANY

    def within(self, first: Seq, last: Seq) -> Ranges:
        """The ranges, cut to the events from `first` to `last`."""
        return [(max(a, first), min(b, last)) for a, b in self.ranges if a <= last and first <= b]


def read_shown(log: Log, at: Seq, state: dict[str, Value], evicted: Sequence[Evicted]) -> ShownPart:
    """What is shown of a session at a point, without what was evicted."""
    compactions = tuple(outermost(compactions_in(state["evicted_keys"])))
    cover = Coverage(evicted)
    view = log.view(at, state=state)
    pruned = _pruned(log, view)
    hidden = [*((c.first, c.last) for c in compactions), *cover.ranges, *pruned]
    return ShownPart(subtract(view, hidden), compactions, cover, pruned)


def read_window(
    log: Log,
    at: Seq | None = None,
    *,
    count: Count = estimate,
    evicted: Sequence[Evicted] | None = None,
    peek: bool = False,
    state: dict[str, Value] | None = None,
) -> Window:
    """The window at a point, or now. `evicted` replaces the evictions that the state lists. With `peek`, a window over
    very many events has only the sizes of large contents. `state` is the state at the point, if the caller has it."""
    if at is None:
        at, state = log.now()
    elif state is None:
        state = log.state(at)
    evicted_items = read_evicted(state["evicted_keys"]) if evicted is None else tuple(evicted)
    scope = read_shown(log, at, state, evicted_items)
    peek = peek and scope.is_long
    entries = list(read_ranges(log, scope.ranges, payloads=not peek))
    builder = Builder(log, pending=state["pending_actions"], cover=scope.cover, peek=peek)
    for entry in entries:
        builder.feed(entry)
    for each in scope.compactions:
        builder.summary(log.entry(each.seq), each.first)
    items = builder.items()
    items += [pruned_item(*span) for span in scope.pruned if not scope.cover.hides(span[0], (span[0],), is_call=False)]
    items.sort(key=lambda i: i.seq)
    items = [count_item(item, count, builder.unread.get(item.key, (0, 0))) for item in items]
    window = _completed(at, state, items, evicted_items, scope.compactions, entries)
    return msgspec.structs.replace(window, hidden=builder.hidden, is_peek=peek)


def _completed(
    at: Seq,
    state: dict[str, Value],
    items: list[Item],
    evicted: tuple[Evicted, ...],
    compactions: tuple[Compaction, ...],
    entries: list[Entry],
) -> Window:
    fresh, ended = _newest_turn(state, items, entries)
    asked = [e.seq for e in entries if e.kind == "action.requested" and e.body.get("effect") == "model"]
    spoke = [i.seq for i in items if i.role == "assistant" and i.kind == "message"]
    return Window(
        at=at,
        state=state,
        items=tuple(msgspec.structs.replace(i, is_new=i.seq >= fresh) for i in items),
        evicted=evicted,
        compactions=compactions,
        fresh=fresh,
        resumed=next((e.seq for e in entries if e.seq == fresh and e.body.get("resumes")), 0),
        seen=max((seq for seq in (*asked, *spoke) if seq >= fresh), default=0),
        restored=frozenset(
            str(e.body.get("key", "")) for e in entries if e.kind == "context.restored" and e.seq > ended
        ),
        quiet=frozenset((*(e.seq for e in entries if e.kind in _QUIET), *asked)),
    )


def _newest_turn(state: dict[str, Value], items: Sequence[Item], entries: Sequence[Entry]) -> tuple[Seq, Seq]:
    """Where the newest turn begins, and where a turn last ended. In a session without turns, the last user message
    begins one."""
    number = state["turn"]["number"]
    begun = [e.seq for e in entries if e.kind == "turn.started" and e.header.turn == number]
    if not begun:
        said = [i.seq for i in items if i.role == "user" and i.kind == "message"]
        fresh = said[-1] if said else items[-1].seq if items else 1
        return fresh, fresh
    ended = [e.seq for e in entries if e.kind == "turn.ended"]
    return begun[-1], ended[-1] if ended else 0


def read_ranges(log: Log, ranges: Ranges, *, payloads: bool = False) -> Iterable[Entry]:
    """The events of some ranges; with `payloads`, their payloads are read in the same pass."""
    for first, last in ranges:
        yield from log.entries(after=first - 1, upto=last, payloads=payloads)


def _pruned(log: Log, view: Ranges) -> list[tuple[Seq, Seq]]:
    """The ranges in view that were pruned. A prune removes the beginning of what one session of the fork tree holds, so
    its end is found by binary search."""
    results = []
    for segment in log.segments:
        low, high = segment.first, min(segment.last or view[-1][1], view[-1][1])
        if low > high or log.entry(low).record.body:
            continue
        first = low
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if log.entry(middle).record.body else (middle, high)
        results += [(max(a, first), min(b, low)) for a, b in view if a <= low and first <= b]
    return results


def read_recorded(log: Log, ranges: Ranges) -> tuple[Item, ...]:
    """The items that some events make, as a recorded model call names them."""
    builder = Builder(log)
    for entry in read_ranges(log, ranges):
        cause = entry.header.cause
        if cause and entry.kind == "action.succeeded" and not any(first <= cause <= last for first, last in ranges):
            # The model's answer is in the window, but its request is not.
            builder.feed(log.entry(cause))
        if entry.kind == "history.compacted":
            builder.summary(entry, entry.body.get("first", entry.seq))
        else:
            builder.feed(entry)
    return tuple(count_item(item, estimate) for item in builder.items())
