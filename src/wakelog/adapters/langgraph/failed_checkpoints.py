"""Checkpoints that could not be stored, and why.

LangGraph 1.0 continues to store what follows a failed checkpoint, and would overwrite what another run has stored. So
everything that builds on a failed checkpoint is refused with the same error.
"""

from __future__ import annotations

from copy import copy

from wakelog.errors import WakelogError

_MAX = 1024


class FailedCheckpoints:
    """The latest failures of one thread, by the checkpoint's key."""

    def __init__(self) -> None:
        self._errors: dict[str, WakelogError] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._errors

    def add(self, key: str, error: WakelogError) -> None:
        self._errors[key] = copy(error)  # without its traceback, whose frames hold the state
        while len(self._errors) > _MAX:
            del self._errors[next(iter(self._errors))]

    def discard(self, key: str) -> None:
        self._errors.pop(key, None)

    def refuse(self, key: str) -> None:
        """Raises the error of this checkpoint, if it failed."""
        if (error := self._errors.get(key)) is not None:
            raise copy(error)
