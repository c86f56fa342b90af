"""LangGraph's values as JSON, exactly and readably, and back.

LangGraph stores a value as MessagePack: plain data as it is, objects as extensions that name a class and hold its
fields. Here the same is JSON. What JSON has no word for is an object with one key that starts with `$`:

    {"$int": "9007199254740993"}      an integer beyond what JSON readers keep exact
    {"$float": "1.0"}                 a float that JSON readers take for an integer, or that is no number
    {"$bytes": "AQI="}                bytes, in base64
    {"$map": [[1, "a"]]}              a map whose keys are not plain text
    {"$object": "pkg.mod.Class", …}   a Pydantic object, its fields beside
    {"$ext": 2, "value": […]}         any other extension, by its number
    {"$typed": ["msgpack", "AQI="]}   bytes of a serializer, kept as they are

Nothing is imported to read a value: a class is only a name here. Whoever wants objects back gives the MessagePack
bytes (`to_msgpack`) to LangGraph's own serializer, which decides what it will build.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from wakelog.model.values import INT_MAX, Value

TAGS = frozenset({"$bytes", "$ext", "$float", "$int", "$map", "$object", "$typed"})
PYDANTIC = 5
_RAW_EXT = "bytes"
_VALIDATE = "model_validate_json"
_DEPTH_MAX = 24
"""Deeper values are kept as bytes: the log takes 64 levels, and an object takes two of them."""

_unpack = msgspec.msgpack.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def from_msgpack(data: bytes) -> Value:
    """The JSON form of MessagePack bytes; what cannot be told apart again is kept as bytes."""
    try:
        return plain_form(_unpack(data))
    except (msgspec.DecodeError, TypeError, RecursionError, _TooDeepError):
        return typed("msgpack", data)


def to_msgpack(value: Value) -> bytes:
    """The MessagePack bytes that a JSON form stands for."""
    return _pack(_revived(value))


def typed(kind: str, data: bytes) -> Value:
    """Bytes of a serializer that are kept as they are."""
    return {"$typed": [kind, base64.b64encode(data).decode()]}


def is_plain_key(key: Any) -> bool:
    return type(key) is str and key[:1] != "$"


class _TooDeepError(Exception):
    """A value has more levels than the log takes."""


def plain_form(value: Any, depth: int = 0) -> Value:
    """The JSON form of unpacked MessagePack."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -INT_MAX <= value <= INT_MAX else {"$int": str(value)}
    if kind is float:
        return float_form(value)
    if depth > _DEPTH_MAX:
        raise _TooDeepError
    if kind is list or kind is tuple:
        return [plain_form(item, depth + 1) for item in value]
    if kind is dict:
        if all(map(is_plain_key, value)):
            return {key: plain_form(item, depth + 1) for key, item in value.items()}
        return {"$map": [[plain_form(k, depth + 2), plain_form(v, depth + 2)] for k, v in value.items()]}
    if kind is Ext:
        return _ext_form(value, depth)
    if kind is bytes or kind is bytearray:
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"{kind.__name__} is not MessagePack")


def float_form(value: float) -> Value:
    if math.isfinite(value) and not value.is_integer():
        return value
    return {"$float": repr(value)}


def _ext_form(ext: Ext, depth: int) -> Value:
    try:
        inside = _unpack(ext.data)
    except msgspec.DecodeError:
        return {"$ext": ext.code, _RAW_EXT: base64.b64encode(ext.data).decode()}
    if ext.code == PYDANTIC and type(inside) is list and len(inside) == 4 and inside[3] == _VALIDATE:
        module, name, fields, _ = inside
        if type(fields) is dict and all(map(is_plain_key, fields)) and "." not in name:
            return {"$object": f"{module}.{name}", **plain_form(fields, depth + 1)}
    return {"$ext": ext.code, "value": plain_form(inside, depth + 1)}


def _revived(value: Value) -> Any:
    """What `plain_form` was given."""
    kind = type(value)
    if kind is list:
        return [_revived(item) for item in value]
    if kind is not dict:
        return value
    tag = tag_of(value)
    return _special(tag, value) if tag else {key: _revived(item) for key, item in value.items()}


def tag_of(value: dict[str, Value]) -> str:
    """The key by which an object stands for something else; empty where it stands for itself."""
    return "" if TAGS.isdisjoint(value) else next(key for key in value if key in TAGS)


def _special(tag: str, value: dict[str, Value]) -> Any:
    told = value[tag]
    if tag == "$object":
        module, _, name = told.rpartition(".")
        fields = {key: _revived(item) for key, item in value.items() if key != tag}
        return Ext(PYDANTIC, _pack([module, name, fields, _VALIDATE]))
    if tag == "$ext":
        raw = value.get(_RAW_EXT)
        return Ext(told, _pack(_revived(value["value"])) if raw is None else base64.b64decode(raw))
    if tag == "$map":
        return {_hashable(_revived(key)): _revived(item) for key, item in told}
    if tag == "$bytes":
        return base64.b64decode(told)
    if tag == "$int":
        return int(told)
    if tag == "$float":
        return float(told)
    return _unpack(base64.b64decode(told[1])) if told[0] == "msgpack" else value


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if type(key) is list else key
