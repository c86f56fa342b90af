"""Converts arguments and results to JSON for the log, and recorded results back.

Structs, dataclasses, Pydantic models, sets, dates and bytes become JSON. A result without a JSON form is refused,
because it could not be returned again after a crash. An argument only has to be recognised, so it may be stored as its
`repr`. A recorded result is converted back to the type that the function declares.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.short_text import cut
from wakelog.model.typed_values import dump_typed, load_typed
from wakelog.model.values import Value, check_value

SUMMARY_MAX = 200
HIDDEN = "[not stored]"
NOT_STORABLE = "not-storable"
"""The kind of error of a result without a JSON form, and the type of the failure that is recorded for its call."""
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def plain(value: Any) -> Value:
    """Converts any object to JSON, to recognise it by. Parts without a JSON form are stored as `{"repr": …}`."""
    try:
        return _to_json(value, _convert_or_repr)
    except (InvalidInputError, TypeError, ValueError, RecursionError):
        return {"repr": text_of(value)}


def storable(value: Any, what: str = "the result") -> Value:
    """Converts to JSON an object that must be returned again later. InvalidInputError, kind `not-storable`, if it has
    no JSON form."""
    try:
        return _to_json(value, _convert)
    except InvalidInputError as exc:
        why, hint = exc.message, exc.hint
    except (TypeError, ValueError, RecursionError) as exc:
        why, hint = text_of(exc, str), ""
    raise InvalidInputError(
        f"{what} cannot be stored: {why}",
        kind="not-storable",
        hint=hint
        or "return JSON, a dataclass, a msgspec struct or a Pydantic model; a stream goes through session.model",
    )


def _to_json(value: Any, convert: Callable[[Any], Any]) -> Value:
    try:
        return check_value(value, reserved=True)
    except InvalidInputError:
        pass
    return check_value(dump_typed(value, convert), reserved=True)


def _convert(value: Any) -> Any:
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": text_of(value, str)}
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} has no JSON form")


def _convert_or_repr(value: Any) -> Any:
    try:
        return _convert(value)
    except TypeError:
        return {"repr": text_of(value)}


def text_of(value: Any, form: Callable[[Any], str] = repr) -> str:
    """Returns text for any object, even if its `repr` fails. Memory addresses are removed: they differ in each
    process."""
    try:
        return _ADDRESS.sub("", form(value)).encode("utf-8", "replace").decode()
    except Exception:  # foreign code
        return f"<{type(value).__name__}>"


def summarise(value: Value) -> str:
    """Returns the first words of a result, for a line in a list."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    # A word and its blank are two characters: the words that are split off here are enough for a summary.
    return cut(" ".join(text.split(None, SUMMARY_MAX // 2 + 1)), SUMMARY_MAX)


def bind(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, defaults: bool = True
) -> dict[str, Any]:
    """Returns the arguments by name, with defaults, so that two ways to write the same call are equal."""
    try:
        signature, names = _signature(function)
    except TypeError:  # a callable object that cannot be hashed
        signature, names = _signature.__wrapped__(function)
    if signature is None:
        return {**{f"arg{i}": a for i, a in enumerate(args)}, **kwargs}
    if not kwargs and names is not None and len(names) == len(args):
        return dict(zip(names, args, strict=True))  # the usual call, and binding takes longer than all that follows
    bound = signature.bind(*args, **kwargs)
    if defaults:
        bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


_ONE_EACH = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature | None, tuple[str, ...] | None]:
    """The signature, if there is one; and the names of the parameters, if each takes one argument by its position."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None, None
    parameters = signature.parameters
    return signature, tuple(parameters) if all(each.kind in _ONE_EACH for each in parameters.values()) else None


def hide_arguments(arguments: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Value]:
    """Converts arguments to what is stored, without those in `hidden`."""
    return {name: HIDDEN if name in hidden else plain(value) for name, value in arguments.items()}


def revive(function: Callable[..., Any], value: Value) -> Any:
    """Converts a stored result to the function's return type. Without one it stays plain JSON."""
    return _as_declared(_return_type(function), value)


def revive_part(function: Callable[..., Any], value: Value) -> Any:
    """Converts a stored part of a stream to the item type of the function's return type."""
    inner = typing.get_args(_return_type(function))
    return _as_declared(inner[0], value) if inner else value


def _as_declared(declared: Any, value: Value) -> Any:
    if declared is None or declared is Any:
        return value
    try:
        return load_typed(declared, value, strict=False)
    except (TypeError, ValueError):
        pass
    # msgspec does not know the type. For a union, take the member that is stored as just this value. A client's
    # function is often declared to return an answer or a stream; what was stored is the answer.
    members = _union_members(declared)
    if type(value) in members:
        return value
    fits = [loaded for member in members for loaded in _load_if_fitting(member, value)]
    return next((each for each in fits if plain(each) == value), fits[0] if fits else value)


def _union_members(declared: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    return typing.get_args(declared) if is_union else ()


def _load_if_fitting(declared: Any, value: Value) -> list[Any]:
    try:
        return [load_typed(declared, value, strict=False)]
    except (TypeError, ValueError):
        return []


def _return_type(function: Callable[..., Any]) -> Any:
    try:
        return _read_return_type(function)
    except TypeError:  # a callable object that cannot be hashed
        return _read_return_type.__wrapped__(function)


@functools.lru_cache(maxsize=1024)
def _read_return_type(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return")
    except Exception:  # annotations may name anything; failing to read them must not fail the call
        return None
