"""Makes ids of new sessions that sort in the order in which a process creates them.

An id holds the millisecond and random bits. Random bits alone would order the sessions of one millisecond by chance. So
the next id in the same millisecond is the last one plus a random step: it cannot be guessed, and it sorts correctly.
"""

from __future__ import annotations

import os
import threading

from wakelog.model.ids import SessionId, root_id

ENTROPY_BITS = 80
STEP_BITS = 48
"""Small enough not to overflow the random bits, and large enough that a forked process, which starts from the same
number, makes other ids."""

_turn = threading.Lock()
_last = (-1, 0)


def new_root_id(at_us: int) -> SessionId:
    """Returns an id for a new session. It sorts after all others that this process made in this millisecond."""
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
    _turn = threading.Lock()  # a thread that does not exist in the child may have held the old lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _random(bits: int) -> int:
    return int.from_bytes(os.urandom(bits // 8), "big")
