"""A command that runs in our place: it gets the signals that are sent to us, and its end becomes ours."""

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
"""Sent by a terminal, to everybody in front of it."""


class SignalForwarding:
    """While inside, signals sent to us go to the child, which decides what they mean."""

    def __init__(self, *, shares_terminal: bool = False) -> None:
        """With `shares_terminal` the child reads from our terminal, and gets what is typed there by itself."""
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
        """Starts the child. NotFoundError when it cannot be."""
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
    """Whether a terminal sends us what is typed."""
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
    """The exit code for a child's end. If a signal ended it, this process dies of the same: who started us sees what it
    would have seen."""
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        return 128 - code
    return code
