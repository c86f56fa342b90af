"""A request to a model as it is sent: its provider, and the conversation in it.

Four shapes are read: OpenAI's chat completions and responses, Anthropic's messages, Google's generated content. Each is
a list of items, oldest first: a message, a call that the model requested, or a result. An item is recognised by its
gist (role, text, calls), not by its bytes: clients move cache marks and reorder fields between requests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from wakelog.model.json_fields import dicts_in, text_in
from wakelog.model.parts import CHAT_FIELDS, Answered, Asked, Image, Part, Text, Thinking, flat, parts_of, text_of
from wakelog.model.values import Value
from wakelog.runtime.models import SHOWN
from wakelog.runtime.values import HIDDEN

Shape = Literal["openai.chat", "openai.responses", "anthropic.messages", "google.content"]
Role = Literal["user", "assistant", "tool"]

PROVIDERS: dict[Shape, str] = {
    "openai.chat": "openai",
    "openai.responses": "openai",
    "anthropic.messages": "anthropic",
    "google.content": "google",
}
_SYSTEM = frozenset({"system", "developer"})
_GOOGLE = re.compile(r"(?:^|/)(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)$")
_KEYS = re.compile(r"authori[sz]ation|password|secret|credential|(?:^|_|-)(?:key|token)$|apikey", re.IGNORECASE)
_RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})


class CallResult(msgspec.Struct, frozen=True):
    """The result of a tool call in the next request."""

    id: str
    name: str
    output: Value
    is_error: bool = False


class ConversationItem(msgspec.Struct, frozen=True):
    """One item of a conversation."""

    role: Role
    content: Value
    """The content of a message. None for results."""
    parts: tuple[Part, ...]
    results: tuple[CallResult, ...]
    digest: bytes
    """Identifies the item in later requests."""

    @property
    def text(self) -> str:
        return flat(p for p in self.parts if isinstance(p, Text | Image))

    @property
    def asked(self) -> tuple[Asked, ...]:
        return tuple(p for p in self.parts if isinstance(p, Asked))


class ModelRequest(msgspec.Struct, frozen=True):
    """A request of a program to a model."""

    shape: Shape
    provider: str
    """The provider's name in the price table. Empty if unknown."""
    model: str
    body: dict[str, Any]
    system: str
    items: tuple[ConversationItem, ...]
    is_stream: bool = False
    previous: str = ""
    """The id of the answer, or of the provider's conversation, that this request continues. Then the items are only the
    new ones."""
    is_forced: bool = False
    """Whether the model had to request a tool. That is a way to get structured output, so the answer ends the turn."""


def shape_of(path: str) -> Shape | None:
    """The shape of requests to a path. None if it does not call a model."""
    path = path.partition("?")[0].rstrip("/")
    if path.endswith("/chat/completions") or path == "chat/completions":
        return "openai.chat"
    if path.endswith("/responses") or path == "responses":
        return "openai.responses"
    if path.endswith("/messages") and "/threads/" not in path:
        return "anthropic.messages"
    return "google.content" if _GOOGLE.search(path) else None


def read_request(path: str, body: Value, provider: str | None = None) -> ModelRequest | None:
    """Reads the request to a path. None if it does not call a model. `provider` is the model's provider, if it differs
    from the one whose format is used."""
    shape = shape_of(path)
    if shape is None or not isinstance(body, dict):
        return None
    body = {name: value if name in SHOWN else _without_keys(value) for name, value in body.items() if name[:1] != "_"}
    match = _GOOGLE.search(path.partition("?")[0].rstrip("/"))
    model = match["model"] if match else body.get("model")
    system, items = _READERS[shape](body)
    return ModelRequest(
        shape=shape,
        provider=PROVIDERS[shape] if provider is None else provider,
        model=model if isinstance(model, str) else "model",
        body=body | ({"model": model} if match else {}),
        system=system,
        items=tuple(items),
        is_stream=match["verb"] == "streamGenerateContent" if match else body.get("stream") is True,
        previous=_previous_id(body) if shape == "openai.responses" else "",
        is_forced=_is_forced(body),
    )


def _previous_id(body: dict[str, Any]) -> str:
    kept = body.get("conversation")
    kept = kept.get("id") if isinstance(kept, dict) else kept
    return next((v for v in (body.get("previous_response_id"), kept) if isinstance(v, str)), "")


def _is_forced(body: dict[str, Any]) -> bool:
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return choice.get("type") in ("function", "tool", "any", "custom")
    if isinstance(tool := body.get("toolConfig"), dict) and isinstance(how := tool.get("functionCallingConfig"), dict):
        return how.get("mode") == "ANY"
    return choice in ("required", "any")


def _without_keys(value: Value) -> Value:
    """Hides keys in a parameter, such as those of tools that the provider calls itself."""
    if isinstance(value, list):
        return [_without_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_key(name, held) for name, held in value.items()}


def _without_key(name: str, value: Value) -> Value:
    if name == "headers" and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    is_key = name == "headers" or (isinstance(value, str) and _KEYS.search(name))
    return HIDDEN if is_key else _without_keys(value)


# The four shapes

Reading = tuple[str, list[ConversationItem]]


def _chat(body: dict[str, Any]) -> Reading:
    system, items = [], []
    for message in dicts_in(body.get("messages")):
        role = message.get("role")
        if role in _SYSTEM:
            system.append(_text(message.get("content")))
        elif role in ("tool", "function"):
            result = CallResult(text_in(message, "tool_call_id"), text_in(message, "name"), message.get("content"))
            items.append(_item("tool", None, parts_of({**message, "role": "tool"}), (result,)))
        else:
            is_reply = role == "assistant"
            content = message if is_reply and any(map(message.get, CHAT_FIELDS)) else message.get("content")
            items.append(_item("assistant" if is_reply else "user", content, parts_of(_as_message(message))))
    return "\n\n".join(filter(None, system)), items


def _messages(body: dict[str, Any]) -> Reading:
    items = []
    for message in dicts_in(body.get("messages")):
        content = message.get("content")
        blocks = dicts_in(content)
        results = tuple(
            CallResult(text_in(b, "tool_use_id"), "", b.get("content"), b.get("is_error") is True)
            for b in blocks
            if b.get("type") == "tool_result"
        )
        said: Value = [b for b in blocks if b.get("type") != "tool_result"] if results else content
        role: Role = "assistant" if message.get("role") == "assistant" else "user" if said else "tool"
        items.append(_item(role, said or None, parts_of(_as_message(message)), results))
    return _text(body.get("system")), items


def _responses(body: dict[str, Any]) -> Reading:
    given = body.get("input")
    system, items = [_text(body.get("instructions"))], []
    if isinstance(given, str):
        items.append(_item("user", given, (Text(given),)))
    for each in dicts_in(given):
        role = each.get("role")
        if role in _SYSTEM:
            system.append(_text(each.get("content")))
        elif each.get("type") in _RESULTS:
            result = CallResult(text_in(each, "call_id"), "", each.get("output"))
            items.append(_item("tool", None, parts_of(each), (result,)))
        elif role == "user":
            items.append(_item("user", each.get("content"), parts_of(_as_message(each))))
        else:
            items.append(_item("assistant", each.get("content") or each, parts_of(each)))
    return "\n\n".join(filter(None, system)), items


def _contents(body: dict[str, Any]) -> Reading:
    items = []
    given = body.get("contents")
    for content in dicts_in(given if isinstance(given, list) else [given]):
        pieces = dicts_in(content.get("parts"))
        answered = [r for p in pieces if isinstance(r := p.get("functionResponse") or p.get("function_response"), dict)]
        results = tuple(CallResult(text_in(r, "id"), text_in(r, "name"), r.get("response")) for r in answered)
        said = [p for p in pieces if not p.keys() & {"functionResponse", "function_response"}]
        role: Role = "assistant" if content.get("role") == "model" else "user" if said else "tool"
        parts = parts_of({"role": "model", "parts": pieces})
        items.append(_item(role, {"role": str(content.get("role")), "parts": said} if said else None, parts, results))
    system = body.get("systemInstruction") or body.get("system_instruction")
    pieces = dicts_in(system.get("parts")) if isinstance(system, dict) else []
    return flat(parts_of({"role": "user", "parts": pieces})) if pieces else "", items


_READERS: dict[Shape, Callable[[dict[str, Any]], Reading]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "google.content": _contents,
}


def _item(
    role: Role, content: Value, parts: tuple[Part, ...], results: tuple[CallResult, ...] = ()
) -> ConversationItem:
    # A message that is only text is stored as a string, whatever blocks it came in.
    said = [p for p in parts if not isinstance(p, Answered)]
    if content is not None and all(isinstance(p, Text) for p in said):
        content = flat(said)
    return ConversationItem(role, content, parts, results, digest_of(role, parts, results))


def digest_of(role: str, parts: Iterable[Part], results: tuple[CallResult, ...] = ()) -> bytes:
    """Identifies an item by its role, text and calls."""
    gist: list[Any] = [role, *_gist(parts)]
    gist += [[r.id, r.name, *_gist(parts_of(r.output if _is_said(r.output) else text_of(r.output)))] for r in results]
    return hashlib.sha256(msgspec.json.encode(gist, enc_hook=str, order="sorted")).digest()


def _is_said(output: Value) -> bool:
    """Whether a result is text or content blocks, as opposed to data."""
    return isinstance(output, str) or (isinstance(output, list) and len(dicts_in(output)) == len(output))


def _gist(parts: Iterable[Part]) -> list[Any]:
    gist: list[Any] = []
    for part in parts:
        match part:
            case Text(text):
                gist.append(" ".join(text.split()))
            case Asked(id, name, given):
                gist.append([id, name, given])
            case Image():
                gist.append([part.url, hashlib.sha256(part.data.encode()).hexdigest()])
            case Answered() | Thinking():
                pass  # results are added above; whoever repeats a message may leave out its thinking
    return gist


def _as_message(message: dict[str, Any]) -> dict[str, Any]:
    """The message without its type, which would make it a block."""
    said = {name: message[name] for name in CHAT_FIELDS if message.get(name)}
    return {"role": message.get("role", "user"), "content": message.get("content"), **said}


def _text(content: Value) -> str:
    return flat(parts_of(content)) if content else ""
