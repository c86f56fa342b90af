"""Signal handlers wait until work that they must not interrupt has come to a pause.

A handler written in Python, such as the one of Ctrl-C, runs in the main thread between any two steps, and may raise
there. A driver in compiled code does not survive that in the middle of an answer: it crashes, or hangs. So
while such work runs in the main thread, a signal is only noted and the work asked to pause. Its handler is called then.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` wraps it to return enums, which takes twenty times as long
import signal
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = [
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1")
    if hasattr(signal, name)
]
"""Those whose handlers raise: to stop a program, or because its time is up."""


class DeferredSignals:
    """While this is open, handlers run in `deliver` only. For the main thread."""

    def __init__(self, pause: Callable[[], object]) -> None:
        """`pause` is called when a signal was noted, at any point of the work."""
        self._pause = pause
        self._noted: deque[tuple[int, FrameType | None]] = deque()
        self._handlers: dict[int, Any] = {}
        self._is_open = True

    def __enter__(self) -> DeferredSignals:
        for number in SIGNALS:
            handler = _signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                _signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False  # first: if a handler raises below, those that were not put back are called all the same
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) == self._note:  # else a handler has set another
                _signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_open:
            self._noted.append((number, frame))
            self._pause()
        else:
            self._handlers[number](number, frame)

    def deliver(self) -> None:
        """Calls the handlers of the signals that were noted."""
        while self._noted:
            number, frame = self._noted.popleft()
            self._handlers[number](number, frame)
