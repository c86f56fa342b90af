"""What was said and done, as attributes of spans: messages of parts, and the input and output of calls.

The conventions give these as structured values; most backends take texts of JSON, so that is what they are here.
Secrets were masked when the events were written. What was erased or pruned is left out.
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

_PLACES = ("messages", "input", "contents", "prompt")
"""Where the clients of providers put the conversation."""
_RULES = ("system", "instructions")


def turn_content(log: Log, started: Entry) -> dict[str, Any]:
    given = _content(log, started, "input")
    return {} if given is None else {"gen_ai.input.messages": _json([_message("user", given)])}


def call_content(log: Log, call: Call, asked: Entry, ended: Entry | None) -> dict[str, Any]:
    given = _content(log, asked, "input")
    got = _content(log, ended, "output") if ended is not None else None
    if not call.is_model:
        return {
            "gen_ai.tool.call.arguments": None if given is None else _json(given),
            "gen_ai.tool.call.result": None if got is None else _json(got),
        }
    about = as_dict(got)
    said = [] if got is None else [_message("assistant", got)]
    rules = next((as_dict(given).get(name) for name in _RULES if as_dict(given).get(name)), None)
    heard = _conversation(given)
    return {
        "gen_ai.system_instructions": _json(_parts(rules)) if rules is not None else None,
        "gen_ai.input.messages": _json(heard) if heard else None,
        "gen_ai.output.messages": _json(said) if said else None,
        "gen_ai.response.id": text_in(about, "id"),
        "gen_ai.response.model": text_in(about, "model"),
    }


def _content(log: Log, entry: Entry, field: str) -> Value:
    if not entry.record.body or not entry.is_intact:
        return None
    return content_of(log, entry, field)


def _conversation(given: Value) -> list[dict[str, Any]]:
    about = as_dict(given)
    told = next((about[name] for name in _PLACES if about.get(name)), given if isinstance(given, str | list) else None)
    if isinstance(told, str):
        return [_message("user", told)]
    return [_message(text_in(m, "role") or "user", m.get("content", m)) for m in dicts_in(told)]


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
