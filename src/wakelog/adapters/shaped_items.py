"""Stores messages in a framework's own shape as events of a session.

A message is kept as it is. To find its turns, calls and outcomes, it is also converted to the shape of Anthropic's
messages, which message_events.py reads. A framework only brings the function that converts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from wakelog.adapters.held_logs import HeldLog
from wakelog.adapters.item_log import ItemLog, KeptItem, PlannedItem, PlannedWrite
from wakelog.adapters.message_events import MessagePlan, ReadMessage, ReplyFacts, read_message
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

Shape = Callable[[Any], dict[str, Any]]
"""Converts a framework's message to the shape of Anthropic's messages."""
TurnOutcome = Literal["completed", "failed", "interrupted"]


def items_of(held: HeldLog, store: Store, name: str, format: str, shape: Shape) -> ShapedItems:
    """The messages of an open session. They are cached with its log."""
    with held.lock:
        if held.cache is None:
            session: Session[Any] = Session(held.log, name=name)
            session.store = store
            held.cache = ShapedItems(session, format, shape)
        items: ShapedItems = held.cache
        return items


class ShapedItems:
    """The messages of one session."""

    def __init__(self, session: Session[Any], format: str, shape: Shape) -> None:
        self.log = ItemLog(session, format)
        self._shape = shape

    def items(self) -> list[KeptItem]:
        """The messages in view, oldest first."""
        return self.log.refresh()

    def add(
        self, choose: Callable[[list[KeptItem]], Sequence[tuple[Any, str]]], *, reply: ReplyFacts | None = None
    ) -> None:
        """Adds messages with their ids in one commit. `choose` gets the existing items and returns what to add; it is
        called again if another writer came first."""

        self.log.write(lambda parts: self._plan(parts, choose(list(self.log.items)), self.log.items, reply)[0])

    def replace(
        self,
        messages: Sequence[tuple[Any, str]],
        then: Callable[[Seq | None], list[EventDraft]],
        *,
        ends: TurnOutcome | None,
        why: str,
    ) -> None:
        """Makes these messages, with their ids, the ones in view. What differs is taken back by a rewind. `then` gets
        the event that is rewound to, or None, and returns events for the same commit; it is called again if another
        writer came first. `ends` ends an open turn after them."""

        def plan(parts: dict[str, Any]) -> PlannedWrite:
            known = self.log.items
            pairs = enumerate(zip(known, messages, strict=False))
            differs = (place for place, (item, (value, _)) in pairs if item.value != value)
            same = next(differs, min(len(known), len(messages)))
            back = known[same].first - 1 if same < len(known) else None
            items, is_open = self._plan(parts, messages[same:], known[:same])
            own = items[-1].drafts if items else []
            has_ended = bool(own) and type(own[-1].event) is ev.TurnEnded
            after = [*([own.pop()] if has_ended else ())]
            if ends is not None and is_open:
                after = [EventDraft(ev.TurnEnded(outcome=ends), actor="runtime")]
            return PlannedWrite(items, back, why, [*then(back), *after])

        self.log.write(plan)

    def _plan(
        self,
        parts: dict[str, Any],
        chosen: Sequence[tuple[Any, str]],
        before: Sequence[KeptItem],
        reply: ReplyFacts | None = None,
    ) -> tuple[list[PlannedItem], bool]:
        """The messages with their events, and whether a turn is open after them, or was until their last event."""
        plan = MessagePlan(
            parts,
            has_reply=bool(before) and self._read(before[-1].value).role in ("assistant", "tool"),
            find_call=lambda call: self.log.find_call(call, lambda value: self._read(value).asks),
            reply=reply,
        )
        planned = plan.plan([self._read(value) for value, _ in chosen])
        for item, (value, id) in zip(planned, chosen, strict=True):
            item.value, item.id = value, id
        return planned, plan.is_open

    def _read(self, value: Any) -> ReadMessage:
        return read_message(self._shape(value))
