"""Ids of new sessions, in the order in which one process makes them.

An id holds its millisecond and random bits. Within one millisecond random bits alone would order sessions by chance, so
the next id is the last one plus a random step: still nobody's guess, and listed where it belongs.
"""

from __future__ import annotations

import os
import threading

from wakelog.model.ids import SessionId, root_id

ENTROPY_BITS = 80
STEP_BITS = 48
"""Steps this small never use up what is left above a random number, and this large never meet those of a forked
process that counts on from the same number."""

_turn = threading.Lock()
_last = (-1, 0)


def new_root_id(at_us: int) -> SessionId:
    """The id of a session that is made now; it sorts after every other that this process made in this millisecond."""
    global _last
    with _turn:
        millisecond, number = at_us // 1000, _random(ENTROPY_BITS)
        if millisecond == _last[0]:
            stepped = _last[1] + 1 + _random(STEP_BITS)
            number = stepped if stepped < 1 << ENTROPY_BITS else number
        _last = (millisecond, number)
    return root_id(at_us, number.to_bytes(ENTROPY_BITS // 8, "big"))


def _after_fork_in_child() -> None:
    global _turn
    _turn = threading.Lock()  # its lock may have been held by a thread that is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _random(bits: int) -> int:
    return int.from_bytes(os.urandom(bits // 8), "big")
