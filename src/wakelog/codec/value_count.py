"""Counts the values in a text before it is decoded.

A list takes sixty bytes of memory, but three bytes of JSON or one of MessagePack. So the memory that a text needs when
decoded depends on the number of its values rather than on its size. Counting is fast and needs almost no memory.
"""

from __future__ import annotations

VALUES_MAX = 500_000
"""How many values one request, or one line of a bundle, may hold."""

# Of MessagePack's one-byte heads from 0xc0 on: how many bytes belong to the value, the head included; or, negative, how
# many bytes tell the length of what follows. Lists and maps are heads of what is counted anyway.
_SIZES = (
    *(1, 1, 1, 1),  # nil, (never used), false, true
    *(-1, -2, -4),  # bin
    *(-1, -2, -4),  # ext: the length, then a type
    *(5, 9),  # floats
    *(2, 3, 5, 9, 2, 3, 5, 9),  # integers
    *(3, 4, 6, 10, 18),  # fixext
    *(-1, -2, -4),  # str
    *(3, 5, 3, 5),  # list, map
)


def is_heavy_json(data: bytes, most: int = VALUES_MAX) -> bool:
    """Whether a JSON text holds more values than the limit."""
    if len(data) <= 2 * most or _marks(data) < most:
        return False
    # Many commas, but they may be within strings. Without escapes, what is outside of strings is every other part.
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bare.count(b'"') > 4 * most or sum(map(_marks, bare.split(b'"')[::2])) >= most


def is_heavy_msgpack(data: bytes, most: int = VALUES_MAX) -> bool:
    """The same for MessagePack."""
    if len(data) <= most:
        return False
    at, end, count = 0, len(data), 0
    while at < end:
        count += 1
        if count > most:
            return True
        head = data[at]
        if 0xA0 <= head < 0xC0:
            at += 1 + (head & 0x1F)
        elif 0xC0 <= head < 0xE0:
            size = _SIZES[head - 0xC0]
            if size < 0:
                extra = 1 if 0xC7 <= head <= 0xC9 else 0
                size = 1 - size + extra + int.from_bytes(data[at + 1 : at + 1 - size], "big")
            at += size
        else:
            at += 1
    return False


def _marks(data: bytes) -> int:
    """One less than there are values, or more."""
    return data.count(b",") + data.count(b"[") + data.count(b"{") + data.count(b":")
