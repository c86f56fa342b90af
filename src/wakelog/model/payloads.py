"""Payloads: big values, stored by content hash apart from the record that refers to them.

A body refers to a payload as `{"$payload": "<sha256>", "size": n, "media": "text"}`. The bytes are stored with the
commit that first has them; a later reference to the same content adds `"at": seq`, the first event of that commit. The
hash is in the erasable body, not in the header: after both are erased, no guess can be tested against it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Literal

import msgspec

from wakelog.errors import CorruptLogError
from wakelog.model.values import Value

Media = Literal["text", "json", "bytes"]


class Payload:
    """Bytes to store as a payload. It can be used wherever an event takes a value."""

    __slots__ = ("content", "digest", "media")

    def __init__(self, content: bytes, media: Media = "bytes") -> None:
        self.content = content
        self.media = media
        self.digest = hashlib.sha256(content).digest()


class PayloadRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The reference to a payload in a body."""

    hash: str = msgspec.field(name="$payload")
    size: int = 0
    media: Media = "bytes"
    at: int = 0


def as_ref(value: Value) -> PayloadRef | None:
    """Returns `value` as a payload reference, or None for an ordinary value. Raises CorruptLogError if it is
    damaged."""
    if type(value) is not dict or "$payload" not in value:
        return None
    try:
        ref = msgspec.convert(value, PayloadRef)
        bytes.fromhex(ref.hash)
    except (msgspec.ValidationError, ValueError) as exc:
        raise CorruptLogError(f"a reference to a payload cannot be read: {exc}") from exc
    return ref


def is_erased(value: Value) -> bool:
    """Whether the value marks erased content."""
    return type(value) is dict and "$erased" in value


def without_bytes(value: Value) -> Value:
    """Returns a payload as JSON: bytes become base64 in an object with the key `$base64`."""
    return {"$base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def decode_payload(content: bytes, media: Media) -> Value:
    """Returns what the caller passed in: text, a JSON value, or the bytes."""
    try:
        if media == "text":
            return content.decode()
        if media == "json":
            return msgspec.json.decode(content)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as exc:
        raise CorruptLogError(f"a payload is not valid {media}: {exc}") from exc
    return content
