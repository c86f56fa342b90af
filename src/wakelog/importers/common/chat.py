"""Messages as most model APIs define them: role, content, tool calls. Benchmark trajectories are lists of these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from wakelog.importers.common.tools import effect_of
from wakelog.importers.source.files import decode_json, json_digest, storable
from wakelog.importers.steps import CallStep, MessageStep, PromptStep, SourceRecord, Step
from wakelog.model.events import Effect
from wakelog.model.json_fields import as_dict, as_list, dicts_in, text_in
from wakelog.model.values import Value


def listed_records(
    items: object, what: str, read: Callable[[int, dict[str, Any]], SourceRecord]
) -> Iterator[tuple[SourceRecord, int]]:
    """The records of a document's list, with their sizes. An item that is not an object is kept as it is; `what` names
    it."""
    for number, item in enumerate(as_list(items)):
        size = len(str(item))
        if isinstance(item, dict):
            yield read(number, item), size
        else:
            why = f"{what} {number} is not an object"
            yield SourceRecord(f"{number}.{json_digest(item, 8)}", rest=item, broken=why), size


def text_of(content: object) -> str:
    """The text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    texts = (b if isinstance(b, str) else text_in(as_dict(b), "text") for b in as_list(content))
    return "\n".join(t for t in texts if t)


def blocks_text(content: object) -> str:
    """All text blocks of a message's content, joined by line breaks, including empty ones."""
    if isinstance(content, str):
        return content
    return "\n".join(b["text"] for b in dicts_in(content) if isinstance(b.get("text"), str))


def json_or_text(given: object) -> Value:
    """Decodes a JSON string; returns the string itself if it is not JSON."""
    if not isinstance(given, str):
        return storable(given)
    try:
        return decode_json(given)
    except ValueError:
        return given


def calls_of(message: dict[str, Any], group: str, effects: dict[str, Effect] | None = None) -> list[CallStep]:
    """The calls that a model's message requests."""
    calls = []
    for number, value in enumerate(as_list(message.get("tool_calls"))):
        function = as_dict(as_dict(value).get("function"))
        tool = text_in(function, "name") or "unknown"
        input = json_or_text(function.get("arguments"))
        id = text_in(as_dict(value), "id") or f"{group}.{number}"
        effect = (effects or {}).get(tool) or effect_of(tool, input)
        calls.append(CallStep(id, tool, input, effect, group=group))
    return calls


def task_steps(content: Value, issue: re.Match[str] | None) -> tuple[Step, ...]:
    """The task of a benchmark. The harness puts its own instructions around it, which are not the user's."""
    if issue is None or not issue[1].strip():
        return (PromptStep(content),)
    around = content[: issue.start(1)] + content[issue.end(1) :]
    return PromptStep(issue[1]), MessageStep("user", around, name="context")


def first_choice(response: dict[str, Any]) -> dict[str, Any]:
    """The first choice of a chat completion."""
    return as_dict(next(iter(as_list(response.get("choices"))), None))


def text_block(text: str) -> dict[str, Value]:
    return {"type": "text", "text": text}


def thinking_block(text: str) -> dict[str, Value]:
    return {"type": "thinking", "thinking": text}


def call_block(id: str, tool: str) -> dict[str, Value]:
    """Mentions a call in a reply. Its input is in the `CallStep`."""
    return {"type": "tool_use", "id": id, "name": tool}


def image_block(media_type: str, data: str) -> dict[str, Value]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def join_texts(blocks: Value) -> Value:
    """A list of only text blocks as one string; any other content unchanged."""
    if not isinstance(blocks, list) or not blocks or not all(map(_is_text, blocks)):
        return blocks
    return "\n".join(block["text"] for block in blocks)


def _is_text(block: Value) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def blocks_of(text: str, calls: list[CallStep], thinking: str = "") -> list[dict[str, Value]]:
    """The content of a reply: thinking, text, and a block for each call."""
    blocks = [thinking_block(thinking)] if thinking else []
    if text.strip() or not (calls or blocks):
        blocks.append(text_block(text))
    return blocks + [call_block(call.id, call.tool) for call in calls]
