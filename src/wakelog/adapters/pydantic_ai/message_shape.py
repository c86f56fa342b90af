"""Converts Pydantic AI messages to the shape of a provider's messages, from which events are made.

A request has system prompts, user prompts and tool results. A response has the model's text and tool calls. Other parts
are kept, but make no events.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError

from wakelog.adapters.exact_values import stored_form
from wakelog.adapters.item_log import PlannedItem
from wakelog.adapters.message_events import MessagePlan, ReadMessage, read_message
from wakelog.errors import InvalidInputError
from wakelog.importers.common.provider_messages import VERDICT
from wakelog.model import events as ev
from wakelog.model.events import Effect
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage
from wakelog.model.values import Value

AGENT = "pydantic-ai"
FORMAT = "pydantic-ai"


def dump_message(message: Any, where: str) -> dict[str, Any]:
    """A message as JSON. InvalidInputError names the path of a part that has no JSON form."""
    try:
        [value] = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    except PydanticSerializationError as exc:
        raise InvalidInputError(
            f"{where}{_culprit(message)} cannot be stored: {exc}",
            kind="not-a-value",
            hint="let the tool return JSON, a dataclass or a Pydantic model",
        ) from exc
    found: dict[str, Any] = stored_form(value, where)
    return found


def _culprit(message: Any) -> str:
    """The part, or the metadata, that has no JSON form."""
    for place, part in enumerate(message.parts):
        if not _has_json_form(dataclasses.replace(message, parts=[part], metadata=None)):
            return f".parts[{place}]"
    return ".metadata" if _has_json_form(dataclasses.replace(message, metadata=None)) else ""


def _has_json_form(message: Any) -> bool:
    try:
        ModelMessagesTypeAdapter.dump_python([message], mode="json")
    except PydanticSerializationError:
        return False
    return True


def load_message(value: dict[str, Any]) -> Any:
    """The message of a dumped value."""
    [message] = ModelMessagesTypeAdapter.validate_python([value])
    return message


def plan_message(
    plan: MessagePlan,
    item: Value,
    message: dict[str, Any],
    id: str,
    effects: Mapping[str, Effect],
    waiting: Collection[str] = (),
) -> PlannedItem:
    """Plans the events of one message, and the item that keeps it."""
    read = [msgspec.structs.replace(part, waiting=frozenset(waiting)) for part in read_parts(message, effects)]
    drafts = [draft for planned in plan.plan(read) for draft in planned.drafts]
    if not drafts:
        added = ev.MessageAdded(role="system", content=message["parts"], name=FORMAT)
        drafts.append(EventDraft(added, actor="runtime"))
    return PlannedItem(item, drafts, id)


def read_parts(message: dict[str, Any], effects: Mapping[str, Effect]) -> list[ReadMessage]:
    """A message as the messages that a provider would have for it."""
    shaped = _response(message) if message["kind"] == "response" else _request(message)
    return [read_message(part, effects) for part in shaped]


def _request(message: dict[str, Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in message["parts"]:
        kind, content = part.get("part_kind"), part.get("content")
        if kind == "system-prompt":
            out.append({"role": "system", "content": content})
        elif kind == "user-prompt":
            out.append({"role": "user", "content": _said(content)})
        elif kind in ("tool-return", "retry-prompt") and part.get("tool_call_id") and part.get("tool_name"):
            is_error = kind == "retry-prompt" or part.get("outcome", "success") != "success"
            if part.get("outcome") == "denied":
                results.append({"type": VERDICT, "tool_use_id": part["tool_call_id"], "approved": False})
            results.append(
                {"type": "tool_result", "tool_use_id": part["tool_call_id"], "content": content, "is_error": is_error}
            )
        elif kind in ("retry-prompt", "retry-feedback") and content:
            out.append({"role": "system", "content": content})
    if results:
        out.insert(0, {"role": "user", "content": results})
    return out


def _said(content: Value) -> Value:
    """What a user said: words, and beside them pictures and files."""
    if not isinstance(content, list):
        return content
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return [_block(item) if isinstance(item, dict) else {"type": "text", "text": str(item)} for item in content]


def _block(item: dict[str, Any]) -> dict[str, Any]:
    media, url, data = str(item.get("media_type")), item.get("url"), item.get("data")
    if item.get("kind") == "text-content":
        return {"type": "text", "text": str(item.get("content"))}
    if item.get("kind") in ("image-url", "binary") and (media.startswith("image/") or item["kind"] == "image-url"):
        return {"type": "image", "source": {"url": url} if url else {"media_type": media, "data": data}}
    return {"type": "document", "source": {}, "title": str(url or item.get("file_id") or media)}


def _response(message: dict[str, Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in message["parts"]:
        match part.get("part_kind"):
            case "text":
                blocks.append({"type": "text", "text": part.get("content") or ""})
            case "thinking":
                blocks.append({"type": "thinking", "thinking": part.get("content") or ""})
            case "tool-call":
                input = _arguments(part.get("args"))
                name, id = str(part.get("tool_name") or "unknown"), str(part.get("tool_call_id") or "")
                blocks.append({"type": "tool_use", "id": id, "name": name, "input": input})
            case _:
                blocks.append({"type": str(part.get("part_kind") or "part"), "part": part})
    return [{"role": "assistant", "content": blocks or ""}]


def _arguments(given: Any) -> Value:
    if not isinstance(given, str):
        return given
    try:
        return stored_form(msgspec.json.decode(given), "args")
    except (msgspec.DecodeError, InvalidInputError):
        return given


def usage_of_response(message: dict[str, Any]) -> Usage:
    fields = message.get("usage") or {}

    def count(name: str) -> int:
        found = fields.get(name)
        return found if isinstance(found, int) and found > 0 else 0

    read, written, long = count("cache_read_tokens"), count("cache_write_tokens"), count("cache_write_1h_tokens")
    long = min(long, written)
    reasoned = min(count("output_reasoning_tokens"), count("output_tokens"))
    return Usage(
        input=max(0, count("input_tokens") - read - written),
        cache_read=read,
        cache_write=written - long,
        cache_write_1h=long,
        output=count("output_tokens") - reasoned,
        reasoning=reasoned,
    )
