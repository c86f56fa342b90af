"""Converts the values in a checkpoint to JSON and back, without pickle.

Plain JSON stays as it is. Any other value becomes an object with its type in the key `$is` and its content: a tuple, a
date, an enum, an object by its fields or by its own `to_dict` (object_fields.py). A class is identified by its module
and name. Reading a value imports no modules except those of the framework, so a store cannot run code that the program
did not load.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import importlib
import pathlib
import sys
import types
import typing
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from agent_framework import WorkflowCheckpointException, WorkflowEvent

from wakelog.adapters.agent_framework import object_fields
from wakelog.adapters.exact_values import from_stored, stored_form
from wakelog.errors import InvalidInputError
from wakelog.model.values import Value

IS, OF, CLASS = "$is", "of", "class"
_TEXTS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    bytes: ("bytes", lambda v: base64.b64encode(v).decode(), base64.b64decode),
    bytearray: ("bytearray", lambda v: base64.b64encode(v).decode(), lambda t: bytearray(base64.b64decode(t))),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    uuid.UUID: ("uuid", str, uuid.UUID),
    decimal.Decimal: ("decimal", str, decimal.Decimal),
    complex: ("complex", str, complex),
    type(pathlib.Path()): ("path", str, pathlib.Path),
    pathlib.PurePosixPath: ("pure_posix_path", str, pathlib.PurePosixPath),
    pathlib.PureWindowsPath: ("pure_windows_path", str, pathlib.PureWindowsPath),
}
_LISTS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", tuple),
    set: ("set", set),
    frozenset: ("frozenset", frozenset),
    collections.deque: ("deque", collections.deque),
}
_DICTS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    collections.OrderedDict: ("ordered_dict", collections.OrderedDict),
    collections.Counter: ("counter", lambda items: collections.Counter(dict(items))),
}
_FROM_TEXT = {name: read for name, _, read in _TEXTS.values()}
_FROM_LIST = dict((*_LISTS.values(), *_DICTS.values()))


class CheckpointValues:
    """Encodes and decodes values. With `allowed`, only these classes (`module:name`) and the framework's are
    accepted."""

    def __init__(self, allowed: frozenset[str] | None = None) -> None:
        self._allowed = allowed

    def encode(self, value: Any, where: str) -> Value:
        """A value as JSON. WorkflowCheckpointException, with the path, if it could not be decoded again."""
        try:
            return stored_form(self._encode(value, where), where)
        except InvalidInputError as exc:
            raise WorkflowCheckpointException(f"{exc.message}; the checkpoint is not saved") from exc
        except RecursionError as exc:
            raise WorkflowCheckpointException(f"{where} contains itself; the checkpoint is not saved") from exc

    def decode(self, value: Value) -> Any:
        return self._decode(from_stored(value))

    def _encode(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (str, int, float, bool):
            return value
        if kind is list:
            return [self._encode(item, f"{where}[{n}]") for n, item in enumerate(value)]
        if kind is dict:
            return self._encode_dict(value, where)
        if kind in _TEXTS:
            name, write, _ = _TEXTS[kind]
            zone = getattr(getattr(value, "tzinfo", None), "key", None)  # a text has only its offset
            return {IS: name, OF: write(value)} | ({"zone": zone} if zone and kind is datetime.datetime else {})
        if kind is datetime.timedelta:
            return {IS: "timedelta", OF: [value.days, value.seconds, value.microseconds]}
        if kind is range:
            return {IS: "range", OF: [value.start, value.stop, value.step]}
        if kind is slice:
            return {IS: "slice", OF: self._encode([value.start, value.stop, value.step], where)}
        if kind is datetime.timezone:
            return {IS: "timezone", OF: self._encode(list(value.__getinitargs__()), where)}
        if kind in _LISTS:
            items = [self._encode(item, f"{where}[{n}]") for n, item in enumerate(value)]
            # The order of a set differs between processes, and would look like a change.
            found = {IS: _LISTS[kind][0], OF: sorted(items, key=repr) if kind in (set, frozenset) else items}
            longest = getattr(value, "maxlen", None)
            return found if longest is None else {**found, "maxlen": longest}
        if kind in _DICTS:
            return {IS: _DICTS[kind][0], OF: self._pairs(value, where)}
        return self._encode_object(value, where)

    def _encode_dict(self, value: dict[Any, Any], where: str) -> Any:
        if IS not in value and all(type(key) is str for key in value):
            return {key: self._encode(item, f"{where}.{key}") for key, item in value.items()}
        return {IS: "dict", OF: self._pairs(value, where)}

    def _pairs(self, value: dict[Any, Any], where: str) -> list[Any]:
        return [
            [self._encode(key, f"a key of {where}"), self._encode(item, f"{where}[{key!r}]")]
            for key, item in value.items()
        ]

    def _encode_object(self, value: Any, where: str) -> Any:
        if isinstance(value, enum.Enum):
            return {IS: "enum", CLASS: self._key(type(value), where), OF: value.name}
        if isinstance(value, type) or typing.get_origin(value) is not None:
            return {IS: "type", OF: self._encode_type(value, where)}
        if isinstance(value, WorkflowEvent):
            return {IS: "event", OF: self._encode_event(value, where)}
        for base in (str, int, float):
            if isinstance(value, base):  # the framework's own storages drop the class as well
                return base(value)
        return self._encode_instance(value, self._key(type(value), where), where)

    def _encode_instance(self, value: Any, key: str, where: str) -> Any:
        found: dict[str, Any] = {CLASS: key}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return found | {IS: "named_tuple", OF: [self._encode(v, f"{where}[{n}]") for n, v in enumerate(value)]}
        if type(value) is collections.defaultdict:
            factory = value.default_factory
            made = None if factory is None else self._key(factory, f"the factory of {where}")
            return {IS: "default_dict", "factory": made, OF: self._pairs(value, where)}
        if dataclasses.is_dataclass(value):
            return found | {IS: "fields", OF: self._fields(object_fields.of_dataclass(value), where)}
        if hasattr(value, "__pydantic_fields_set__"):
            parts = object_fields.of_model(value)
            return found | {IS: "model_fields", OF: {n: self._fields(v, where) for n, v in parts.items()}}
        if hasattr(value, "model_dump") and hasattr(type(value), "model_validate"):
            return found | {IS: "model", OF: value.model_dump(mode="json")}
        if hasattr(value, "to_dict") and hasattr(type(value), "from_dict"):
            return found | {IS: "dict_of", OF: self._encode(value.to_dict(), where)}
        if (fields := object_fields.of_object(value)) is None:
            raise self._refused(where, f"a {type(value).__qualname__} could not be read back", "make it a dataclass")
        found |= {IS: "fields", OF: self._fields(fields, where)}
        if isinstance(value, dict):
            found["pairs"] = self._pairs(value, where)
        if isinstance(value, list):
            found["items"] = [self._encode(item, f"{where}[{n}]") for n, item in enumerate(value)]
        return found

    def _fields(self, fields: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self._encode(item, f"{where}.{name}") for name, item in fields.items()}

    def _encode_event(self, event: Any, where: str) -> Any:
        if event.type != "request_info":
            raise self._refused(where, f"an event of the type {event.type} is not stored", "store its content instead")
        return {
            "request_id": event.request_id,
            "source_executor_id": event.source_executor_id,
            "response_type": self._encode(event.response_type, f"{where}.response_type"),
            "data": self._encode(event.data, f"{where}.data"),
        }

    def _encode_type(self, value: Any, where: str) -> Any:
        origin = typing.get_origin(value)
        if origin is None:
            return self._key(value, where)
        inner = [self._encode_type(item, where) for item in typing.get_args(value)]
        if origin in (typing.Union, types.UnionType):
            return ["union", inner]
        return [self._key(origin, where), inner]

    def _key(self, cls: Any, where: str) -> str:
        if cls is Ellipsis:
            return "..."
        key = f"{cls.__module__}:{cls.__qualname__}"
        try:
            found = self._find(key)
        except WorkflowCheckpointException as exc:
            raise self._refused(where, str(exc), "define it at the top of a module, and allow it") from None
        if found is not cls:
            raise self._refused(where, f"the name {key} belongs to another class", "define it at the top of a module")
        return key

    def _refused(self, where: str, what: str, hint: str) -> WorkflowCheckpointException:
        return WorkflowCheckpointException(f"{where} cannot be stored: {what}. {hint[0].upper()}{hint[1:]}.")

    # Reading

    def _decode(self, value: Any) -> Any:
        if type(value) is list:
            return [self._decode(item) for item in value]
        if type(value) is not dict:
            return value
        if IS not in value:
            return {key: self._decode(item) for key, item in value.items()}
        name, held = value[IS], value[OF]
        if name in _FROM_TEXT:
            found = _FROM_TEXT[name](held)
            return found.astimezone(zoneinfo.ZoneInfo(value["zone"])) if "zone" in value else found
        if name == "deque":
            return collections.deque(self._decode(held), value.get("maxlen"))
        if name in _FROM_LIST:
            return _FROM_LIST[name](self._decode(held))
        match name:
            case "dict":
                return dict(self._decode(held))
            case "timedelta":
                return datetime.timedelta(*held)
            case "enum":
                return self._find(value[CLASS])[held]
            case "type":
                return self._decode_type(held)
            case "event":
                event = self._decode(held)
                return WorkflowEvent.request_info(
                    request_id=event["request_id"],
                    source_executor_id=event["source_executor_id"],
                    request_data=event["data"],
                    response_type=event["response_type"],
                )
            case "range":
                return range(*held)
            case "slice":
                return slice(*self._decode(held))
            case "timezone":
                return datetime.timezone(*self._decode(held))
            case "named_tuple":
                return tuple.__new__(self._find(value[CLASS]), self._decode(held))
            case "default_dict":
                factory = value["factory"]
                return collections.defaultdict(factory and self._find(factory), self._decode(held))
            case "fields":
                items = {part: self._decode(value[part]) for part in ("items", "pairs") if part in value}
                return object_fields.to_object(self._find(value[CLASS]), self._decode(held), **items)
            case "model_fields":
                return object_fields.to_model(self._find(value[CLASS]), self._decode(held))
            case "model":
                return self._find(value[CLASS]).model_validate(held)
            case "dict_of":
                return self._find(value[CLASS]).from_dict(self._decode(held))
        raise WorkflowCheckpointException(f"the checkpoint has a value of the unknown type {name!r}")

    def _decode_type(self, encoded: Any) -> Any:
        if isinstance(encoded, str):
            return Ellipsis if encoded == "..." else self._find(encoded)
        name, inner = encoded[0], tuple(self._decode_type(item) for item in encoded[1])
        if name == "union":
            return typing.Union[inner]  # noqa: UP007 - the types are known only at run time
        return types.GenericAlias(self._find(name), inner)

    def _find(self, key: str) -> Any:
        """A class by its module and name."""
        module, _, name = key.partition(":")
        is_own = module.partition(".")[0] in ("agent_framework", "agent_framework_orchestrations")
        is_accepted = is_own or module.startswith("openai.types.")  # as by the framework's own storages
        if not is_accepted and self._allowed is not None and key not in self._allowed | _registered() | _BUILT_IN:
            raise WorkflowCheckpointException(
                f"{key} is not one of the types that this storage accepts (allowed_checkpoint_types)"
            )
        found: Any = sys.modules.get(module) or (importlib.import_module(module) if is_own else None)
        for step in name.split("."):
            found = getattr(found, step, None)
        if not isinstance(found, type):
            raise WorkflowCheckpointException(f"the class {key} is not loaded: import its module first")
        return found


_BUILT_IN = frozenset(
    f"{cls.__module__}:{cls.__qualname__}"
    for cls in (
        *(*_TEXTS, *_LISTS, *_DICTS, collections.defaultdict, datetime.timedelta, datetime.timezone),
        *(str, int, float, bool, list, dict, range, slice, type(None), object),
    )
)


def _registered() -> set[str]:
    """The classes that the program registered with the framework."""
    try:
        from agent_framework._workflows import _checkpoint_encoding
    except ImportError:
        return set()
    return set(getattr(_checkpoint_encoding, "_REGISTERED_CHECKPOINT_TYPE_KEYS", ()))
