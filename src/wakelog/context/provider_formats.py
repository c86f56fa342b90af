"""A conversation in the formats of providers: OpenAI chat messages, OpenAI response items, Anthropic messages.

Whatever happened in the session, the provider accepts the list: every call is answered right after it, nothing is
empty, and for Anthropic the roles alternate, beginning and ending with the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from wakelog.context.conversation import Exchange, Said, ShownCall, ShownCalls, exchanges, valid_name
from wakelog.context.items import Item
from wakelog.model.parts import Image, Text, Thinking, flat

Shape = Literal["openai", "responses", "anthropic", "items"]
Message = dict[str, Any]

NOTHING = "(nothing was said yet)"
EARLIER = "(the conversation up to here is not shown)"
GO_ON = "(go on)"


class Shaped(msgspec.Struct, frozen=True):
    """Messages as a provider accepts them; `system` is separate for providers that want it so."""

    messages: list[Message]
    system: str = ""


def shape_items(items: Sequence[Item], known: str, shape: Shape) -> Shaped:
    """The items in a provider's shape. `known` is the durable part, which follows the first system messages."""
    if shape == "items":
        return Shaped(msgspec.to_builtins(list(items)), known)
    talk = exchanges(items)
    first = next((i for i, e in enumerate(talk) if not _is_system(e)), len(talk))
    if known:
        talk.insert(first, Said("system", (Text(known),)))
    shaped = _SHAPES[shape](talk)
    if not any(message.get("role") != "system" for message in shaped.messages):
        return _SHAPES[shape]([*talk, Said("user", (Text(NOTHING),))])
    return shaped


def _is_system(exchange: Exchange) -> bool:
    return isinstance(exchange, Said) and exchange.role == "system"


# OpenAI, chat completions


def _openai(talk: Sequence[Exchange]) -> Shaped:
    out: list[Message] = []
    for each in talk:
        if isinstance(each, Said):
            content = _content(each, "text", lambda image: {"type": "image_url", "image_url": {"url": _url(image)}})
            if content:
                name = {"name": each.name} if each.name and valid_name(each.name) == each.name else {}
                out.append({"role": each.role, "content": content, **name})
            continue
        asked = [_function(call) for call in each.calls]
        if out and out[-1]["role"] == "assistant" and "tool_calls" not in out[-1]:
            out[-1]["tool_calls"] = asked
        else:
            out.append({"role": "assistant", "content": None, "tool_calls": asked})
        out += [{"role": "tool", "tool_call_id": call.id, "content": call.answer} for call in each.calls]
    return Shaped(out)


def _function(call: ShownCall) -> Message:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json(call.input)}}


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _content(message: Said, text_type: str, image_block: Callable[[Image], Message]) -> Any:
    """One text, or a list of blocks if a user's message has images."""
    if message.role != "user" or not any(isinstance(p, Image) for p in message.parts):
        return flat(message.parts)
    return [
        {"type": text_type, "text": p.text} if isinstance(p, Text) else image_block(p)
        for p in message.parts
        if isinstance(p, Text | Image)
    ]


def _url(image: Image) -> str:
    return image.url or f"data:{image.media};base64,{image.data}"


# OpenAI, responses


def _responses(talk: Sequence[Exchange]) -> Shaped:
    out: list[Message] = []
    for each in talk:
        if isinstance(each, Said):
            content = _content(each, "input_text", _input_image)
            if content:
                out.append({"type": "message", "role": each.role, "content": content})
            continue
        for call in each.calls:
            arguments = _json(call.input)
            out.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
        out += [{"type": "function_call_output", "call_id": call.id, "output": call.answer} for call in each.calls]
    return Shaped(out)


def _input_image(image: Image) -> Message:
    return {"type": "input_image", "image_url": _url(image), "detail": "auto"}


# Anthropic, messages


def _anthropic(talk: Sequence[Exchange]) -> Shaped:
    system = "\n\n".join(flat(e.parts) for e in talk if isinstance(e, Said) and e.role == "system")
    messages: list[Message] = []
    for each in talk:
        if isinstance(each, ShownCalls):
            _add(messages, "assistant", [_tool_use(call) for call in each.calls])
            _add(messages, "user", [_tool_result(call) for call in each.calls])
        elif each.role != "system":
            _add(messages, each.role, [b for p in each.parts for b in _anthropic_blocks(each, p)])
    out: list[Message] = []
    for message in messages:
        _add(out, message["role"], _without_last_thoughts(message["content"]))
    if not out or out[0]["role"] != "user":
        out.insert(0, {"role": "user", "content": [_text(EARLIER)]})
    if out[-1]["role"] != "user":
        # Models no longer accept a prefilled answer: the last message must be the user's.
        out.append({"role": "user", "content": [_text(GO_ON)]})
    return Shaped(out, system)


def _without_last_thoughts(blocks: list[Message]) -> list[Message]:
    """Blocks without thinking at the end, which the provider refuses."""
    last = next((i for i in range(len(blocks), 0, -1) if "thinking" not in blocks[i - 1]["type"]), 0)
    return blocks[:last]


def _add(out: list[Message], role: str, blocks: list[Message]) -> None:
    """Appends blocks to the last message if it has the same role, since roles must alternate."""
    if not blocks:
        return
    if out and out[-1]["role"] == role:
        out[-1]["content"].extend(blocks)
    else:
        out.append({"role": role, "content": blocks})


def _anthropic_blocks(message: Said, part: object) -> list[Message]:
    if isinstance(part, Text):
        return [_text(f"{message.name}: {part.text}" if message.name and message.role == "user" else part.text)]
    if isinstance(part, Thinking):
        return [part.block] if message.role == "assistant" else []
    if isinstance(part, Image):
        if message.role != "user":
            return [_text("(an image)")]
        source = (
            {"type": "url", "url": part.url}
            if part.url
            else {"type": "base64", "media_type": part.media, "data": part.data}
        )
        return [{"type": "image", "source": source}]
    return []


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _tool_use(call: ShownCall) -> Message:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}


def _tool_result(call: ShownCall) -> Message:
    return {"type": "tool_result", "tool_use_id": call.id, "content": call.answer, "is_error": call.is_error}


_SHAPES: dict[str, Callable[[Sequence[Exchange]], Shaped]] = {
    "openai": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
}
