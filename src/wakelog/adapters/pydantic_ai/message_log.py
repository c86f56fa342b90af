"""Writes Pydantic AI messages to a session, for the conversation store and the capability."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wakelog.adapters.item_log import ItemLog, KeptItem, PlannedItem
from wakelog.adapters.message_events import MessagePlan, ReplyFacts
from wakelog.adapters.pydantic_ai.message_shape import FORMAT, plan_message, read_parts, usage_of_response
from wakelog.importers.steps import CallStep
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.models import token_cost
from wakelog.session import Session
from wakelog.store import Store


class MessageLog(ItemLog):
    """The Pydantic AI messages of a session. An item is `{"message": …}`, possibly with more fields."""

    def __init__(self, session: Session[Any], effects: Mapping[str, Effect] | None = None) -> None:
        super().__init__(session, FORMAT)
        self._effects = dict(effects or {})
        self._costs = ReplyCosts(session.store) if isinstance(session.store, Store) else None

    @functools.cached_property
    def data_at_fork(self) -> dict[str, Value]:
        """The session's data where it was forked; empty if it is not a fork."""
        inherited = self.session.log.segments[:-1]
        data = self.session.log.state(inherited[-1].last)["data"] if inherited else {}
        return data if isinstance(data, dict) else {}

    def plan_messages(
        self,
        parts: dict[str, Value],
        given: Sequence[tuple[str, dict[str, Any]]],
        *,
        after: KeptItem | None,
        ends: bool,
        waiting: Collection[str] = (),
    ) -> list[PlannedItem]:
        """Plans the events of new items, which are pairs of id and item and follow the item `after`. `ends` ends the
        turn. `waiting` are calls that a person must approve."""
        is_reply = after is not None and after.value["message"]["kind"] == "response"
        has_results = after is not None and any(m.answers for m in read_parts(after.value["message"], self._effects))
        is_new_turn = parts["turn"]["status"] == "open" and self.has_unsaved_turn()
        planned: list[PlannedItem] = []
        answered = {
            answer.id
            for _, item in given
            for m in read_parts(item["message"], self._effects)
            for answer, _ in m.answers
        }
        plan = MessagePlan(
            parts,
            has_reply=(is_reply or has_results) and not is_new_turn,
            find_call=lambda call: self.find_call(call, self._calls_in),
            stays_open=True,
            later=answered,
        )
        for id, item in given:
            message = item["message"]
            if message["kind"] == "response":
                plan.reply(self._facts(message))
            planned.append(plan_message(plan, item, message, id, self._effects, waiting))
        if ends and planned and plan.is_over:
            planned[-1].drafts.append(EventDraft(ev.TurnEnded(), actor="runtime"))
        return planned

    def has_unsaved_turn(self) -> bool:
        """True if the newest turn was opened by a call, and none of its messages is recorded yet."""
        log = self.session.log
        after = self.all_items[-1].last if self.all_items else 0
        newest = [entry.kind for entry in log.entries(after=after) if entry.kind in ("turn.started", "turn.ended")]
        return newest[-1:] == ["turn.started"]

    def _facts(self, message: dict[str, Any]) -> ReplyFacts:
        model, usage = str(message.get("model_name") or ""), usage_of_response(message)
        at = self.session.log.clock()
        cost = self._costs.cost(model, usage, 0, at) if self._costs is not None else token_cost(usage)
        id, stop = message.get("provider_response_id"), message.get("finish_reason")
        return ReplyFacts(str(id or ""), model, cost, str(stop or ""))

    def _calls_in(self, item: dict[str, Any]) -> list[CallStep]:
        return [ask for message in read_parts(item["message"], self._effects) for ask in message.asks]
