"""Session ids. A fork's id contains its root's id.

The id of a root session is `s_` and a ULID: 48 bits of milliseconds and 80 random bits in Crockford's base 32, so ids
sort by age. A fork's id is its root's id, a dot, and eight random characters. So the root of any id is the part before
the dot: engines can shard by fork tree without a lookup, and all payloads of a tree stay together. Time and randomness
are passed in.
"""

from __future__ import annotations

import re
from typing import NewType

from wakelog.errors import InvalidInputError

SessionId = NewType("SessionId", str)
Seq = int
"""A position in a session: 1 is the first event, 0 means "nothing yet"."""

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FORM = re.compile(r"s_[0-9A-HJKMNP-TV-Z]{26}(\.[0-9A-HJKMNP-TV-Z]{8})?")


def root_id(at_us: int, entropy: bytes) -> SessionId:
    """Makes the id of a new root session from a time in microseconds and ten random bytes."""
    number = ((at_us // 1000) & ((1 << 48) - 1)) << 80 | int.from_bytes(entropy[:10], "big")
    return SessionId("s_" + _base32(number, 26))


def fork_id(parent: SessionId, entropy: bytes) -> SessionId:
    """Makes the id of a new fork in `parent`'s tree from five random bytes."""
    return SessionId(f"{root_of(parent)}.{_base32(int.from_bytes(entropy[:5], 'big'), 8)}")


def root_of(session: SessionId) -> SessionId:
    """Returns the root of a session's fork tree; a root is its own root."""
    return SessionId(session.partition(".")[0])


def parse_session_id(text: str) -> SessionId:
    """Returns `text` as a session id. Raises InvalidInputError if it is none."""
    if not _FORM.fullmatch(text):
        raise InvalidInputError(f"{text!r} is not a session id; ids look like s_01JCX4… or s_01JCX4….8F3K2M9Q")
    return SessionId(text)


def is_session_id(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def _base32(number: int, width: int) -> str:
    out = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        out.append(_ALPHABET[digit])
    return "".join(reversed(out))
