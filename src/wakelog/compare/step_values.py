"""The values of steps, with their payloads."""

from __future__ import annotations

from wakelog.log import Log
from wakelog.model.values import Value

WHOLE_BYTES = 1 << 20
"""Payloads up to this size are fetched to be compared; larger ones are told apart by their hash alone."""


def whole(log: Log, value: Value) -> Value:
    """The value with its payloads in place, as far as they are compared."""
    return log.whole(value, WHOLE_BYTES)


def is_whole(value: Value) -> bool:
    """Whether nothing in a value is still only a mention."""
    if type(value) is not dict:
        return True
    return "$payload" not in value and all(is_whole(item) for item in value.values() if type(item) is dict)
