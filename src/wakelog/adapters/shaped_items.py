"""Messages in a framework's own shape, as events of a session.

A framework's message is kept as it is. To find its turns, calls and outcomes, it is also put into the shape of
Anthropic's messages, which message_events.py reads. A framework needs only the function that does that.
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
"""From a framework's message to one in the shape of Anthropic's."""


def items_of(held: HeldLog, store: Store, name: str, format: str, shape: Shape) -> ShapedItems:
    """The messages of a session that is held open; what was read of them is kept with it."""
    with held.lock:
        if held.memory is None:
            session: Session[Any] = Session(held.log, name=name)
            session.store = store
            held.memory = ShapedItems(session, format, shape)
        kept: ShapedItems = held.memory
        return kept


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
        """Adds messages, each with its id, in one commit. `choose` is told what is there, and is asked again when
        another writer came first."""

        def plan(parts: dict[str, Any]) -> list[PlannedItem]:
            chosen = list(choose(list(self.log.items)))
            planned = MessagePlan(
                parts,
                has_reply=bool(self.log.items) and self._read(self.log.items[-1].value).role in ("assistant", "tool"),
                ask_of=lambda call: self.log.ask_of(call, lambda value: self._read(value).asks),
                reply=reply,
            ).plan([self._read(value) for value, _ in chosen])
            for item, (value, id) in zip(planned, chosen, strict=True):
                item.value, item.id = value, id
            return planned

        self.log.write(plan)

    def _read(self, value: Any) -> ReadMessage:
        return read_message(self._shape(value))
