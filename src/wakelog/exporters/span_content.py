"""The content of turns and calls as attributes of spans: messages with parts, and inputs and outputs of calls.

The conventions define structured values, but most backends expect JSON texts, so these are JSON texts. Secrets were
masked when the events were written. Erased or pruned content is left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import Call
from wakelog.model.json_fields import as_dict, dicts_in, text_in
from wakelog.model.parts import Answered, Asked, Part, Text, parts_of, text_of
from wakelog.model.values import Value
from wakelog.timeline.messages import content_of

_CONVERSATION_KEYS = ("messages", "input", "contents", "prompt")
"""Where the clients of providers put the conversation in a request."""
_INSTRUCTION_KEYS = ("system", "instructions")


def turn_content(log: Log, started: Entry) -> dict[str, Any]:
    input = _content(log, started, "input")
    return {} if input is None else {"gen_ai.input.messages": _json([_message("user", input)])}


def call_content(log: Log, call: Call, request: Entry, ended: Entry | None) -> dict[str, Any]:
    input = _content(log, request, "input")
    output = _content(log, ended, "output") if ended is not None else None
    if not call.is_model:
        return {
            "gen_ai.tool.call.arguments": None if input is None else _json(input),
            "gen_ai.tool.call.result": None if output is None else _json(output),
        }
    answer = as_dict(output)
    replies = [] if output is None else [_message("assistant", output)]
    instructions = next((as_dict(input).get(name) for name in _INSTRUCTION_KEYS if as_dict(input).get(name)), None)
    messages = _conversation(input)
    return {
        "gen_ai.system_instructions": _json(_parts(instructions)) if instructions is not None else None,
        "gen_ai.input.messages": _json(messages) if messages else None,
        "gen_ai.output.messages": _json(replies) if replies else None,
        "gen_ai.response.id": text_in(answer, "id"),
        "gen_ai.response.model": text_in(answer, "model"),
    }


def _content(log: Log, entry: Entry, field: str) -> Value:
    if not entry.record.body or not entry.is_intact:
        return None
    return content_of(log, entry, field)


def _conversation(input: Value) -> list[dict[str, Any]]:
    request = as_dict(input)
    whole = input if isinstance(input, str | list) else None
    messages = next((request[name] for name in _CONVERSATION_KEYS if request.get(name)), whole)
    if isinstance(messages, str):
        return [_message("user", messages)]
    return [_message(text_in(m, "role") or "user", m.get("content", m)) for m in dicts_in(messages)]


def _message(role: str, content: Value) -> dict[str, Any]:
    return {"role": role, "parts": _parts(content)}


def _parts(content: Value) -> list[dict[str, Any]]:
    return [_part(part) for part in parts_of(content)]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "content": part.text}
    if isinstance(part, Asked):
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.input}
    if isinstance(part, Answered):
        return {"type": "tool_call_response", "id": part.id, "response": part.text}
    return {"type": part.__struct_config__.tag, "content": text_of(msgspec.to_builtins(part))}


def _json(value: Any) -> str:
    return text_of(value) if isinstance(value, bytes) else msgspec.json.encode(value).decode()
