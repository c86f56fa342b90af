"""Converts LangGraph's values to JSON, exactly and readably, and back.

LangGraph stores a value as MessagePack: plain data directly, objects as extensions that name a class and hold its
fields. Here the same is JSON. A value that JSON cannot express is an object with one key that starts with `$`:

    {"$int": "9007199254740993"}      an integer that not every JSON parser reads exactly
    {"$float": "1.0"}                 a float that JSON parsers read as an integer, or that is not a number
    {"$bytes": "AQI="}                bytes, in base64
    {"$map": [[1, "a"]]}              a map whose keys are not plain strings
    {"$object": "pkg.mod.Class", …}   a Pydantic object, with its fields beside
    {"$ext": 2, "value": […]}         any other extension, by its number
    {"$typed": ["msgpack", "AQI="]}   bytes of a serializer, unchanged

Reading a value imports nothing: a class is only a name here. To get objects back, pass the MessagePack bytes
(`to_msgpack`) to LangGraph's own serializer, which decides what it builds.
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
"""Deeper values are kept as bytes: the log allows 64 levels, and an object takes two of them."""

_unpack = msgspec.msgpack.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def from_msgpack(data: bytes) -> Value:
    """The JSON form of MessagePack bytes. Values that could not be converted back are kept as bytes."""
    try:
        return plain_form(_unpack(data))
    except (msgspec.DecodeError, TypeError, RecursionError, _TooDeepError):
        return typed_bytes("msgpack", data)


def to_msgpack(value: Value) -> bytes:
    """The MessagePack bytes of a JSON form."""
    return _pack(_revive(value))


def typed_bytes(kind: str, data: bytes) -> Value:
    """Bytes of a serializer, unchanged."""
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


def _revive(value: Value) -> Any:
    """Reverses `plain_form`."""
    kind = type(value)
    if kind is list:
        return [_revive(item) for item in value]
    if kind is not dict:
        return value
    tag = tag_of(value)
    return _revive_tagged(tag, value) if tag else {key: _revive(item) for key, item in value.items()}


def tag_of(value: dict[str, Value]) -> str:
    """The `$` key of an object that represents another value. Empty if it represents itself."""
    return "" if TAGS.isdisjoint(value) else next(key for key in value if key in TAGS)


def _revive_tagged(tag: str, value: dict[str, Value]) -> Any:
    content = value[tag]
    if tag == "$object":
        module, _, name = content.rpartition(".")
        fields = {key: _revive(item) for key, item in value.items() if key != tag}
        return Ext(PYDANTIC, _pack([module, name, fields, _VALIDATE]))
    if tag == "$ext":
        raw = value.get(_RAW_EXT)
        return Ext(content, _pack(_revive(value["value"])) if raw is None else base64.b64decode(raw))
    if tag == "$map":
        return {_hashable(_revive(key)): _revive(item) for key, item in content}
    if tag == "$bytes":
        return base64.b64decode(content)
    if tag == "$int":
        return int(content)
    if tag == "$float":
        return float(content)
    return _unpack(base64.b64decode(content[1])) if content[0] == "msgpack" else value


def _hashable(key: Any) -> Any:
    return tuple(map(_hashable, key)) if type(key) is list else key
