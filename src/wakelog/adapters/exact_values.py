"""Converts values that a log refuses to a form that it accepts, and back.

A log refuses integers that other languages round, NaN and infinities, and the keys that mark payloads. Programs have
such values in their state, and expect them back unchanged. So each is stored as an object with one reserved key:
`{"$exact": ["int", "9007199254740993"]}`. Everything else is stored as it is.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from wakelog.model.values import INT_MAX, RESERVED_KEYS, Value, check_value, is_plain

MARK = "$exact"
_MARKED = RESERVED_KEYS | {MARK}
_MARK_BYTES = f'"{MARK}"'.encode()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def stored_form(value: Any, where: str) -> Any:
    """The stored form of a value. InvalidInputError names the path of a part that has none."""
    return value if is_plain(value, MARK) else check_value(to_stored(value), where)


def to_stored(value: Any) -> Value:
    """A JSON value in the form that a log accepts. The same object if nothing had to change."""
    kind = type(value)
    if kind is int:
        return value if -INT_MAX <= value <= INT_MAX else {MARK: ["int", str(value)]}
    if kind is float:
        is_kept = math.isfinite(value) and (abs(value) <= INT_MAX or not value.is_integer())
        return value if is_kept else {MARK: ["float", repr(value)]}
    if kind is list or kind is tuple:
        items = [to_stored(item) for item in value]
        return value if kind is list and all(a is b for a, b in zip(value, items, strict=True)) else items
    if kind is dict:
        converted = {key: to_stored(item) for key, item in value.items()}
        if _MARKED.isdisjoint(converted):
            return value if all(converted[key] is item for key, item in value.items()) else converted
        return {MARK: ["object", [[key, item] for key, item in converted.items()]]}
    return to_stored(plain) if (plain := _plain(value)) is not value else value


def _plain(value: Any) -> Any:
    """Converts a value whose class derives from a JSON type, such as a string enum, to that type."""
    if isinstance(value, str):
        return "".join((value,)) if type(value) is not str else value
    if isinstance(value, bool) or value is None:
        return value
    kind: Any
    for kind in (int, float, dict, list):
        if isinstance(value, kind):
            return kind(value)
    return value


def from_stored(value: Value) -> Any:
    """The original value. Its containers are new, so the caller may change them."""
    if type(value) is not dict and type(value) is not list:
        return value
    return from_stored_json(_encode(value))  # most values have no mark, and this is the fastest way to copy them


def from_stored_json(raw: bytes) -> Any:
    """The original value of a stored one that is given as JSON."""
    value = _decode(raw)
    # Most texts have no dollar sign, and to look for one byte takes a quarter of the time.
    return _unmarked(value) if b"$" in raw and _MARK_BYTES in raw else value


def _unmarked(value: Value) -> Any:
    if type(value) is list:
        return [_unmarked(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1 and type(marked := value.get(MARK)) is list and len(marked) == 2:
        match marked:
            case ["int", str(text)]:
                return int(text)
            case ["float", str(text)]:
                return float(text)
            case ["object", list(items)]:
                return {key: _unmarked(item) for key, item in items}
    return {key: _unmarked(item) for key, item in value.items()}
