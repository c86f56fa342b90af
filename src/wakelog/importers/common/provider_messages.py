"""Reads one message of a model API: its role, the calls it requests, the results it carries.

Messages may be in the format of OpenAI's chat completions, OpenAI's responses, or Anthropic's messages, also mixed in
one list. Adapters read the items of frameworks with this; importers read what the frameworks stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from wakelog.importers.common.chat import call_block, text_block
from wakelog.importers.common.tools import effect_of
from wakelog.importers.steps import CallStep, Outcome, ResultStep
from wakelog.instruments.model_request import ConversationItem, read_request
from wakelog.model.events import Effect
from wakelog.model.json_fields import without_fields
from wakelog.model.parts import Asked
from wakelog.model.values import Value

MessageShape = Literal["chat", "responses", "anthropic"]
_WIRE = {
    "chat": ("chat/completions", "messages"),
    "responses": ("responses", "input"),
    "anthropic": ("v1/messages", "messages"),
}
_ANTHROPIC = frozenset({"text", "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
_RESPONSES = frozenset({"input_text", "output_text", "refusal", "input_image", "input_file"})


class ReadMessage(msgspec.Struct, frozen=True):
    """One message and what it says."""

    message: dict[str, Any]
    role: Literal["system", "user", "assistant", "tool"]
    item: ConversationItem | None
    asks: tuple[CallStep, ...] = ()
    answers: tuple[tuple[ResultStep, bool], ...] = ()
    """Results of calls. The flag says whether the message itself reports a failure."""

    @property
    def says_something(self) -> bool:
        """Whether it has text. Thinking alone is not an answer."""
        return self.item is not None and bool(self.item.text) and self.message.get("type") in (None, "message")

    @property
    def digest(self) -> bytes:
        """Identifies the message, whatever a client changes around its text."""
        return self.item.digest if self.item is not None else msgspec.json.encode(self.message.get("content"))


def message_shape(message: Mapping[str, Any]) -> MessageShape:
    """The API format of a message."""
    kind, content = message.get("type"), message.get("content")
    kinds = {b.get("type") for b in content if isinstance(b, dict)} if isinstance(content, list) else set()
    if kinds & _RESPONSES or (isinstance(kind, str) and kind != "message") or "call_id" in message:
        return "responses"
    if message.get("tool_calls") or message.get("role") in ("tool", "function"):
        return "chat"
    return "anthropic" if kinds & (_ANTHROPIC - {"text", "image"}) or kind == "message" else "chat"


def read_message(message: dict[str, Any], effects: Mapping[str, Effect] | None = None) -> ReadMessage:
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
    return ReadMessage(message, item.role, item, asks, answers)


def _ask(call: Asked, effects: Mapping[str, Effect]) -> CallStep:
    tool = call.name or "unknown"
    id = call.id or f"{tool}-{secrets.token_hex(6)}"
    return CallStep(id, tool, call.input, effects.get(tool) or effect_of(tool, call.input))


def _error_text(output: Value) -> str:
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text[:500]


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
    given = next(
        (item[k] for k in ("action", "operation", "arguments", "code", "queries", "input") if item.get(k)), None
    )
    tool = str(item.get("name") or kind.removesuffix("_call"))
    effect = effects.get(tool) or ("read" if "search" in kind else effect_of(tool, given))
    id = call if isinstance(call, str) else str(item.get("id") or f"{tool}-{secrets.token_hex(6)}")
    ask = CallStep(id, tool, given, effect)
    if isinstance(call, str):
        return (ask,), ()
    error = item.get("error")
    outcome: Outcome = "failed" if error or item.get("status") == "failed" else "succeeded"
    return (ask,), ((ResultStep(id, item, outcome, _error_text(error) if error else ""), outcome == "failed"),)


def said_content(message: ReadMessage) -> Value:
    """The message's content without results of calls: a plain string if it is one text, otherwise unchanged."""
    given, item = message.message.get("content"), message.item
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
    given = message.message.get("content")
    asks = [call_block(ask.id, ask.tool) for ask in message.asks]
    if isinstance(given, list):
        if not any(map(_is_call, given)):
            return given if given else asks
        return [without_fields(b, ("input",)) if _is_call(b) else b for b in given]
    if isinstance(given, str) and given:
        return [text_block(given), *asks]
    if "role" in message.message or message.asks:
        return asks if "role" in message.message else []
    return [message.message]


def _is_call(block: Value) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"
