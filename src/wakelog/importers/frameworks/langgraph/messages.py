"""Reads messages, inputs and pending nodes of a LangGraph checkpoint, in the form of values.py."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.importers.common.chat import call_block, text_block
from wakelog.model.json_fields import as_dict, count_in, dicts_in, text_in
from wakelog.model.usage import Usage
from wakelog.model.values import Value


class ModelReply(msgspec.Struct, frozen=True):
    """The reply in a model's message."""

    id: str
    content: list[Value]
    """Content blocks, including one for each requested call."""
    calls: list[dict[str, Value]]
    """Those calls: id, name, args."""
    model: str
    usage: Usage
    stop_reason: str


def is_public(name: str) -> bool:
    """Whether a channel belongs to the graph, and not to LangGraph itself."""
    return name[:2] != "__" and name[:1] != "$" and ":" not in name


def has_next(values: dict[str, Any], updated: list[str]) -> bool:
    """Whether a node is due to run: edges write these channels, and sends have a channel of their own."""
    if values.get("__pregel_tasks") or any(name.startswith("branch:to:") for name in values):
        return True
    return any(name.startswith("join:") for name in updated)


def reply_of(item: dict[str, Value]) -> ModelReply:
    text, tool_calls = item["content"], item.get("tool_calls")
    content = list(text) if type(text) is list else [text_block(text)] if text else []
    calls = [call for call in dicts_in(tool_calls) if type(call.get("name")) is str and type(call.get("id")) is str]
    known = {block.get("id") for block in dicts_in(content)}
    content += [call_block(c["id"], c["name"]) for c in calls if c["id"] not in known]
    response_metadata = as_dict(item.get("response_metadata"))
    return ModelReply(
        id=text_in(item, "id"),
        content=content,
        calls=calls,
        model=next((m for key in ("model_name", "model") if type(m := response_metadata.get(key)) is str), ""),
        usage=usage_of_message(item),
        stop_reason=next(
            (s for key in ("finish_reason", "stop_reason") if type(s := response_metadata.get(key)) is str), ""
        ),
    )


def message_kind(item: Value) -> str:
    """The kind of a stored message. Empty for anything else."""
    if type(item) is not dict or "content" not in item:
        return ""
    if "$object" in item:
        kind = item.get("type")
        if type(kind) is not str or type(item.get("response_metadata", {})) is not dict:
            return ""
        kind = kind.removesuffix("MessageChunk").lower()
        return kind if kind in ("human", "ai", "system", "tool", "function", "chat") else ""
    role = item.get("role")
    return role if role in ("user", "assistant", "system", "tool") else ""


def usage_of_message(item: dict[str, Value]) -> Usage:
    """The usage in a model's message, each token counted once."""
    usage_metadata = item.get("usage_metadata")
    if type(usage_metadata) is not dict:
        return Usage()
    details_in, details_out = usage_metadata.get("input_token_details"), usage_metadata.get("output_token_details")
    read, written = count_in(as_dict(details_in), "cache_read"), count_in(as_dict(details_in), "cache_creation")
    thought = count_in(as_dict(details_out), "reasoning")
    return Usage(
        input=max(0, count_in(usage_metadata, "input_tokens") - read - written),
        cache_read=read,
        cache_write=written,
        output=max(0, count_in(usage_metadata, "output_tokens") - thought),
        reasoning=thought,
    )


def input_of(start: Value) -> Value:
    """The input of an invocation as a user would see it: the content of its one message, or all of it."""
    if type(start) is dict and type(start.get("messages")) is list and start["messages"]:
        last = start["messages"][-1]
        if message_kind(last):
            return last["content"]
        if type(last) is list and len(last) == 2:
            return last[1]
        if type(last) is str:
            return last
    return start
