"""Stores messages in a framework's own shape as events of a session.

A message is kept as it is. To find its turns, calls and outcomes, it is also converted to the shape of Anthropic's
messages, which message_events.py reads. A framework only brings the function that converts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakelog.adapters.held_logs import HeldLog
from wakelog.adapters.item_log import ItemLog, KeptItem, PlannedItem
from wakelog.adapters.message_events import MessagePlan, ReadMessage, ReplyFacts, read_message
from wakelog.session import Session
from wakelog.store import Store

Shape = Callable[[Any], dict[str, Any]]
"""Converts a framework's message to the shape of Anthropic's messages."""


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

        def plan(parts: dict[str, Any]) -> list[PlannedItem]:
            chosen = list(choose(list(self.log.items)))
            planned = MessagePlan(
                parts,
                has_reply=bool(self.log.items) and self._read(self.log.items[-1].value).role in ("assistant", "tool"),
                find_call=lambda call: self.log.find_call(call, lambda value: self._read(value).asks),
                reply=reply,
            ).plan([self._read(value) for value, _ in chosen])
            for item, (value, id) in zip(planned, chosen, strict=True):
                item.value, item.id = value, id
            return planned

        self.log.write(plan)

    def _read(self, value: Any) -> ReadMessage:
        return read_message(self._shape(value))
