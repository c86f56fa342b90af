"""The history that a fork of Codex repeats at its start.

A fork names the session that it continues, and copies that session's records with new times. The ids of turns say when
they were made, which tells copied records from own ones. In versions without such ids the time tells: a copy is written
all at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from wakelog.importers.steps import MessageStep, Step
from wakelog.model.json_fields import text_in

REPLAY_US = 2_000_000


class ReplayedHistory:
    """Detects the records at the start of a fork that repeat another session."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._parent = ""
        self._made_at_ms = self._first = 0
        self._has_times = False
        self._count = 0
        self._is_on = False
        self._number = 0

    def covers(self, kind: str, payload: dict[str, Any], at: int) -> bool:
        """Whether a record is copied history. Ask for each record, in the file's order."""
        self._number += 1
        if kind == "session_meta":
            parent = text_in(payload, "forked_from_id")
            id = text_in(payload, "id")
            if id == self._origin and parent:
                self._parent, self._made_at_ms, self._first, self._is_on = parent, _made_at_ms(id), at, True
                return False
            if id and id != self._origin and self._number == 2 and not self._parent:
                self._parent, self._made_at_ms, self._first, self._is_on = id, _made_at_ms(self._origin), at, True
        if not self._is_on:
            return False
        born = _made_at_ms(text_in(payload, "turn_id")) if kind in ("event_msg", "turn_context") else 0
        self._has_times = self._has_times or bool(born)
        is_own = born >= self._made_at_ms if born and self._made_at_ms else False
        is_late = not self._has_times and bool(at and self._first) and at - self._first > REPLAY_US
        if is_own or is_late:
            self._is_on = False
            return False
        self._count += 1
        return True

    def note(self) -> Iterator[Step]:
        """After the copied history: a message that says so, once."""
        if self._count and not self._is_on:
            text = f"This session goes on from {self._parent}: {self._count} records of that one's history come first."
            self._count = 0
            yield MessageStep("system", text, name="fork")


def _made_at_ms(id: str) -> int:
    """When an id was made, in milliseconds, if it says so (UUID version 7)."""
    try:
        found = uuid.UUID(id)
    except ValueError:
        return 0
    return found.int >> 80 if found.version == 7 else 0
