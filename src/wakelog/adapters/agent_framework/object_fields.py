"""Takes objects apart into their fields, and puts them together again without running their `__init__`.

An object of an ordinary class is its attributes, as for `pickle` and `copy`. A class that says itself how it is taken
apart (`__reduce__`, `__setstate__`, arguments for `__new__`) is left alone: to put it together would run its code.
"""

from __future__ import annotations

import copyreg
import dataclasses
from typing import Any

_set = object.__setattr__


def of_dataclass(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, and what else was set on the object."""
    held = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
    return held | getattr(value, "__dict__", {})


def of_model(value: Any) -> dict[str, dict[str, Any]]:
    """The parts of a Pydantic model. Its own dump would turn a value in a field of no certain type into another one,
    and leave out private attributes."""
    fields, given = vars(value), value.__pydantic_fields_set__
    parts = {"fields": fields, "extra": value.__pydantic_extra__, "private": _private(value)}
    if given != fields.keys():
        parts["set"] = {"names": sorted(given)}
    return {name: dict(part) for name, part in parts.items() if part or name == "fields"}


def _private(value: Any) -> dict[str, Any]:
    from pydantic_core import PydanticUndefined

    held = value.__pydantic_private__ or {}
    return {name: item for name, item in held.items() if item is not PydanticUndefined}


def to_model(cls: Any, parts: dict[str, Any]) -> Any:
    instance = cls.__new__(cls)
    fields = parts["fields"]
    _set(instance, "__dict__", fields)
    _set(instance, "__pydantic_fields_set__", set(parts["set"]["names"] if "set" in parts else fields))
    _set(instance, "__pydantic_extra__", parts.get("extra", {} if cls.model_config.get("extra") == "allow" else None))
    _set(instance, "__pydantic_private__", parts.get("private", {} if cls.__private_attributes__ else None))
    return instance


def of_object(value: Any) -> dict[str, Any] | None:
    """The attributes of an object; None if its class says itself how it is taken apart."""
    cls = type(value)
    if cls.__module__ == "builtins" or hasattr(cls, "__setstate__"):
        return None
    try:
        taken: Any = value.__reduce_ex__(2)
    except (TypeError, ValueError):  # such as a lock
        return None
    if type(taken) is not tuple or len(taken) < 3:
        return None
    make, arguments, state = taken[:3]
    if make is not copyreg.__newobj__ or arguments != (cls,):  # type: ignore[attr-defined]  # it is in no stub
        return None
    plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if type(plain) not in (dict, type(None)) or type(slots) not in (dict, type(None)):
        return None
    return {**(plain or {}), **(slots or {})}


def to_object(cls: Any, fields: dict[str, Any], items: Any = (), pairs: Any = ()) -> Any:
    """An object with these fields; with items, of a class that derives from list or dict."""
    instance = cls.__new__(cls)
    for name, value in fields.items():
        _set(instance, name, value)
    if items:
        list.extend(instance, items)
    if pairs:
        dict.update(instance, pairs)
    return instance
