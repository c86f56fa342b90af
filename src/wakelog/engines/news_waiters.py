"""Threads that wait for new commits, for engines whose server sends notifications.

A notification can be lost, so it only shortens the wait: each thread also checks again from time to time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from wakelog.model.ids import SessionId


class NewsWaiters:
    """The waiting threads, and the session that each waits for; None means any."""

    def __init__(self) -> None:
        self._waiters: dict[threading.Event, SessionId | None] = {}
        self._lock = threading.Lock()

    def wake(self, session: SessionId) -> None:
        """Wakes the threads that wait for this session or for any."""
        with self._lock:
            for waiter, session_id in self._waiters.items():
                if session_id is None or session_id == session:
                    waiter.set()

    def wake_all(self) -> None:
        with self._lock:
            for waiter in self._waiters:
                waiter.set()

    def wait(self, session: SessionId | None, has_news: Callable[[], bool], *, deadline: float, poll_s: float) -> bool:
        """Waits until `has_news`, which is checked when the thread is woken and every `poll_s`. False if that did not
        happen before the deadline, a time of the monotonic clock."""
        waiter = threading.Event()
        with self._lock:
            self._waiters[waiter] = session
        try:
            while not has_news():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                waiter.wait(min(left, poll_s))
                waiter.clear()
            return True
        finally:
            with self._lock:
                del self._waiters[waiter]
