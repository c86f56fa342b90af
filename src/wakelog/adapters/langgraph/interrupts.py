"""Reads interrupts, by which a task asks a person: LangGraph's own objects, and their stored form."""

from __future__ import annotations

from typing import Any

import msgspec
from langgraph.checkpoint.serde.types import INTERRUPT

from wakelog.model.json_fields import dicts_in, text_in
from wakelog.model.values import Value

_QUESTIONS = ("question", "prompt", "message", "query", "description", "text")
_NO_TASK = "00000000-0000-0000-0000-000000000000"


def interrupts_in(value: Any) -> list[Any]:
    """The interrupts in a value that a task wrote."""
    found = value if isinstance(value, list | tuple) else [value]
    return [each for each in found if hasattr(each, "value") and hasattr(each, "id")]


def interrupt_ids(entries: dict[str, Any], task: str) -> list[str]:
    """The ids of the interrupts that a task has written. None for writes to the thread as a whole."""
    if task == _NO_TASK:
        return []
    found = [value for channel, value in entries.values() if channel == INTERRUPT]
    return [id for value in found for id in _ids_in(value)]


def question_text(question: Value) -> str:
    """What a person is asked. An interrupt may carry any value; most have the question under one of a few names."""
    if type(question) is str:
        return question
    if type(question) is dict:
        for name in _QUESTIONS:
            if type(text := question.get(name)) is str and text:
                return text
        # The form of LangChain's human-in-the-loop middleware.
        requests = dicts_in(question.get("action_requests"))
        if texts := [text for request in requests if (text := text_in(request, "description"))]:
            return "; ".join(texts)
    return msgspec.json.encode(question).decode()


def _ids_in(value: Value) -> list[str]:
    """The ids of stored interrupts. Each is a msgpack extension: a class and its fields."""
    if type(value) is list:
        return [id for item in value for id in _ids_in(item)]
    inside = value.get("value") if type(value) is dict else None
    fields = inside[2] if type(inside) is list and len(inside) > 2 else None
    id = fields.get("id") if type(fields) is dict else None
    return [id] if type(id) is str else []
