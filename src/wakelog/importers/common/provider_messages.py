"""Reads one message of a model API: its role, the calls it requests, the results it carries.

Messages may be in the format of OpenAI's chat completions, OpenAI's responses, or Anthropic's messages, also mixed in
one list. Adapters read the items of frameworks with this; importers read what the frameworks stored.

Adapters add two blocks of their own, because frameworks ask a person before a call runs: `{"type": "approval_request",
"tool_use_id": …}` beside the call, and `{"type": "approval_response", "tool_use_id": …, "approved": …}`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from wakelog.importers.common.chat import call_block, json_or_text, text_block, thinking_block
from wakelog.importers.common.tools import effect_of
from wakelog.importers.steps import CallStep, Outcome, ResultStep
from wakelog.instruments.model_request import ConversationItem, digest_of, read_request
from wakelog.model.events import Effect
from wakelog.model.json_fields import as_dict, dicts_in, text_in, without_fields
from wakelog.model.parts import CHAT_FIELDS, Asked, parts_of
from wakelog.model.values import Value

MessageShape = Literal["chat", "responses", "anthropic"]
_WIRE = {
    "chat": ("chat/completions", "messages"),
    "responses": ("responses", "input"),
    "anthropic": ("v1/messages", "messages"),
}
_HOSTED = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls that Anthropic's servers run themselves. The answer holds their results too."""
VERDICT = "approval_response"
_ANTHROPIC = _HOSTED | {"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
_RESPONSES = frozenset({"input_text", "output_text", "refusal", "input_image", "input_file"})


class ReadMessage(msgspec.Struct, frozen=True):
    """One message and what it says."""

    message: dict[str, Any]
    role: Literal["system", "user", "assistant", "tool"]
    item: ConversationItem | None
    asks: tuple[CallStep, ...] = ()
    answers: tuple[tuple[ResultStep, bool], ...] = ()
    """Results of calls. The flag says whether the message itself reports a failure."""
    waiting: frozenset[str] = frozenset()
    """Those of the calls that must be approved before they run."""
    verdicts: tuple[tuple[str, bool], ...] = ()
    """Calls that were approved, or denied."""

    @property
    def says_something(self) -> bool:
        """Whether it has text. Thinking alone is not an answer."""
        return self.item is not None and bool(self.item.text) and self.message.get("type") in (None, "message")

    @property
    def open_asks(self) -> tuple[CallStep, ...]:
        """The calls whose results come in later messages."""
        own = {answer.id for answer, _ in self.answers}
        return tuple(ask for ask in self.asks if ask.id not in own)

    @property
    def digest(self) -> bytes:
        """Identifies the message, whatever a client changes around its text."""
        if self.item is not None:
            return self.item.digest
        return digest_of("system", parts_of(self.message.get("content", self.message)))


def message_shape(message: Mapping[str, Any]) -> MessageShape:
    """The API format of a message."""
    kind, content = message.get("type"), message.get("content")
    kinds = {b.get("type") for b in content if isinstance(b, dict)} if isinstance(content, list) else set()
    if kinds & _RESPONSES or (isinstance(kind, str) and kind != "message") or "call_id" in message:
        return "responses"
    if any(map(message.get, CHAT_FIELDS)) or message.get("role") in ("tool", "function"):
        return "chat"
    return "anthropic" if kinds & (_ANTHROPIC - {"text", "image"}) or kind == "message" else "chat"


def is_message(value: dict[str, Any]) -> bool:
    """True if it has a role or a type, as every message does."""
    return bool(text_in(value, "role") or text_in(value, "type"))


def read_message(message: dict[str, Any], effects: Mapping[str, Effect] | None = None) -> ReadMessage:
    if not is_message(message):  # what it says is unknown: it may be encrypted
        return ReadMessage(message, "system", None)
    if (approval := _read_approval(message, effects or {})) is not None:
        return approval
    hosted = _read_hosted_call(message, effects or {})
    path, name = _WIRE[message_shape(message)]
    request = read_request(path, {name: [message]})
    assert request is not None
    if not request.items:
        return ReadMessage(message, "system", None)
    item = request.items[0]
    if hosted is not None:
        asks, answers = hosted
        return ReadMessage(message, "tool" if answers and not asks else "assistant", item, asks, answers)
    asks = tuple(_ask(call, effects or {}) for call in item.asked)
    answers = tuple(
        (
            ResultStep(r.id, r.output, "failed", _error_text(r.output)) if r.is_error else ResultStep(r.id, r.output),
            r.is_error,
        )
        for r in item.results
    )
    blocks = dicts_in(message.get("content"))
    asks += tuple(
        _ask(Asked(text_in(b, "id"), text_in(b, "name"), b.get("input")), effects or {})
        for b in blocks
        if b.get("type") in _HOSTED
    )
    answers += tuple(_hosted_answer(b) for b in blocks if _is_hosted_result(b))
    waiting = frozenset(text_in(b, "tool_use_id") for b in blocks if b.get("type") == "approval_request")
    verdicts = tuple((text_in(b, "tool_use_id"), b.get("approved") is True) for b in blocks if b.get("type") == VERDICT)
    return ReadMessage(message, item.role, item, asks, answers, waiting, verdicts)


def _is_hosted_result(block: dict[str, Any]) -> bool:
    return text_in(block, "type").endswith("_tool_result")


def _hosted_answer(block: dict[str, Any]) -> tuple[ResultStep, bool]:
    content = block.get("content")
    failed = block.get("is_error") is True or text_in(as_dict(content), "type").endswith("_error")
    error = (text_in(as_dict(content), "error_code") or _error_text(content)) if failed else ""
    return ResultStep(text_in(block, "tool_use_id"), content, "failed" if failed else "succeeded", error), failed


def _ask(call: Asked, effects: Mapping[str, Effect]) -> CallStep:
    tool = call.name or "unknown"
    id = call.id or f"{tool}-{secrets.token_hex(6)}"
    return CallStep(id, tool, call.input, effects.get(tool) or effect_of(tool, call.input))


def _error_text(output: Value) -> str:
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text[:500]


def _read_approval(item: dict[str, Any], effects: Mapping[str, Effect]) -> ReadMessage | None:
    """Reads the responses API's question whether a call may run, and the answer to it."""
    match item.get("type"):
        case "mcp_approval_request":
            name = text_in(item, "name")
            value = next((p.input for p in parts_of({**item, "type": "function_call"}) if isinstance(p, Asked)), None)
            ask = _ask(Asked(text_in(item, "id"), name, value), effects)
            return ReadMessage(item, "assistant", None, (ask,), waiting=frozenset((ask.id,)))
        case "mcp_approval_response":
            verdict = text_in(item, "approval_request_id"), item.get("approve") is True
            return ReadMessage(item, "user", None, verdicts=(verdict,))
    return None


HostedCall = tuple[tuple[CallStep, ...], tuple[tuple[ResultStep, bool], ...]]


def _read_hosted_call(item: dict[str, Any], effects: Mapping[str, Effect]) -> HostedCall | None:
    """Reads the responses API's calls other than functions: shells, computers, searches. Some get their result in a
    separate item, some in the same one."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind in ("function_call", "custom_tool_call", "message"):
        return None
    call = item.get("call_id")
    if kind.endswith("_call_output") and isinstance(call, str):
        if kind in ("function_call_output", "custom_tool_call_output"):
            return None
        is_failed = item.get("status") == "failed"
        result = ResultStep(call, item.get("output"), "failed" if is_failed else "succeeded")
        return (), ((result, is_failed),)
    if not kind.endswith("_call"):
        return None
    value = next(
        (item[k] for k in ("action", "operation", "arguments", "code", "queries", "input") if item.get(k)), None
    )
    value = json_or_text(value)
    tool = str(item.get("name") or kind.removesuffix("_call"))
    effect = effects.get(tool) or ("read" if "search" in kind else effect_of(tool, value))
    asked = item.get("approval_request_id") or item.get("id")
    id = call if isinstance(call, str) else str(asked or f"{tool}-{secrets.token_hex(6)}")
    ask = CallStep(id, tool, value, effect)
    if isinstance(call, str):
        return (ask,), ()
    error = item.get("error")
    outcome: Outcome = "failed" if error or item.get("status") == "failed" else "succeeded"
    return (ask,), ((ResultStep(id, item, outcome, _error_text(error) if error else ""), outcome == "failed"),)


def said_content(message: ReadMessage) -> Value:
    """The message's content without results of calls: a plain string if it is one text, otherwise unchanged."""
    given, item = message.message.get("content"), message.item
    if message.verdicts and isinstance(given, list):
        given = [block for block in given if block.get("type") not in (VERDICT, "tool_result")]
        return given or None
    if item is None:
        return given
    if message.role == "tool":
        return None
    is_one_text = isinstance(given, list) and len(given) == 1 and isinstance(given[0], dict) and "text" in given[0]
    if isinstance(given, list) and not item.results and not is_one_text:
        return given
    return item.content


def reply_blocks(message: ReadMessage) -> list[Value]:
    """The blocks of a reply, without the input of calls, which is in their own events."""
    content = message.message.get("content")
    asks = [call_block(ask.id, ask.tool) for ask in message.asks]
    if isinstance(content, list):
        if not any(map(_is_call, content)):
            return content if content else asks
        return [without_fields(b, ("input",)) if _is_call(b) else b for b in content]
    if "role" not in message.message:
        return [] if message.asks else [message.message]
    thought = text_in(message.message, "reasoning_content") or text_in(message.message, "reasoning")
    said = text_in(message.message, "content") or (message.item.text if message.item is not None else "")
    return [*([thinking_block(thought)] if thought else ()), *([text_block(said)] if said else ()), *asks]


def _is_call(block: Value) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"
