"""Between Python objects and what a log can store: arguments and results as plain JSON, and back.

Going in: structs, dataclasses, Pydantic models, sets, dates and bytes become JSON. A result that has no such form is
refused, because it could not be given again; an argument, which only has to be recognised, is told by its `repr`,
marked as such. Coming back, after a crash or in a replay, a result is brought into the type the function declares.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.described import described
from wakelog.model.values import Value, check_value

SUMMARY_MAX = 200
HIDDEN = "[not stored]"
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def plain(value: Any) -> Value:
    """A value of the log for any object, to be recognised by: what has no JSON form is told by its `repr`."""
    try:
        return _built(value, _told)
    except (InvalidInputError, TypeError, ValueError, RecursionError):
        return {"repr": text_of(value)}


def storable(value: Any, what: str = "the result") -> Value:
    """A value of the log for an object that will be given again; InvalidInputError, kind `not-storable`, when that
    cannot be."""
    try:
        return _built(value, _foreign)
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


def _built(value: Any, foreign: Callable[[Any], Any]) -> Value:
    try:
        return check_value(value, reserved=True)
    except InvalidInputError:
        pass
    # In one order: a set has another one in each process, and the same call would not be known again.
    built = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=foreign)
    return check_value(built, reserved=True)


def _foreign(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": text_of(value, str)}
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} has no JSON form")


def _told(value: Any) -> Any:
    try:
        return _foreign(value)
    except TypeError:
        return {"repr": text_of(value)}


def text_of(value: Any, form: Callable[[Any], str] = repr) -> str:
    """Text for any object, also for one that cannot say what it is; without its address, which is another one in each
    process."""
    try:
        return _ADDRESS.sub("", form(value)).encode("utf-8", "replace").decode()
    except Exception:  # foreign code
        return f"<{type(value).__name__}>"


def summarise(value: Value) -> str:
    """The first words of a result, for a line in a list."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= SUMMARY_MAX else text[: SUMMARY_MAX - 1] + "…"


def bind(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, defaults: bool = True
) -> dict[str, Any]:
    """The call's arguments by name, defaults filled in, so that two ways of writing one call are one call."""
    try:
        signature = _signature(function)
    except TypeError:  # an object to be called that cannot be hashed
        signature = _signature.__wrapped__(function)
    if signature is None:
        return {**{f"arg{i}": a for i, a in enumerate(args)}, **kwargs}
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


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def without(arguments: dict[str, Any], hidden: tuple[str, ...]) -> dict[str, Value]:
    """The arguments as they are stored."""
    return {name: HIDDEN if name in hidden else plain(value) for name, value in arguments.items()}


def revive(function: Callable[..., Any], value: Value) -> Any:
    """A stored result as the type the function says it returns; as plain JSON where it says nothing."""
    try:
        declared = _returns(function)
    except TypeError:
        declared = _returns.__wrapped__(function)
    return _as_declared(declared, value)


def revive_part(function: Callable[..., Any], value: Value) -> Any:
    """A stored part of a stream as the type that the function says it gives, part by part."""
    try:
        declared = _returns(function)
    except TypeError:
        declared = _returns.__wrapped__(function)
    inner = typing.get_args(declared)
    return _as_declared(inner[0], value) if inner else value


def _as_declared(declared: Any, value: Value) -> Any:
    if declared is None or declared is Any:
        return value
    # A client's function often returns an answer or, when asked to, a stream of it: what was stored is the answer.
    options = typing.get_args(declared) if typing.get_origin(declared) in (typing.Union, types.UnionType) else ()
    for option in options or (declared,):
        if hasattr(option, "model_validate"):
            with contextlib.suppress(ValueError):
                return option.model_validate(value)
    try:
        return msgspec.convert(value, described(declared), strict=False)
    except (msgspec.ValidationError, TypeError, ValueError):
        return value


@functools.lru_cache(maxsize=1024)
def _returns(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return")
    except Exception:  # annotations may name anything, and failing to read them must not fail the call
        return None
