"""Lists evicted neighbours as one range, so that the list stays short however much is evicted.

A reader of the window also skips the events of a range without reading them. A range is only made if nothing inside it
is still shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec

from wakelog.context.handles import Evicted, by_place, evicted_as, output_key, range_key
from wakelog.context.window import Window
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft


class _Extent(msgspec.Struct):
    """The events of one evicted item, or of several neighbours that were joined."""

    first: Seq
    last: Seq
    tokens: int
    one: Evicted | None

    def holds(self, seq: Seq) -> bool:
        """Whether it contains the item at `seq`. The events of one item may surround those of its neighbours."""
        if self.one is not None and self.one.what == "item":
            return self.one.handle == seq
        return self.first <= seq <= self.last

    def listed(self) -> Evicted:
        return self.one or evicted_as(range_key(self.first, self.last), self.first, self.tokens)


def merge_evictions(window: Window, leaving: Mapping[str, int]) -> tuple[Evicted, ...]:
    """The list of evictions after some more keys were evicted, with neighbours joined. `leaving` has the tokens of
    items and answers by key."""
    answers = {output_key(i.seq): i for i in window.items if i.kind == "call"}
    whole = {i.key: i for i in window.items if i.key in leaving}
    outputs = [e for e in window.evicted if e.what == "output"]
    outputs += [evicted_as(key, answers[key].seq, tokens) for key, tokens in leaving.items() if key in answers]
    extents = [_extent(window, e) for e in window.evicted if e.what in ("item", "range")]
    for key, item in whole.items():
        one = evicted_as(key, int(key[1:]), leaving[key])
        is_placed = item.kind == "summary"
        extents.append(_extent(window, one) if is_placed else _Extent(item.seq, item.last, leaving[key], one))
    shown = sorted({seq for i in window.items if i.key not in whole for seq in (i.seq, *i.events)})
    joined = _joined(extents, shown)
    rest = []
    for each in outputs:
        holder = next((x for x in joined if x.holds(each.handle)), None)
        if holder is None:
            rest.append(each)
        else:
            holder.tokens += each.tokens  # evicted together with its call
    evicted_items = [e for e in window.evicted if e.what in ("compaction", "any") and e.key not in leaving]
    return by_place([*evicted_items, *rest, *(x.listed() for x in joined)])


def _extent(window: Window, one: Evicted) -> _Extent:
    """From the place of an item to its last event. A summary is where its range began, whichever event has it."""
    stood = next((c for c in window.compactions if c.seq == one.handle), None)
    if one.what == "item" and stood is not None:
        return _Extent(stood.first, stood.last, one.tokens, one)
    if one.what == "item":
        return _Extent(*window.hidden.get(one.handle, (one.first, one.last)), one.tokens, one)
    return _Extent(one.first, one.last, one.tokens, one)


def _joined(extents: list[_Extent], shown: Sequence[Seq]) -> list[_Extent]:
    out: list[_Extent] = []
    for each in sorted(extents, key=lambda x: (x.first, -x.last)):
        before = out[-1] if out else None
        last = max(each.last, before.last) if before else 0
        if before and bisect_left(shown, before.first) == bisect_left(shown, last + 1):
            out[-1] = _Extent(before.first, last, before.tokens + each.tokens, None)
        else:
            out.append(each)
    return out


def changes(before: Sequence[Evicted], after: Sequence[Evicted]) -> list[EventDraft]:
    """The events that change the list in the state from `before` to `after`."""
    listed, now = {e.key: e for e in before}, {e.key for e in after}
    events: list[ev.Event] = [
        ev.ContextEvicted(key=e.key, handle=e.handle, tokens=e.tokens) for e in after if listed.get(e.key) != e
    ]
    why = "listed with its neighbours from now on"
    events += [ev.ContextRestored(key=key, why=why) for key in listed if key not in now]
    return [EventDraft(event, actor="runtime") for event in events]
