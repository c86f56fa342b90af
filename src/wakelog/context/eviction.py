"""Evict, restore and pin by name.

Restored items are pinned until the turn is over, so that a policy does not evict them again at once. Items that cannot
come back, because they were pruned or erased meanwhile, are reported as `gone`, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wakelog.context.compaction import expand
from wakelog.context.evicted_ranges import changes, merge_evictions
from wakelog.context.handles import Evicted, by_place, evicted_as, item_key, output_key, parse_item, range_key
from wakelog.context.items import Item
from wakelog.context.ledger import is_pinned
from wakelog.context.window import Window, read_window
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.timeline.compactions import parse_range


class Gone(msgspec.Struct, frozen=True):
    """Something that cannot come back, and why: pruned or erased."""

    seq: Seq
    reason: str


class RestoredContent(msgspec.Struct, frozen=True):
    """What was restored, and what could not be."""

    key: str
    items: tuple[Item, ...]
    gone: tuple[Gone, ...] = ()


def evict(log: Log, key: str | Seq) -> Evicted:
    """Evicts an item (by its key, or any event in it), a call's answer, or a range. Something that was evicted before
    stays evicted."""
    key = item_key(key) if isinstance(key, int) else key
    window = read_window(log)
    if (already := _covering(window, window.evicted, key)) is not None:
        return already
    leaving = _items_named(window, key)
    for item in (window.find(named[0]) for name in leaving if (named := parse_item(name)) is not None):
        if item is not None and (item.role == "system" or item.is_pending):
            what = "the system's words stay" if item.role == "system" else f"the call is {item.status}"
            raise NotAllowedError(f"{item.key} cannot leave the window: {what}", kind="not-evictable")
    after = merge_evictions(window, leaving)
    log.append(*changes(window.evicted, after))
    evicted = _covering(window, after, next(iter(leaving)))
    assert evicted is not None
    return evicted


def _items_named(window: Window, key: str) -> dict[str, int]:
    """The keys of the items that `key` means, with their tokens."""
    if span := parse_range(key):
        inside = {i.key: i.tokens for i in window.items if span[0] <= i.seq <= span[1]}
        if inside:
            return inside
    elif named := parse_item(key):
        item = window.find(named[0])
        if item is not None and not named[1]:
            return {item.key: item.tokens}
        if item is not None and item.kind == "call":
            return {output_key(item.seq): item.output_tokens}
        if item is not None:
            raise InvalidInputError(f"{item.key} is not a call: it has no output of its own", kind="not-a-call")
    raise NotFoundError(
        f"there is nothing called {key!r} in the window",
        kind="not-in-window",
        hint="keys look like e12, e12:output and e5..e40; wakelog context lists them",
    )


def _covering(window: Window, evicted: Sequence[Evicted], key: str) -> Evicted | None:
    """The eviction that a key names or is part of."""
    first, last = _place_of(window, key)
    for each in evicted:
        if (each.key == key and (each.what != "any" or not first)) or (
            each.what == "range" and first and each.first <= first and last <= each.last
        ):
            return each
    item = parse_item(key)
    whole = item_key(item[0]) if item and item[1] else ""
    return next((e for e in evicted if whole and e.key == whole), None)


def _place_of(window: Window, key: str) -> tuple[Seq, Seq]:
    """The first and last event of the item that a key names; a summary is where its range began. Zeros if unknown."""
    item = parse_item(key)
    if item is None:
        return parse_range(key) or (0, 0)
    place = next((c.first for c in window.compactions if c.seq == item[0]), item[0])
    return place, place


def restore(log: Log, key: str | Seq) -> RestoredContent:
    """Restores something into the window, and pins it for this turn. A compaction is expanded."""
    key = item_key(key) if isinstance(key, int) else key
    window = read_window(log)
    holder = _covering(window, window.evicted, key)
    if holder is None:
        return RestoredContent(key, (pin(log, key),))
    if holder.what == "compaction":
        expand(log, holder.handle)
        return RestoredContent(key, tuple(_inside(read_window(log), holder.first, holder.last)))
    after = _still_evicted(log, window, holder, key)
    back = _restored_items(window, read_window(log, window.at, evicted=after))
    gone = tuple(_cannot_return(log, holder, back))
    if not back:
        return RestoredContent(key, (), gone or (Gone(holder.handle, "not in view"),))
    others = [d for d in changes(window.evicted, after) if getattr(d.event, "key", "") != key]
    log.append(EventDraft(ev.ContextRestored(key=key), actor="runtime"), *others)
    return RestoredContent(key, tuple(back), gone)


def _still_evicted(log: Log, window: Window, holder: Evicted, key: str) -> tuple[Evicted, ...]:
    """What stays evicted after `key` was restored. Restoring one item of a range splits the range in two."""
    rest = [e for e in window.evicted if e.key != holder.key]
    if holder.what in ("item", "any"):
        rest = [e for e in rest if not (e.what == "output" and e.handle == holder.handle)]
    if holder.key == key or holder.what != "range":
        return by_place(rest)
    first, last = _place_of(window, key)
    inside = _restored_items(window, read_window(log, window.at, evicted=rest))
    wanted = {i.key for i in inside if first <= i.seq <= last or any(first <= s <= last for s in i.events)}
    run: list[Item] = []
    for item in [*inside, None]:
        if item is not None and item.key not in wanted:
            run.append(item)
        elif run:
            rest.append(_as_evicted(run))
            run = []
    return by_place(rest)


def _as_evicted(run: Sequence[Item]) -> Evicted:
    tokens = sum(i.tokens for i in run)
    if len(run) == 1:
        return evicted_as(run[0].key, int(run[0].key[1:]), tokens)
    first, last = run[0].seq, run[-1].seq
    return evicted_as(range_key(first, last), first, tokens)


def _restored_items(before: Window, after: Window) -> list[Item]:
    """Items that are shown after, and were not, or not completely, shown before."""
    shown = {i.key: i.status for i in before.items}
    return [i for i in after.items if i.key not in shown or (shown[i.key] == "evicted") != (i.status == "evicted")]


def _inside(window: Window, first: Seq, last: Seq) -> list[Item]:
    return [i for i in window.items if first <= i.seq <= last]


def _cannot_return(log: Log, holder: Evicted, back: list[Item]) -> list[Gone]:
    """What cannot be restored. Items whose content is gone are removed from `back`."""
    results = []
    for item in list(back):
        erased = [s for s in item.events if "$erased" in log.entry(s).body]
        if item.kind == "gone":
            back.remove(item)
        elif erased:
            results.append(Gone(erased[0], "erased"))
            if len(erased) == len(item.events) or item.status == "erased":
                back.remove(item)
    first, last = (holder.first, holder.last) if holder.what == "range" else (holder.handle, holder.handle)
    for end in dict.fromkeys((first, last)):
        try:
            if not log.entry(end).record.body:
                results.append(Gone(end, "pruned"))
        except NotFoundError:
            results.append(Gone(end, "not there"))
    return results


def pin(log: Log, key: str | Seq) -> Item:
    """Keeps an item in the window until the turn is over."""
    key = item_key(key) if isinstance(key, int) else key
    window = read_window(log)
    named = parse_item(key)
    item = window.find(named[0]) if named else None
    if item is None:
        listed = _covering(window, window.evicted, key)
        raise NotFoundError(
            f"there is nothing called {key!r} in the window",
            kind="not-in-window",
            hint=f"it was evicted; session.context.restore({key!r}) restores it"
            if listed
            else "wakelog context lists the keys",
        )
    if not is_pinned(item, window.restored):
        log.append(EventDraft(ev.ContextRestored(key=item.key, why="pinned"), actor="runtime"))
    return item
