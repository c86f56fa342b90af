"""Converts typed objects to JSON, and JSON back to the same type: structs, dataclasses and Pydantic models, also one
inside another.

A Pydantic model is written by its field names and read as JSON. So a field with an alias is found again, and a strict
model takes back what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.model.described import described


def dump_typed(value: Any, other: Callable[[Any], Any] | None = None) -> Any:
    """Converts a typed object to lists, dicts and plain values. `other` converts what has no JSON form; by default
    that is a TypeError."""

    def convert(part: Any) -> Any:
        if hasattr(part, "model_dump"):
            return _dump_model(part)
        if other is None:
            raise TypeError(f"{type(part).__module__}.{type(part).__qualname__} has no JSON form")
        return other(part)

    # A set's order differs in each process. Without a fixed order equal values would not be recognised as equal.
    return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=convert)


def load_typed(kind: Any, value: Any, *, strict: bool = True) -> Any:
    """Converts JSON to a type. Raises ValueError or TypeError if it does not fit, or msgspec does not know the type."""
    if hasattr(kind, "model_validate_json"):
        return _load_model(kind, value)
    return msgspec.convert(value, described(kind), strict=strict, str_keys=True, dec_hook=_load_part)


def _load_part(kind: type[Any], value: Any) -> Any:
    if hasattr(kind, "model_validate_json"):
        return _load_model(kind, value)
    if isinstance(value, kind):
        return value
    raise TypeError(f"{kind.__qualname__} cannot be made from JSON")


def _dump_model(model: Any) -> Any:
    # A model that forbids other fields would refuse its own computed fields.
    if getattr(type(model), "model_config", {}).get("extra") == "forbid":
        return model.model_dump(mode="json", round_trip=True)
    return model.model_dump(mode="json")


def _load_model(kind: Any, value: Any) -> Any:
    text = msgspec.json.encode(value)
    try:
        try:
            return kind.model_validate_json(text, by_alias=True, by_name=True)
        except TypeError:  # Pydantic before 2.11 has no by_name
            return kind.model_validate_json(text)
    except ValueError:
        # Clients of model providers build their answers without checks, by a constructor of their own: a provider may
        # send what the client does not know yet.
        own = next(cls for cls in kind.__mro__ if "model_construct" in vars(cls))
        if own.__module__.startswith("pydantic.") or not isinstance(value, dict):
            raise
        return kind.model_construct(**value)
