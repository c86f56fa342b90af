"""Turns messages into events: turns, model calls, tool calls and their outcomes.

Messages can have the shapes of OpenAI's chat completions and responses and of Anthropic's messages, also mixed. A turn
starts with a user message after an answer, and ends when the model answers without requesting a tool call. Consecutive
items of one answer are one reply: its first event is the model call, and the tool calls that it requested have that
call as their group. Every message becomes at least one event.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from wakelog.adapters.item_log import PlannedItem
from wakelog.importers.common.provider_messages import ReadMessage as ReadMessage
from wakelog.importers.common.provider_messages import is_message, reply_blocks, said_content
from wakelog.importers.common.provider_messages import read_message as read_message
from wakelog.importers.steps import CallStep, Outcome, ResultStep
from wakelog.importers.writer.call_events import recorded_call, requested_call, settled_call, source_of, trust_of
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value

_SAFE = ("pure", "read")
_OPEN = ("waiting", "requested", "running")
NO_ANSWER = "the conversation went on without its result"
NO_VERDICT = "the conversation went on before it was approved"


class ReplyFacts(msgspec.Struct, frozen=True):
    """Facts about a model's answer that its messages do not have."""

    id: str = ""
    model: str = ""
    cost: Cost = Cost()
    stop_reason: str = ""


class CallFacts(msgspec.Struct, frozen=True):
    """Facts about a call's outcome that its message does not have."""

    outcome: Outcome = "succeeded"
    error: str = ""
    cost: Cost = Cost()


class MessagePlan:
    """Plans the events of consecutive messages, from the current state of the session."""

    def __init__(
        self,
        parts: Mapping[str, Any],
        *,
        has_reply: bool,
        find_call: Callable[[str], CallStep | None],
        reply: ReplyFacts | None = None,
        calls: Mapping[str, CallFacts] | None = None,
        turn_id: str = "",
        stays_open: bool = False,
        later: Collection[str] = (),
        shown: tuple[Seq, Seq] | None = None,
    ) -> None:
        """`parts` are `turn` and `pending_actions` of the state. `later` are calls whose results follow in the same
        commit. `shown` is for a model that was given only the end of the history: the event where that begins, and the
        position of the first event planned here."""
        self._later = later
        self._shown = shown
        self._count = 0
        self._is_open = parts["turn"]["status"] == "open"
        self._has_reply = has_reply
        known = [(a, p["status"], (str(p["effect"]), str(p["tool"]))) for a, p in parts["pending_actions"].items()]
        self._pending = {action: what for action, status, what in known if status in _OPEN}
        self._waiting = {action for action, status, _ in known if status == "waiting"}
        self._denied: set[str] = set()
        self._uncertain = {action: what for action, status, what in known if status == "uncertain"}
        self._find_call = find_call
        self._reply = reply or ReplyFacts()
        self._calls = calls or {}
        self._turn_id = turn_id
        self._stays_open = stays_open
        self._group = ""
        self._part = 0
        self._drafts: list[EventDraft] = []

    def plan(self, messages: Sequence[ReadMessage]) -> list[PlannedItem]:
        """The events of each message."""
        out = []
        answered = {answer.id for message in messages for answer, _ in message.answers}.union(self._later)
        for place, message in enumerate(messages):
            self._drafts = []
            if message.role == "assistant":
                self._plan_reply(message, messages[place:], answered)
            else:
                self._group = ""
                self._plan_input(message)
            if not self._drafts:  # an empty message
                self._put(ev.MessageAdded(role=message.role, content=said_content(message)))
            out.append(PlannedItem(message.message, self._drafts))
        last = messages[-1] if messages else None
        is_final = last is not None and last.role == "assistant" and not last.open_asks and last.says_something
        if is_final and self._is_open and not self._pending and not self._stays_open:
            self._put(ev.TurnEnded(), actor="runtime")
        return out

    def reply(self, facts: ReplyFacts) -> None:
        """Sets the facts about the next reply."""
        self._reply, self._group = facts, ""

    @property
    def is_open(self) -> bool:
        """True if a turn is open after the messages, or was until the event that ended it with them."""
        return bool(self._is_open)

    @property
    def is_over(self) -> bool:
        """True if a turn is open and no call is pending."""
        return self._is_open and not self._pending

    def _put(
        self,
        event: ev.Event,
        *,
        actor: str = "agent",
        trust: Any = "trusted",
        source: str = "",
        derived_from: tuple[tuple[Seq, Seq], ...] = (),
    ) -> None:
        self._drafts.append(EventDraft(event, actor=actor, derived_from=derived_from, trust=trust, source=source))
        self._count += 1

    # User, system and tool messages

    def _plan_input(self, message: ReadMessage) -> None:
        for call, is_approved in message.verdicts:
            self._plan_verdict(call, is_approved)
        for answer, is_known in message.answers:
            self._plan_result(self._with_id(answer, str(message.message.get("name") or "")), is_known)
        content = said_content(message)
        if message.role == "system":
            if not is_message(message.message):
                content = f"(not readable: {', '.join(message.message)})"
            self._put(ev.MessageAdded(role="system", content=content), actor="runtime")
        elif message.role == "user" and (content or not (message.answers or message.verdicts)):
            is_more = self._is_open and (not self._has_reply or bool(message.answers or message.verdicts))
            if is_more:
                self._put(ev.MessageAdded(role="user", content=content), actor="user")
            else:
                self._begin_turn(content)

    def _begin_turn(self, input: Value) -> None:
        self._end_open_turn()
        self._put(ev.TurnStarted(input=input, id=self._turn_id), actor="user")
        self._is_open, self._has_reply, self._turn_id = True, False, ""

    def _end_open_turn(self) -> None:
        """Ends the previous turn. Its calls without a result may have run."""
        if not self._is_open:
            return
        is_cut = bool(self._pending)
        for action, (effect, tool) in self._pending.items():
            failure = ev.Failure("interrupted", NO_ANSWER, retryable=True)
            if action in self._waiting:
                event: ev.Event = ev.ActionAbandoned(action=action, why=NO_VERDICT)
            elif effect in _SAFE:
                event = ev.ActionFailed(action=action, error=failure, why=NO_ANSWER)
            else:
                event = ev.ActionUncertain(action=action, why=NO_ANSWER)
                self._uncertain[action] = effect, tool
            self._put(event, actor="runtime")
        self._pending.clear()
        self._waiting.clear()
        self._put(
            ev.TurnEnded(outcome="interrupted" if is_cut or not self._has_reply else "completed"), actor="runtime"
        )
        self._is_open = False

    def _plan_verdict(self, call: str, is_approved: bool) -> None:
        """What a person said about a call that waits to be approved."""
        if call not in self._waiting:
            said = "approved" if is_approved else "denied"
            self._put(ev.MessageAdded(role="user", content={"call": call, said: True}, name="approval"), actor="user")
            return
        self._waiting.discard(call)
        if is_approved:
            self._put(ev.ActionApproved(action=call), actor="user")
            self._put(ev.ActionStarted(action=call), actor="runtime")
        else:
            self._put(ev.ActionDenied(action=call), actor="user")
            self._pending.pop(call)
            self._denied.add(call)

    def _with_id(self, answer: ResultStep, tool: str) -> ResultStep:
        """A result with the id of its call. Some clients give none; then it is the oldest pending call of the tool."""
        if answer.id:
            return answer
        found = (call for call, (_, name) in self._pending.items() if tool in ("", name))
        return msgspec.structs.replace(answer, id=next(found, ""))

    def _plan_result(self, answer: ResultStep, is_known: bool) -> None:
        if answer.id in self._denied:  # it never ran: this is what the model was told
            self._put(ev.MessageAdded(role="tool", content=answer.output, name="denied"), actor="runtime")
            return
        if answer.id in self._waiting:  # it ran, so somebody approved it
            self._plan_verdict(answer.id, is_approved=True)
        facts = self._calls.get(answer.id)
        if facts is not None and not is_known:
            answer = msgspec.structs.replace(answer, outcome=facts.outcome, error=facts.error, cost=facts.cost)
        held = self._pending.pop(answer.id, None) or self._uncertain.pop(answer.id, None)
        if held is not None:
            ask = CallStep(answer.id, held[1], None, held[0])  # type: ignore[arg-type]  # as it was stored
            event: ev.Event = settled_call(answer, answer.output)
        else:
            ask = self._find_call(answer.id) or CallStep(answer.id or f"call-{secrets.token_hex(6)}", "unknown", None)
            event = recorded_call(ask, answer, answer.output)
        self._put(event, actor="tool", trust=trust_of(ask), source=source_of(ask))

    # Messages of the model

    def _plan_reply(self, message: ReadMessage, rest: Sequence[ReadMessage], answered: set[str]) -> None:
        if not self._is_open:
            self._put(ev.TurnStarted(id=self._turn_id), actor="runtime")
            self._is_open, self._turn_id = True, ""
        is_first = not self._group
        if is_first:
            self._group = self._reply.id or str(message.message.get("id") or f"reply-{secrets.token_hex(6)}")
            self._part = 0
        blocks = reply_blocks(message)
        if is_first and not blocks:
            blocks = [{"type": "tool_use", "id": a.id, "name": a.tool} for m in _leading_replies(rest) for a in m.asks]
        if blocks:
            self._put_reply(blocks)
        self._has_reply = True
        own = {answer.id: (answer, is_known) for answer, is_known in message.answers}
        for ask in message.asks:
            ask = msgspec.structs.replace(ask, group=self._group)
            if ask.id in own and ask.id not in self._pending:
                answer, _ = own.pop(ask.id)
                event: ev.Event = recorded_call(ask, answer, answer.output)
                self._put(event, actor="tool", trust=trust_of(ask), source=source_of(ask))
            elif (held := self._pending.get(ask.id)) is not None and held[1] == ask.tool:
                pass  # it was recorded before it ran
            elif ask.id in self._pending or ask.id in self._uncertain:
                # Another call has this id: the client numbers its calls from the start again. The first one keeps it.
                self._put(ev.MessageAdded(role="assistant", content={"id": ask.id, "asks": ask.input}, name="call"))
            else:
                is_waiting = ask.id in message.waiting
                self._put(requested_call(ask, approval=is_waiting))
                if is_waiting:
                    self._waiting.add(ask.id)
                elif ask.id not in answered:
                    self._put(ev.ActionStarted(action=ask.id), actor="runtime")
                self._pending[ask.id] = (ask.effect, ask.tool)
        for answer, is_known in own.values():  # of calls in an earlier message
            self._plan_result(answer, is_known)

    def _put_reply(self, blocks: list[Value]) -> None:
        facts, self._part = self._reply, self._part + 1
        self._reply = ReplyFacts(model=facts.model)
        event = ev.ActionRecorded(
            action=self._group if self._part == 1 else f"{self._group}/{self._part}",
            tool="model",
            effect="model",
            output={"type": "message", "role": "assistant", "content": blocks}
            | ({"model": facts.model} if facts.model else {}),
            cost=facts.cost,
            params={"model": facts.model} if facts.model else {},
            stop_reason=facts.stop_reason,
        )
        self._put(event, derived_from=self._window())

    def _window(self) -> tuple[tuple[Seq, Seq], ...]:
        """The events that a model was given, if it was not given all."""
        if self._shown is None:
            return ()
        first, last = self._shown[0], self._shown[1] + self._count - 1
        return ((first, last),) if first <= last else ()


def _leading_replies(messages: Sequence[ReadMessage]) -> Iterator[ReadMessage]:
    return itertools.takewhile(lambda message: message.role == "assistant", messages)
