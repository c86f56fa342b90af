"""Formats recorded values for reading: a model's request and answer as messages and calls, a call's input by argument,
an edit as a diff.

The result is text with several lines. A short value without line breaks stays JSON on one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from wakelog.model.json_fields import as_dict, dicts_in, text_in
from wakelog.model.parts import Answered, Asked, Image, Part, Text, Thinking, content_text, parts_of, text_of
from wakelog.model.values import Value

LONG = 100
"""A value with more characters as JSON is formatted on several lines."""
_EDITS: Final = (("old_string", "new_string"), ("old_str", "new_str"), ("oldString", "newString"))
_HISTORY: Final = ("messages", "contents", "input")
_SYSTEM: Final = ("system", "instructions", "system_instruction", "systemInstruction")
_NOT_PARAMS: Final = frozenset({*_HISTORY, *_SYSTEM, "tools"})


def format_value(value: Value) -> str:
    """Formats a value for people."""
    if content_text(value):
        parts = parts_of(value)
        thinking_last = sorted(parts, key=lambda part: isinstance(part, Thinking))
        return "\n".join(_part_lines(thinking_last))
    if isinstance(value, dict) and not value.keys() & {"$erased", "gone"}:
        if is_request(value):
            return "\n".join(_request_lines(value))
        if len(text := text_of(value)) > LONG or any(isinstance(v, str) and "\n" in v for v in value.values()):
            return arguments_text(value)
        return text
    return text_of(value)


def is_request(value: Value) -> bool:
    """Whether a value is a request to a model, in the format of a big provider's client."""
    if not isinstance(value, dict) or not value.keys() & {"model", "tools", *_SYSTEM, "messages"}:
        return False
    return any(value.get(name) and dicts_in(value[name]) == value[name] for name in _HISTORY)


def arguments_text(arguments: Value) -> str:
    """Formats a call's input argument by argument, so that texts keep their lines; an edit becomes a diff."""
    if not isinstance(arguments, dict):
        return text_of(arguments)
    old, new = next((pair for pair in _EDITS if all(isinstance(arguments.get(n), str) for n in pair)), ("", ""))
    lines = [
        f"{k}:\n{v}" if isinstance(v, str) and "\n" in v else f"{k}: {text_of(v)}"
        for k, v in arguments.items()
        if k not in (old, new)
    ]
    return "\n".join([*lines, *(_diff_lines(arguments[old], arguments[new]) if old else ())])


def _diff_lines(old: str, new: str) -> Iterator[str]:
    import difflib

    rows = list(difflib.unified_diff(old.split("\n"), new.split("\n"), n=2, lineterm=""))[3:]
    yield from ("…" if row.startswith("@@") else row for row in rows)


def _request_lines(request: dict[str, Any]) -> Iterator[str]:
    params = [
        f"{k} {text_of(v)}" for k, v in request.items() if k not in _NOT_PARAMS and not isinstance(v, dict | list)
    ]
    if params:
        yield ", ".join(params)
    if names := [name for tool in dicts_in(request.get("tools")) for name in _tool_names(tool)]:
        yield f"tools: {', '.join(names)}"
    for name in _SYSTEM:
        if request.get(name):
            yield f"system: {content_text(request[name]) or _content(request[name])}"
    for message in next((dicts_in(request[name]) for name in _HISTORY if request.get(name)), []):
        who = text_in(message, "role") or {"function_call": "assistant"}.get(text_in(message, "type"), "tool")
        lines = list(_part_lines(parts_of(message)))
        yield f"{who}: {lines[0] if lines else ''}".rstrip()
        yield from lines[1:]


def _content(value: Value) -> str:
    """Returns the text of a system prompt in a provider's format."""
    parts = dicts_in(as_dict(value).get("parts"))
    return "\n".join(text_in(part, "text") for part in parts) or text_of(value)


def _tool_names(tool: dict[str, Any]) -> Iterator[str]:
    """Yields the names of a tool. Google lists several tools in one."""
    declared = dicts_in(tool.get("function_declarations") or tool.get("functionDeclarations"))
    for function in declared or [as_dict(tool.get("function")) or tool]:
        if name := text_in(function, "name") or text_in(function, "type"):
            yield name


def _part_lines(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text):
                yield from text.split("\n")
            case Asked(_, name, arguments):
                yield from _call_lines(name, arguments)
            case Answered(_, text, is_error):
                yield from f"{'failed: ' if is_error else ''}{text}".split("\n")
            case Thinking(block) if isinstance(block.get("thinking"), str) and block["thinking"]:
                yield from f"(thinking) {block['thinking']}".split("\n")
            case Thinking():
                yield "(thinking that only its provider can read)"
            case Image():
                yield "(an image)"


def _call_lines(name: str, arguments: Value) -> Iterator[str]:
    if arguments is None:
        yield f"→ {name}"
        return
    lines = format_value(arguments).split("\n")
    if len(lines) == 1:
        yield f"→ {name} {lines[0]}"
    else:
        yield f"→ {name}"
        yield from (f"    {line}" for line in lines)
