"""Values of a program that JSON in a log does not take, in a form that it takes, and back.

A log refuses integers that other languages round, NaN and infinities, and the keys by which it marks payloads. Programs
keep such values in their state, and want back what they stored. So each is written as an object with one reserved key:
`{"$exact": ["int", "9007199254740993"]}`. Everything else is as it was.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from wakelog.model.values import INT_MAX, RESERVED_KEYS, Value

MARK = "$exact"
_MARKED = RESERVED_KEYS | {MARK}
_MARK_BYTES = f'"{MARK}"'.encode()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def to_stored(value: Any) -> Value:
    """A value of JSON types in the form that a log takes; the same object where nothing had to change."""
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
        made = {key: to_stored(item) for key, item in value.items()}
        if _MARKED.isdisjoint(made):
            return value if all(made[key] is item for key, item in value.items()) else made
        return {MARK: ["object", [[key, item] for key, item in made.items()]]}
    return to_stored(plain) if (plain := _plain(value)) is not value else value


def _plain(value: Any) -> Any:
    """A value of a class derived from a JSON type, such as an enum of texts, as JSON writes it: as that type."""
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
    """What `to_stored` was given. Containers are new, so they may be changed."""
    if type(value) is not dict and type(value) is not list:
        return value
    raw = _encode(value)
    # Most values have no mark, and then decoding is the fastest copy there is.
    return _decode(raw) if _MARK_BYTES not in raw else _unmarked(value)


def _unmarked(value: Value) -> Any:
    if type(value) is list:
        return [_unmarked(item) for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1 and type(told := value.get(MARK)) is list and len(told) == 2:
        match told:
            case ["int", str(text)]:
                return int(text)
            case ["float", str(text)]:
                return float(text)
            case ["object", list(items)]:
                return {key: _unmarked(item) for key, item in items}
    return {key: _unmarked(item) for key, item in value.items()}
