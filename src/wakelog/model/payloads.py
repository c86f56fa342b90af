"""Payloads: big values kept beside the record that mentions them, by content hash.

A body mentions a payload as `{"$payload": "<sha256>", "size": n, "media": "text"}`. The bytes are stored with the
commit that first brings them; a later mention of the same content adds `"at": seq`, the first event of that commit.
The hash stands in the erasable body, not in the header: once both are gone, nothing is left to test guesses against.
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
    """Bytes to be stored beside an event. Put one where an event takes a value."""

    __slots__ = ("content", "digest", "media")

    def __init__(self, content: bytes, media: Media = "bytes") -> None:
        self.content = content
        self.media = media
        self.digest = hashlib.sha256(content).digest()


class PayloadRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The mention of a payload inside a body."""

    hash: str = msgspec.field(name="$payload")
    size: int = 0
    media: Media = "bytes"
    at: int = 0


def as_ref(value: Value) -> PayloadRef | None:
    """`value` as a payload mention, or None when it is an ordinary value. One that cannot be read is damage."""
    if type(value) is not dict or "$payload" not in value:
        return None
    try:
        ref = msgspec.convert(value, PayloadRef)
        bytes.fromhex(ref.hash)
    except (msgspec.ValidationError, ValueError) as exc:
        raise CorruptLogError(f"a reference to a payload cannot be read: {exc}") from exc
    return ref


def is_erased(value: Value) -> bool:
    """Whether content stood here that was erased."""
    return type(value) is dict and "$erased" in value


def without_bytes(value: Value) -> Value:
    """A payload as JSON can hold it: bytes become base64, in an object that says so."""
    return {"$base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def decode_payload(content: bytes, media: Media) -> Value:
    """What the caller first passed in: text, a JSON value, or the bytes themselves."""
    try:
        if media == "text":
            return content.decode()
        if media == "json":
            return msgspec.json.decode(content)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as exc:
        raise CorruptLogError(f"a payload is not valid {media}: {exc}") from exc
    return content
