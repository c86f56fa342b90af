"""Converts a graph's values to their stored form and back.

Plain data is stored as it is. Everything else goes through the saver's serializer. The output of LangGraph's own
serializer, the default, is stored as readable JSON (importers/frameworks/langgraph/values.py). The output of any other
serializer, such as one that encrypts, is stored as bytes: one for each value, or for each item of a list.
"""

from __future__ import annotations

import base64
import operator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from wakelog.errors import InvalidInputError, WakelogError
from wakelog.importers.frameworks.langgraph.values import (
    float_form,
    from_msgpack,
    is_plain_key,
    tag_of,
    to_msgpack,
    typed_bytes,
)
from wakelog.model.values import INT_MAX, Value

ATOMS = frozenset({str, int, bool, float, type(None)})
MESSAGES = frozenset({AIMessage, HumanMessage, SystemMessage, ToolMessage})
_DEPTH_MAX = 24
_PLAIN = frozenset({dict, list})
_set_attribute = object.__setattr__
_fields_of = operator.attrgetter("__dict__")
_extra_of = operator.attrgetter("__pydantic_extra__")


class _RefusedError(Exception):
    """The serializer refuses a value, or would pickle it."""


class ValueCodec:
    """Stores and revives values with one serializer."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        kind = type(serde)
        self.is_readable = isinstance(serde, JsonPlusSerializer) and (kind.dumps_typed, kind.loads_typed) == (
            JsonPlusSerializer.dumps_typed,
            JsonPlusSerializer.loads_typed,
        )
        """True if the stored form can be read as JSON: only with LangGraph's own serializer."""

    def encode(self, value: Any, where: str) -> Value:
        """The stored form of a value. InvalidInputError names the place of a part that cannot be stored."""
        try:
            if self.is_readable:
                return self._stored(value, 0)
            if type(value) is list:
                return [self._by_serializer(item) for item in value]
            return self._by_serializer(value)
        except _RefusedError as exc:
            # The place is searched only now: to track it all the way would cost more than the rest.
            raise InvalidInputError(
                f"{self._culprit(value, where)} cannot be stored: {exc}",
                kind="not-a-value",
                hint="keep it out of the state (in an UntrackedValue channel), or store the data it is made of",
            ) from exc.__cause__

    def _stored(self, value: Any, depth: int) -> Value:
        kind = type(value)
        if kind is str:
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        if value is None or kind is bool:
            return value
        if kind is int and -INT_MAX <= value <= INT_MAX:
            return value
        if kind is float:
            return float_form(value)
        if depth < _DEPTH_MAX:
            if kind is list:
                # Most items are short texts: handle them without a call.
                return [
                    item if type(item) is str and item.isascii() else self._stored(item, depth + 1) for item in value
                ]
            if kind is dict and all(map(is_plain_key, value)):
                return {
                    key: item if type(item) is str and item.isascii() else self._stored(item, depth + 1)
                    for key, item in value.items()
                }
        return self._by_serializer(value)

    def _by_serializer(self, value: Any) -> Value:
        try:
            kind, data = self._serde.dumps_typed(value)
        except WakelogError:
            raise
        except Exception as exc:
            raise _RefusedError(f"{type(exc).__name__}: {exc}") from exc
        if kind == "pickle":
            raise _RefusedError("it would have to be pickled, and wakelog never pickles")
        if not self.is_readable:
            return typed_bytes(kind, data)
        if kind == "null":
            return None
        if kind == "msgpack":
            return from_msgpack(data)
        return {"$bytes": base64.b64encode(data).decode()} if kind == "bytes" else typed_bytes(kind, data)

    def _culprit(self, value: Any, where: str) -> str:
        """The place of the first part of a value that the serializer refuses."""
        inside: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            inside = [(f"{where}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list | tuple | set | frozenset):
            inside = [(f"{where}[{i}]", item) for i, item in enumerate(value)]
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            inside = [(f"{where}.{key}", item) for key, item in vars(value).items()]
        for place, item in inside:
            try:
                kind, _ = self._serde.dumps_typed(item)
            except Exception:
                return self._culprit(item, place)
            if kind == "pickle":
                return self._culprit(item, place)
        return f"{where} ({type(value).__name__})"

    def decode(self, value: Value) -> Any:
        """A new value from its stored form."""
        kind = type(value)
        if kind is list:
            return [self.decode(item) for item in value]
        if kind is not dict:
            return value
        tag = tag_of(value)
        return self._revive_tagged(tag, value) if tag else {key: self.decode(item) for key, item in value.items()}

    def _revive_tagged(self, tag: str, value: dict[str, Value]) -> Any:
        content = value[tag]
        if tag == "$typed":
            return self._serde.loads_typed((content[0], base64.b64decode(content[1])))
        if tag == "$bytes":
            return base64.b64decode(content)
        if tag in ("$int", "$float"):
            return int(content) if tag == "$int" else float(content)
        if not self.is_readable:
            raise InvalidInputError(
                "this thread was written with LangGraph's own serializer, and cannot be read with another",
                kind="other-serializer",
                hint="give the saver the serializer that the thread was written with",
            )
        return self._serde.loads_typed(("msgpack", to_msgpack(value)))

    def copy(self, value: Any) -> Any:
        """A deep copy of a value, as it would come back from the log. Plain data and messages are copied directly;
        everything else is stored and revived."""
        kind = type(value)
        if kind in ATOMS:
            return value
        if kind is list:
            return [item if type(item) in ATOMS else self.copy(item) for item in value]
        if kind is dict:
            return {key: item if type(item) in ATOMS else self.copy(item) for key, item in value.items()}
        if kind in MESSAGES:
            return self._copied_message(value)
        return self.decode(self.encode(value, "a value"))

    def _copied_message(self, message: BaseMessage) -> BaseMessage:
        # Like Pydantic's own copy, but deep.
        fresh = object.__new__(type(message))
        _set_attribute(fresh, "__dict__", self._copied_fields(message.__dict__))
        extra = message.__pydantic_extra__
        _set_attribute(fresh, "__pydantic_extra__", None if extra is None else self._copied_fields(extra))
        _set_attribute(fresh, "__pydantic_fields_set__", set(message.__pydantic_fields_set__))
        _set_attribute(fresh, "__pydantic_private__", None)
        return fresh

    def _copied_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: item if (kind := type(item)) in ATOMS else self.copy(item) if item or kind not in _PLAIN else kind()
            for name, item in fields.items()
        }

    @staticmethod
    def fields_of(items: list[Any]) -> list[dict[str, Any]] | None:
        """The fields of messages, to compare many at once. None if an item is not a message."""
        if not MESSAGES.issuperset(map(type, items)) or any(map(_extra_of, items)):
            return None
        return list(map(_fields_of, items))

    def is_same(self, value: Any, copy: Any) -> bool:
        """True if a value still equals its copy. False if they cannot be compared cheaply."""
        kind = type(value)
        if kind in ATOMS:
            return value is copy or (type(copy) is kind and bool(value == copy))
        if kind is list or kind is dict:
            try:
                return bool(value == copy) and _has_same_kinds(value, copy)
            except Exception:  # an item may refuse to be compared
                return False
        if kind in MESSAGES:
            return (
                type(copy) is kind
                and bool(value.__dict__ == copy.__dict__)
                and bool(value.__pydantic_extra__ == copy.__pydantic_extra__)
            )
        return False


def _has_same_kinds(value: Any, copy: Any) -> bool:
    """True if two equal values also have the same types inside: 0 equals False, but is stored in another form. False if
    there is an object whose own comparison would have to be trusted."""
    kind = type(value)
    if kind in ATOMS:
        return value is copy or type(copy) is kind
    if kind is list:
        return type(copy) is kind and all(map(_has_same_kinds, value, copy))
    if kind is dict:
        return type(copy) is kind and all(_has_same_kinds(item, copy[key]) for key, item in value.items())
    return kind in MESSAGES and type(copy) is kind
