"""Runs a command in our place: forwards signals to it, and ends the way it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

from wakelog.errors import NotFoundError

_FORWARDED = [
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]
_KEYS = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to all processes in the foreground."""


class SignalForwarding:
    """Forwards signals to the child while the context is open.

    A thread does it, woken by Python's wakeup pipe. A handler would run in the main thread, and only between two
    bytecodes: a signal that arrives just before the main thread blocks, to wait for the child or to read from it, would
    not be forwarded until the child ends.
    """

    def __init__(self, *, shares_terminal: bool = False) -> None:
        """With `shares_terminal` the child uses our terminal, and gets Ctrl-C from it directly."""
        self._shares_terminal = shares_terminal
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._lock = threading.Lock()
        self._before: dict[int, Any] = {}
        self._wakeup = self._wakeup_before = -1

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            arrivals, self._wakeup = os.pipe()
            os.set_blocking(self._wakeup, False)
            threading.Thread(target=self._forward_all, args=(arrivals,), daemon=True).start()
            self._wakeup_before = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
            for number in _FORWARDED:
                self._before[number] = signal.signal(number, _do_nothing)
        return self

    def start(self, command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Starts the child. Raises NotFoundError if that fails."""
        try:
            child = subprocess.Popen(list(command), **how)
        except OSError as exc:
            raise NotFoundError(
                f"{command[0]} cannot be started: {exc.strerror}", kind="no-command", hint="check the command after --"
            ) from exc
        with self._lock:
            self._child = child
        for number in self._early:
            child.send_signal(number)
        return child

    def _forward_all(self, arrivals: int) -> None:
        with open(arrivals, "rb", buffering=0) as pipe:
            while numbers := pipe.read(64):
                for number in numbers:
                    if number in _FORWARDED:
                        self._forward(number)

    def _forward(self, number: int) -> None:
        if self._shares_terminal and signal.Signals(number).name in _KEYS and _is_in_front():
            return
        with self._lock:
            if self._child is None:
                self._early.append(number)
                return
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def __exit__(self, *_: object) -> None:
        if self._wakeup >= 0:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup_before)
            os.close(self._wakeup)  # which ends the thread


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal does not end this process."""


def _is_in_front() -> bool:
    """Whether we are in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except (OSError, AttributeError):
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def end_like(code: int) -> int:
    """Returns the exit code for a child's end. If a signal ended the child, this process ends by the same signal, so
    that our parent sees the same."""
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        return 128 - code
    return code
