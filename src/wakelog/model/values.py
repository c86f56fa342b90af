"""Checks what may be stored as a value.

A value is JSON that means the same in every language: None, bool, str, int within ±(2^53 - 1), finite float, list, dict
with str keys. Integral floats become ints, because JSON readers cannot tell 1.0 from 1. NaN, infinities, larger ints
and lone surrogates are refused with a hint. So are the reserved keys with which the log marks payloads and erasures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wakelog.errors import InvalidInputError
from wakelog.native import core

Value = Any
"""JSON data as described above. Foreign data enters here, so the type checker cannot help further."""

INT_MAX = 2**53 - 1
DEPTH_MAX = 64
RESERVED_KEYS = frozenset({"$payload", "$erased", "$redacted"})
_INFINITE = float("inf")


def as_int(value: object) -> int:
    """An integer from 0 that JSON holds exactly; 0 for anything else."""
    return value if type(value) is int and 0 <= value <= INT_MAX else 0


def is_plain_in_python(value: Value, mark: str | None = None, depth: int = 0) -> bool:
    """Whether a value can be stored unchanged. Most can, and this check is four times faster than `_check`, because it
    tracks no paths and makes no copies. False only means that `_check` must decide. An object with the key `mark` is
    refused too."""
    if depth >= DEPTH_MAX:
        return False
    kind = type(value)
    if kind is dict:
        for key in value:
            if type(key) is not str or key in RESERVED_KEYS or key == mark or not (key.isascii() or _is_text(key)):
                return False
        items = value.values()
    elif kind is list:
        items = value
    else:
        items = (value,)
    for item in items:
        kind = type(item)
        if kind is str:
            if not (item.isascii() or _is_text(item)):
                return False
        elif kind is int:
            if not -INT_MAX <= item <= INT_MAX:
                return False
        elif kind is dict or kind is list:
            if not is_plain_in_python(item, mark, depth + 1):
                return False
        elif kind is float:
            if item.is_integer() or not -_INFINITE < item < _INFINITE:
                return False
        elif item is not None and kind is not bool:
            return False
    return True


is_plain: Callable[..., bool] = is_plain_in_python if core is None else core.is_plain


def check_value(value: Value, where: str = "value", *, reserved: bool = False) -> Value:
    """Returns `value` with integral floats as ints; the same object if nothing had to change.

    With `reserved`, the log's own keys are accepted: inside a payload they mean nothing.
    """
    if is_plain(value):
        return value
    return _check(value, where, 0, reserved)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(text: str, where: str) -> str:
    encode_text(text, where)
    return text


def encode_text(text: str, where: str) -> bytes:
    """Returns text as stored bytes."""
    try:
        return text.encode()
    except AttributeError:
        raise InvalidInputError(
            f"{where} is a text, not {text!r}"[:200], kind="not-a-value", hint="convert it with str()"
        ) from None
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{where} holds a lone surrogate (half of a UTF-16 pair), which is not text",
            kind="not-a-value",
            hint='decode with errors="replace", or pass bytes as a payload',
        ) from None


def _check(value: Value, where: str, depth: int, reserved: bool) -> Value:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else check_text(value, where)
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -INT_MAX <= value <= INT_MAX:
            shown = value if value.bit_length() < 256 else f"an integer of {value.bit_length():,} bits"
            raise _refusal(where, f"{shown} is beyond ±(2^53 - 1), where JSON readers round", "pass it as a string")
        return value
    if kind is float:
        return _check_float(value, where)
    if depth >= DEPTH_MAX:
        raise _refusal(where, f"it is nested deeper than {DEPTH_MAX} levels", "store it as a payload")
    if kind is dict:
        return _check_dict(value, where, depth, reserved)
    if kind is list or kind is tuple:
        return _check_list(value, where, depth, reserved)
    raise _refusal(where, f"{kind.__name__} is not JSON", "convert it to str, int, float, list or dict first")


def _check_float(value: float, where: str) -> int | float:
    if value != value or value in (float("inf"), float("-inf")):
        raise _refusal(where, f"{value} is not JSON", "pass None or a string")
    if value.is_integer():
        return _check(int(value), where, 0, False)  # type: ignore[no-any-return]
    return value


def _check_dict(value: dict[Any, Any], where: str, depth: int, reserved: bool) -> dict[str, Value]:
    out: dict[str, Value] = {}
    same = True
    for key, item in value.items():
        if type(key) is not str:
            raise _refusal(where, f"the key {key!r} is not a str", "convert keys with str()")
        if not key.isascii():
            check_text(key, f"a key in {where}")
        if key in RESERVED_KEYS and not reserved:
            raise InvalidInputError(
                f"{where} cannot be stored: the key {key!r} is reserved for the log",
                kind="reserved-key",
                hint="rename it, or store it as a payload",
            )
        checked = _check(item, f"{where}.{key}", depth + 1, reserved)
        same = same and checked is item
        out[key] = checked
    return value if same else out


def _check_list(value: list[Any] | tuple[Any, ...], where: str, depth: int, reserved: bool) -> list[Value]:
    out = [_check(item, f"{where}[{i}]", depth + 1, reserved) for i, item in enumerate(value)]
    if type(value) is list and all(a is b for a, b in zip(value, out, strict=True)):
        return value
    return out


def _refusal(where: str, what: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{where} cannot be stored: {what}", kind="not-a-value", hint=hint)
