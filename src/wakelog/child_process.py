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

_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_KEYS = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to all processes in the foreground."""


class SignalForwarding:
    """Forwards signals to the child while the context is open."""

    def __init__(self, *, shares_terminal: bool = False) -> None:
        """With `shares_terminal` the child uses our terminal, and gets Ctrl-C from it directly."""
        self._shares_terminal = shares_terminal
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in _FORWARDED:
                number = getattr(signal, name, None)
                if number is not None:
                    self._before[number] = signal.signal(number, self._forward)
        return self

    def start(self, command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
        """Starts the child. Raises NotFoundError if that fails."""
        try:
            self._child = subprocess.Popen(list(command), **how)
        except OSError as exc:
            raise NotFoundError(
                f"{command[0]} cannot be started: {exc.strerror}", kind="no-command", hint="check the command after --"
            ) from exc
        for number in self._early:
            self._child.send_signal(number)
        return self._child

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self._shares_terminal and signal.Signals(number).name in _KEYS and _is_in_front():
            return
        if self._child is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


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
