"""Messages as most model APIs have them: role, content, tool calls. Trajectories of benchmarks are lists of these."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import storable
from wakelog.importers.steps import CallStep
from wakelog.model.events import Effect
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in
from wakelog.model.values import Value

_decode = msgspec.json.Decoder().decode


def text_of(content: object) -> str:
    """The text of a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    texts = (b if isinstance(b, str) else text_in(as_dict(b), "text") for b in as_list(content))
    return "\n".join(t for t in texts if t)


def blocks_text(content: object) -> str:
    """The texts in a message's content, each on lines of its own, also empty ones."""
    if isinstance(content, str):
        return content
    return "\n".join(b["text"] for b in dicts_in(content) if isinstance(b.get("text"), str))


def json_or_text(given: object) -> Value:
    """What a text of JSON says; the text itself where it is none."""
    if not isinstance(given, str):
        return storable(given)
    try:
        return storable(_decode(given))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return given


def asks_of(message: dict[str, Any], group: str, effects: dict[str, Effect] | None = None) -> list[CallStep]:
    """The calls that a message of a model asks for."""
    asks = []
    for number, call in enumerate(as_list(message.get("tool_calls"))):
        function = as_dict(as_dict(call).get("function"))
        tool = text_in(function, "name") or "unknown"
        given = json_or_text(function.get("arguments"))
        id = text_in(as_dict(call), "id") or f"{group}.{number}"
        effect = (effects or {}).get(tool) or effect_of(tool, given)
        asks.append(CallStep(id, tool, given, effect, group=group))
    return asks


def blocks_of(text: str, asks: list[CallStep], thinking: str = "") -> list[dict[str, Value]]:
    """The content of a reply: what was thought and said, and a mention of each call."""
    blocks: list[dict[str, Value]] = [{"type": "thinking", "thinking": thinking}] if thinking else []
    if text.strip() or not (asks or blocks):
        blocks.append({"type": "text", "text": text})
    return blocks + [{"type": "tool_use", "id": ask.id, "name": ask.tool} for ask in asks]
