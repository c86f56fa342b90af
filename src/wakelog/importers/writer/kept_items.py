"""Stores an item of a framework's history once: what its events hold is only in the events, the rest beside them.

A framework wants its items back unchanged. A full copy beside the events would store everything twice, and would bring
back what was erased from an event. So the stored item is hollow: where one of its events holds the same value, the item
has `{"$in": [n, field, …]}`. For a string that is the JSON of a value, such as the arguments of a call, it also says
how the JSON was written. docs/reference/format.md describes `items.kept`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from wakelog.model.events import Event
from wakelog.model.values import Value

IN, AS, IS = "$in", "as", "is"
_STRUCTURE = frozenset({"role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "name", "status", "uuid"})
"""Fields that identify an item. They stay, also if its content is erased."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
Field = Callable[[int, str], Value]
"""Returns the value of a field of the event with a number."""


def hollow_out(
    item: Value, events: Iterable[tuple[int, Event]], others: EventPlaces | None = None, at: int = 0
) -> bytes:
    """Encodes an item as JSON without the values that events hold. Its own events are given with their numbers, counted
    from its first one. `others` are the events of the whole commit, in which its first one has the number `at`."""
    rest = _hollow_value(item, EventPlaces(events, others, at), "")
    try:
        return _encode(rest)
    except (ValueError, OverflowError):  # numbers and strings that few parsers can read
        return json.dumps(rest).encode()


class EventPlaces:
    """Finds where values are in events: strings by equality, containers by identity."""

    def __init__(self, events: Iterable[tuple[int, Event]], others: EventPlaces | None = None, at: int = 0) -> None:
        self._others, self._at = others, at
        self._texts: dict[str, dict[str, Any]] = {}
        self._written: dict[str, dict[str, Any]] | None = None
        self._fields: list[tuple[Value, list[int | str]]] = []
        self._containers: dict[int, dict[str, Any]] = {}
        for number, event in events:
            for field in event.payload_fields:
                value = getattr(event, field)
                if value is not None:
                    self._add(value, [number, field])
                    self._fields.append((value, [number, field]))

    def _add(self, value: Value, path: list[int | str]) -> None:
        if isinstance(value, str):
            self._texts.setdefault(value, {IN: path})
        elif isinstance(value, dict):
            self._containers.setdefault(id(value), {IN: path})
            for key, held in value.items():
                self._add(held, [*path, key])
        elif isinstance(value, list):
            self._containers.setdefault(id(value), {IN: path})
            for place, held in enumerate(value):
                self._add(held, [*path, place])

    def text(self, text: str) -> Value:
        """A reference to a string, or the string itself if no event holds it."""
        results = self._texts.get(text)
        if results is None and text[:1] in ("{", "["):
            results = self._as_json().get(text)
        if results is None and self._others is not None:
            results = self._shift(self._others.text(text))
        return text if results is None else results

    def container(self, value: Value) -> Value:
        """A reference to a list or an object, or None if no event holds it."""
        results = self._containers.get(id(value))
        if results is None and self._others is not None:
            results = self._shift(self._others.container(value))
        return results

    def _shift(self, found: Value) -> dict[str, Any] | None:
        """A reference among the others, counted from this item's first event."""
        if not isinstance(found, dict):
            return None
        number, *path = found[IN]
        return {**found, IN: [number - self._at, *path]}

    def _as_json(self) -> dict[str, dict[str, Any]]:
        if self._written is None:
            self._written = {}
            for value, path in self._fields:
                if isinstance(value, dict | list):
                    for how, write in _WRITTEN.items():
                        self._written.setdefault(write(value), {IN: path, AS: how})
        return self._written


_WRITTEN: dict[str, Callable[[Value], str]] = {"json": lambda value: _encode(value).decode(), "json-spaced": json.dumps}


def _hollow_value(value: Value, places: EventPlaces, key: str) -> Value:
    if isinstance(value, str):
        return value if key in _STRUCTURE else places.text(value)
    if isinstance(value, dict):
        if (found := places.container(value)) is not None:
            return found
        inner = {name: _hollow_value(held, places, name) for name, held in value.items()}
        return {IN: {IS: inner}} if IN in inner else inner
    if isinstance(value, list):
        if (found := places.container(value)) is not None:
            return found
        return [_hollow_value(held, places, "") for held in value]
    return value


def fill_item(rest: bytes | str, field: Field) -> Value:
    """Restores an item. `field` returns what its events hold."""
    try:
        value = _decode(rest)
    except msgspec.DecodeError:
        value = json.loads(rest)
    return _fill_value(value, field)


def _fill_value(value: Value, field: Field) -> Value:
    if isinstance(value, list):
        return [_fill_value(held, field) for held in value]
    if not isinstance(value, dict):
        return value
    path = value.get(IN)
    if isinstance(path, list):
        found = _at(field(path[0], path[1]), path[2:])
        return _WRITTEN[value[AS]](found) if AS in value else found
    if isinstance(path, dict):
        value = path[IS]
    return {name: _fill_value(held, field) for name, held in value.items()}


def _at(value: Value, path: list[int | str]) -> Value:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step) if step in value else _erased(value)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return value  # the whole value was erased, and says so
    return value


def _erased(value: dict[str, Value]) -> Value:
    return f"(erased, e{value['$erased']})" if "$erased" in value else None
