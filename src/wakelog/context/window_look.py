"""The window at a point, for people: what a model saw there, or would be shown, in a provider's shape."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.context.ledger import durable_part, exposure_of, make_context
from wakelog.context.provider_formats import Shape, shape_items
from wakelog.context.recorded_window import RecordedWindow, WindowChange, seen_at
from wakelog.context.recorded_window import window_change as moved_since
from wakelog.log import Log
from wakelog.model.ids import Seq
from wakelog.model.trust import Trust
from wakelog.timeline.points import attempts_of
from wakelog.timeline.selectors import resolve_range


class WindowLook(msgspec.Struct, frozen=True):
    """One look at a window."""

    seen: RecordedWindow
    turn: int
    known: str
    """The durable part, as it is in the system message."""
    tokens: int
    """An estimate."""
    budget: int | None
    trust: Trust
    """The least trust of anything in it; `source` is where that came from."""
    source: str
    moved: WindowChange | None
    messages: list[dict[str, Any]] | None
    """In the requested shape; None if none was requested."""
    system: str


def look_at(log: Log, where: Seq | str | None, *, budget: int | None, shape: Shape | None, moved: bool) -> WindowLook:
    """See `session.context.seen`."""
    at, since = _span(log, where)
    window = seen_at(log, at, since)
    state = log.state(window.at)
    if window.recorded:
        fitted = durable_part(log, state, window.evicted, budget)
        shaped = shape_items(window.items, fitted.text, shape or "openai")
        trust, source = exposure_of(window.items, fitted)
        tokens = sum(i.tokens for i in window.items) + fitted.tokens
        messages, system, text = shaped.messages, shaped.system, fitted.text
    else:
        offered = make_context(log, budget, shape=shape or "openai", record=False, at=window.at)
        window = msgspec.structs.replace(window, items=offered.items, evicted=offered.evicted)
        trust, source, tokens = offered.exposure, offered.source, offered.tokens
        messages, system, text = offered.messages, offered.system, offered.known
    return WindowLook(
        seen=window,
        turn=state["turn"]["number"],
        known=text,
        tokens=tokens,
        budget=budget,
        trust=trust,
        source=source,
        moved=moved_since(log, window) if moved else None,
        messages=messages if shape else None,
        system=system if shape else "",
    )


def _span(log: Log, where: Seq | str | None) -> tuple[Seq, Seq]:
    """The point to look at, and the first event from which a model call counts as being there. Without a point that is
    now: earlier model calls do not count."""
    if where is None:
        head = log.head().seq
        return head, head + 1
    place = f"e{where}" if isinstance(where, int) else where
    extent = resolve_range(log, place)
    if place.startswith(("@", "turn:")) and place != "@":
        return extent.last, extent.first
    turn = log.entry(extent.last).header.turn
    within = [s.first for s in attempts_of(log, turn) if s.first <= extent.last] if turn else []
    return extent.last, within[-1] if within else extent.last
