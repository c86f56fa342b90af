"""The values of steps, with their payloads."""

from __future__ import annotations

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import fetch
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.values import Value

WHOLE_BYTES = 1 << 20
"""Payloads up to this size are fetched to be compared; larger ones are told apart by their hash alone."""


def whole(log: Log, value: Value, limit: int = WHOLE_BYTES) -> Value:
    """The value with its payloads in place, as far as they have at most `limit` bytes (0: any size) and are still
    there. One that was erased says so."""
    if type(value) is not dict:
        return value
    if "$payload" not in value:
        return {key: whole(log, item, limit) if type(item) is dict else item for key, item in value.items()}
    ref = as_ref(value)
    if ref is None or (limit and ref.size > limit):
        return value
    try:
        return decode_payload(fetch(log.engine, log.segments, ref.at, bytes.fromhex(ref.hash)), ref.media)
    except NotFoundError:
        return {"$erased": ref.at}


def is_whole(value: Value) -> bool:
    """Whether nothing in a value is still only a mention."""
    if type(value) is not dict:
        return True
    return "$payload" not in value and all(is_whole(item) for item in value.values() if type(item) is dict)
