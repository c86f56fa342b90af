"""Messages as events: where a turn begins, which calls were asked for, and what came of them.

Messages come in the shapes of OpenAI's chat completions and responses and of Anthropic's messages, also mixed. A turn
begins with words of the user that follow an answer, and ends when the model answers without asking for a call. Items of
one answer that come together are one reply: its first event is the model's call, and the calls that it asked for name
it as their group. Every message gives at least one event.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from wakelog.adapters.item_log import PlannedItem
from wakelog.importers.call_events import recorded_call, requested_call, settled_call, source_of, trust_of
from wakelog.importers.steps import AnswerStep, AskStep, Outcome
from wakelog.importers.tools import effect_of
from wakelog.instruments.wire import ConversationItem, read_request
from wakelog.model import events as ev
from wakelog.model.events import Cost, Effect
from wakelog.model.parts import Asked
from wakelog.model.records import EventDraft
from wakelog.model.values import Value

Shape = Literal["chat", "responses", "anthropic"]
_WIRE = {
    "chat": ("chat/completions", "messages"),
    "responses": ("responses", "input"),
    "anthropic": ("v1/messages", "messages"),
}
_ANTHROPIC = frozenset({"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
_RESPONSES = frozenset({"input_text", "output_text", "refusal", "input_image", "input_file"})
_SAFE = ("pure", "read")
_OPEN = ("requested", "running")
NO_ANSWER = "the conversation went on without its result"


class ReplyFacts(msgspec.Struct, frozen=True):
    """What is known of a model's answer beyond its messages."""

    id: str = ""
    model: str = ""
    cost: Cost = Cost()
    stop_reason: str = ""


class CallFacts(msgspec.Struct, frozen=True):
    """What is known of a call's outcome beyond its message."""

    outcome: Outcome = "succeeded"
    error: str = ""
    cost: Cost = Cost()


class ReadMessage(msgspec.Struct, frozen=True):
    """One message, read."""

    message: dict[str, Any]
    role: Literal["system", "user", "assistant", "tool"]
    item: ConversationItem | None
    asks: tuple[AskStep, ...] = ()
    answers: tuple[tuple[AnswerStep, bool], ...] = ()
    """What came of calls; with each, whether the message itself says that it failed."""

    @property
    def says_something(self) -> bool:
        """Whether there are words in it: thoughts alone are no answer."""
        return self.item is not None and bool(self.item.text) and self.message.get("type") in (None, "message")

    @property
    def digest(self) -> bytes:
        """By what the message is known again, whatever a client changes around its words."""
        return self.item.digest if self.item is not None else msgspec.json.encode(self.message.get("content"))


def message_shape(message: Mapping[str, Any]) -> Shape:
    """Whose words a message is in."""
    kind, content = message.get("type"), message.get("content")
    kinds = {b.get("type") for b in content if isinstance(b, dict)} if isinstance(content, list) else set()
    if kinds & _RESPONSES or (isinstance(kind, str) and kind != "message") or "call_id" in message:
        return "responses"
    if message.get("tool_calls") or message.get("role") in ("tool", "function"):
        return "chat"
    return "anthropic" if kinds & (_ANTHROPIC - {"text", "image"}) or kind == "message" else "chat"


def read_message(message: dict[str, Any], effects: Mapping[str, Effect] | None = None) -> ReadMessage:
    """What a message says."""
    special = _hosted(message, effects or {})
    path, name = _WIRE[message_shape(message)]
    request = read_request(path, {name: [message]})
    assert request is not None
    if not request.items:
        return ReadMessage(message, "system", None)
    item = request.items[0]
    if special is not None:
        asks, answers = special
        return ReadMessage(message, "tool" if answers and not asks else "assistant", item, asks, answers)
    asks = tuple(_ask(call, place, effects or {}) for place, call in enumerate(item.asked))
    answers = tuple(
        (
            AnswerStep(r.id, r.output, "failed", _words(r.output)) if r.is_error else AnswerStep(r.id, r.output),
            r.is_error,
        )
        for r in item.results
    )
    return ReadMessage(message, item.role, item, asks, answers)


def _ask(call: Asked, place: int, effects: Mapping[str, Effect]) -> AskStep:
    tool = call.name or "unknown"
    id = call.id or f"{tool}-{secrets.token_hex(6)}"
    return AskStep(id, tool, call.input, effects.get(tool) or effect_of(tool, call.input))


def _words(output: Value) -> str:
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text[:500]


Special = tuple[tuple[AskStep, ...], tuple[tuple[AnswerStep, bool], ...]]


def _hosted(item: dict[str, Any], effects: Mapping[str, Effect]) -> Special | None:
    """Calls of the responses API beside functions: shells, computers, searches. Some are answered by an item of their
    own, some by the provider in the same item."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind in ("function_call", "custom_tool_call", "message"):
        return None
    call = item.get("call_id")
    if kind.endswith("_call_output") and isinstance(call, str):
        return None if kind in ("function_call_output", "custom_tool_call_output") else ((), (_output(item, call),))
    if not kind.endswith("_call"):
        return None
    given = next(
        (item[k] for k in ("action", "operation", "arguments", "code", "queries", "input") if item.get(k)), None
    )
    tool = str(item.get("name") or kind.removesuffix("_call"))
    effect = effects.get(tool) or ("read" if "search" in kind else effect_of(tool, given))
    id = call if isinstance(call, str) else str(item.get("id") or f"{tool}-{secrets.token_hex(6)}")
    ask = AskStep(id, tool, given, effect)
    if isinstance(call, str):
        return (ask,), ()
    error = item.get("error")
    outcome: Outcome = "failed" if error or item.get("status") == "failed" else "succeeded"
    return (ask,), ((AnswerStep(id, item, outcome, _words(error) if error else ""), outcome == "failed"),)


def _output(item: dict[str, Any], call: str) -> tuple[AnswerStep, bool]:
    is_failed = item.get("status") == "failed"
    return AnswerStep(call, item.get("output"), "failed" if is_failed else "succeeded"), is_failed


class MessagePlan:
    """Plans the events of messages that follow each other, from how the session stands."""

    def __init__(
        self,
        *,
        is_open: bool,
        has_reply: bool,
        pending: Mapping[str, Mapping[str, Value]],
        ask_of: Callable[[str], AskStep | None],
        reply: ReplyFacts | None = None,
        calls: Mapping[str, CallFacts] | None = None,
        turn_id: str = "",
        stays_open: bool = False,
    ) -> None:
        self._is_open = is_open
        self._has_reply = has_reply
        self._pending = {a: (str(p["effect"]), str(p["tool"])) for a, p in pending.items() if p["status"] in _OPEN}
        self._uncertain = {
            a: (str(p["effect"]), str(p["tool"])) for a, p in pending.items() if p["status"] == "uncertain"
        }
        self._ask_of = ask_of
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
        answered = {answer.id for message in messages for answer, _ in message.answers}
        for place, message in enumerate(messages):
            self._drafts = []
            if message.role == "assistant":
                self._said(message, messages[place:], answered)
            else:
                self._group = ""
                self._heard(message)
            if not self._drafts:  # it says nothing, and is there
                self._put(ev.MessageAdded(role=message.role, content=_content(message)))
            out.append(PlannedItem(message.message, self._drafts))
        last = messages[-1] if messages else None
        is_final = last is not None and last.role == "assistant" and not last.asks and last.says_something
        if is_final and self._is_open and not self._pending and not self._stays_open:
            self._put(ev.TurnEnded(), actor="runtime")
        return out

    def _put(self, event: ev.Event, *, actor: str = "agent", trust: Any = "trusted", source: str = "") -> None:
        self._drafts.append(EventDraft(event, actor=actor, trust=trust, source=source))

    # What the model was told

    def _heard(self, message: ReadMessage) -> None:
        for answer, is_known in message.answers:
            self._answer(answer, is_known)
        content = _content(message)
        if message.role == "system":
            self._put(ev.MessageAdded(role="system", content=content), actor="runtime")
        elif message.role == "user" and (content or not message.answers):
            is_more = self._is_open and (not self._has_reply or bool(message.answers))
            if is_more:
                self._put(ev.MessageAdded(role="user", content=content), actor="user")
            else:
                self._begin(content)

    def _begin(self, given: Value) -> None:
        self._leave()
        self._put(ev.TurnStarted(input=given, id=self._turn_id), actor="user")
        self._is_open, self._has_reply, self._turn_id = True, False, ""

    def _leave(self) -> None:
        """Ends the turn before: what was asked for in it and not answered may have run."""
        if not self._is_open:
            return
        is_cut = bool(self._pending)
        for action, (effect, _) in self._pending.items():
            failure = ev.Failure("interrupted", NO_ANSWER, retryable=True)
            event: ev.Event = (
                ev.ActionFailed(action=action, error=failure, why=NO_ANSWER)
                if effect in _SAFE
                else ev.ActionUncertain(action=action, why=NO_ANSWER)
            )
            self._put(event, actor="runtime")
        self._uncertain |= {a: e for a, e in self._pending.items() if e[0] not in _SAFE}
        self._pending.clear()
        self._put(
            ev.TurnEnded(outcome="interrupted" if is_cut or not self._has_reply else "completed"), actor="runtime"
        )
        self._is_open = False

    def _answer(self, answer: AnswerStep, is_known: bool) -> None:
        facts = self._calls.get(answer.id)
        if facts is not None and not is_known:
            answer = msgspec.structs.replace(answer, outcome=facts.outcome, error=facts.error, cost=facts.cost)
        held = self._pending.pop(answer.id, None) or self._uncertain.pop(answer.id, None)
        if held is not None:
            ask = AskStep(answer.id, held[1], None, held[0])  # type: ignore[arg-type]  # as it was stored
            event: ev.Event = settled_call(answer, answer.output)
        else:
            ask = self._ask_of(answer.id) or AskStep(answer.id or f"call-{secrets.token_hex(6)}", "unknown", None)
            event = recorded_call(ask, answer, answer.output)
        self._put(event, actor="tool", trust=trust_of(ask), source=source_of(ask))

    # What it said

    def _said(self, message: ReadMessage, rest: Sequence[ReadMessage], answered: set[str]) -> None:
        if not self._is_open:
            self._put(ev.TurnStarted(id=self._turn_id), actor="runtime")
            self._is_open, self._turn_id = True, ""
        is_first = not self._group
        if is_first:
            self._group = self._reply.id or str(message.message.get("id") or f"reply-{secrets.token_hex(6)}")
            self._part = 0
        blocks = _blocks(message)
        if is_first and not blocks:
            blocks = [{"type": "tool_use", "id": a.id, "name": a.tool} for m in _run(rest) for a in m.asks]
        if blocks:
            self._put_reply(blocks)
        self._has_reply = True
        own = {answer.id: answer for answer, _ in message.answers}
        for ask in message.asks:
            ask = msgspec.structs.replace(ask, group=self._group)
            if ask.id in own:
                event: ev.Event = recorded_call(ask, own[ask.id], own[ask.id].output)
                self._put(event, actor="tool", trust=trust_of(ask), source=source_of(ask))
            elif ask.id in self._pending or ask.id in self._uncertain:
                # The id is in use: a client that numbers its calls anew. It stays with the one that was first.
                self._put(ev.MessageAdded(role="assistant", content={"id": ask.id, "asks": ask.input}, name="call"))
            else:
                self._put(requested_call(ask))
                if ask.id not in answered:
                    self._put(ev.ActionStarted(action=ask.id), actor="runtime")
                self._pending[ask.id] = (ask.effect, ask.tool)

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
        self._put(event)


def _run(messages: Sequence[ReadMessage]) -> list[ReadMessage]:
    """The messages of the reply that begins here."""
    end = next((n for n, m in enumerate(messages) if m.role != "assistant"), len(messages))
    return list(messages[:end])


def _content(message: ReadMessage) -> Value:
    """What was said, as far as it is no result of a call: the text where it is one, else as it was given."""
    given, item = message.message.get("content"), message.item
    if item is None:
        return given
    if message.role == "tool":
        return None
    is_one_text = isinstance(given, list) and len(given) == 1 and isinstance(item.content, str)
    if isinstance(given, list) and not item.results and not is_one_text:
        return given
    return item.content


def _blocks(message: ReadMessage) -> list[Value]:
    """The blocks of a reply, without the input of calls, which stands in their own events."""
    given = message.message.get("content")
    asks = [{"type": "tool_use", "id": ask.id, "name": ask.tool} for ask in message.asks]
    if isinstance(given, list):
        if not any(isinstance(b, dict) and b.get("type") == "tool_use" for b in given):
            return given if given else asks
        return [{k: v for k, v in b.items() if k != "input"} if _is_call(b) else b for b in given]
    if isinstance(given, str) and given:
        return [{"type": "text", "text": given}, *asks]
    if "role" in message.message or message.asks:
        return asks if "role" in message.message else []
    return [message.message]


def _is_call(block: Value) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"
