"""What a model saw: the window of a recorded model call, and what entered and left it since the call before.

A call through the runtime names the events that were in its window. For other calls, the answer is what would have been
offered at that point, and says so.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.context.handles import Coverage, Evicted, read_evicted
from wakelog.context.items import Item
from wakelog.context.window import read_recorded, read_window
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.timeline.compactions import compactions_in

How = Literal["rewound", "evicted", "summarised", "not shown"]
PAGE = 512


class RecordedWindow(msgspec.Struct, frozen=True):
    """The items in the window of one model call; if not `recorded`, what would have been offered there."""

    call: Seq
    """The request, or 0 when no model was called and this is what would be offered at `at`."""
    at: Seq
    model: str
    context_hash: str
    recorded: bool
    items: tuple[Item, ...]
    evicted: tuple[Evicted, ...]


class LeftItem(msgspec.Struct, frozen=True):
    item: Item
    how: How


class WindowChange(msgspec.Struct, frozen=True):
    """What entered the window since the model call before, and what left it."""

    before: Seq
    entered: tuple[Item, ...]
    left: tuple[LeftItem, ...]


def seen_at(log: Log, at: Seq, since: Seq = 1) -> RecordedWindow:
    """What the newest model call from `since` to `at` was shown; where there is none, what would be offered at `at`."""
    call = model_call(log, at, since)
    if call is not None:
        return seen_by(log, call)
    window = read_window(log, at)
    return RecordedWindow(0, at, "", "", False, window.items, window.evicted)


def seen_by(log: Log, call: Entry) -> RecordedWindow:
    """What one model call was shown."""
    body, before = call.body, call.seq - 1
    params = body.get("params")
    named = params.get("model") if isinstance(params, dict) else None
    model, digest = str(named or body.get("tool", "")), str(body.get("context_hash", ""))
    ranges = call.header.derived_from
    if ranges:
        evicted_items = read_evicted(log.state(before)["evicted_keys"]) if before else ()
        return RecordedWindow(call.seq, before, model, digest, True, read_recorded(log, ranges), evicted_items)
    window = read_window(log, before)
    return RecordedWindow(call.seq, before, model, digest, False, window.items, window.evicted)


def model_call(log: Log, at: Seq, since: Seq = 1) -> Entry | None:
    """The newest request of a model from `since` to `at`."""
    upto = at
    while upto >= since:
        after = max(since - 1, upto - PAGE)
        for entry in reversed(list(log.entries(after=after, upto=upto))):
            if entry.kind in BEGIN_KINDS and entry.body.get("effect") == "model":
                return entry
        upto = after
    return None


def window_change(log: Log, window: RecordedWindow) -> WindowChange:
    """What changed since the model call before."""
    call = model_call(log, (window.call or window.at + 1) - 1)
    before = seen_by(log, call).items if call is not None else ()
    now, then = {i.key for i in window.items}, {i.key for i in before}
    # A call whose answer came meanwhile counts as entered.
    changed = {i.key for i in window.items for j in before if i.key == j.key and i.status != j.status}
    return WindowChange(
        call.seq if call is not None else 0,
        tuple(i for i in window.items if i.key not in then or i.key in changed),
        tuple(LeftItem(i, _how(log, window, i)) for i in before if i.key not in now),
    )


def _how(log: Log, window: RecordedWindow, item: Item) -> How:
    if not any(first <= item.seq <= last for first, last in log.view(window.at)):
        return "rewound"
    if Coverage(window.evicted).hides(item.seq, item.events, is_call=item.kind == "call"):
        return "evicted"
    state = log.state(window.at)
    if any(c.first <= item.seq <= c.last for c in compactions_in(state["evicted_keys"])):
        return "summarised"
    return "not shown"
