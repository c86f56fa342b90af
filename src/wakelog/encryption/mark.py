"""The mark of an encrypted store: it names the key ring that has the keys."""

from __future__ import annotations

import msgspec

from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, NotAllowedError, UnsupportedError
from wakelog.model.described import described

NAME = "encryption"
HINT = "wakelog store create NEW --encrypt KEY, then wakelog store copy NEW"
_VERSION = 1


class _StoreMark(msgspec.Struct, frozen=True):
    v: int
    ring: str


def ring_of(engine: Engine) -> str | None:
    """The id of the key ring of an encrypted store; None if it is not encrypted."""
    marks = engine.abilities.marks
    value = marks.mark(NAME) if marks is not None else None
    if not value:
        return None
    try:
        mark = msgspec.json.decode(value, type=described(_StoreMark))
    except msgspec.DecodeError as exc:
        raise CorruptLogError("the store's encryption mark cannot be read", kind="bad-mark") from exc
    if mark.v > _VERSION:
        raise UnsupportedError(
            "this store is encrypted in a newer format, which this version of wakelog does not support",
            kind="newer-format",
            hint="upgrade wakelog",
        )
    return mark.ring


def mark_encrypted(engine: Engine, ring: str) -> None:
    """Marks a store as encrypted with the keys of a ring. It must not have sessions yet."""
    if engine.sessions(limit=1):
        raise NotAllowedError(
            "this store has sessions that are not encrypted", kind="not-encrypted", hint=f"copy them: {HINT}"
        )
    marks = engine.abilities.marks
    if marks is None:
        raise UnsupportedError("this store cannot keep marks, so it cannot be encrypted", kind="no-marks")
    marks.set_mark(NAME, msgspec.json.encode(_StoreMark(_VERSION, ring)).decode())
