"""Retries when another writer came first. Every retry loop of this kind uses this one limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from wakelog.errors import ConflictError, UnavailableError
from wakelog.model.ids import SessionId

TRIES = 1000
_EAGER = 8
"""How many tries come without a pause. Later ones wait a little, so that writers stop colliding."""

T = TypeVar("T")


def retry_on_moved_head(session: SessionId, what: str, attempt: Callable[[], T]) -> T:
    """Runs `attempt`, which reads the head and appends there, again and again while another writer comes first.

    UnavailableError (`too-busy`) after many tries; `what` completes "session … is too busy …".
    """
    tries = 0
    while True:
        try:
            return attempt()
        except ConflictError as exc:
            tries = next_try(tries, exc, session, what)


def next_try(tries: int, refused: ConflictError, session: SessionId, what: str) -> int:
    """Waits before the next try and returns the number of tries so far; raises after too many."""
    if refused.kind != "head-moved":
        raise refused
    if tries + 1 == TRIES:
        raise UnavailableError(
            f"session {session} is too busy {what}: other writers came first {TRIES} times in a row", kind="too-busy"
        ) from None
    if tries > _EAGER:
        import random  # seldom needed, and slow to load

        time.sleep(random.uniform(0, 0.002 * min(tries, 50)))
    return tries + 1
