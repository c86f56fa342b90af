"""File changes that hooks observed, and the calls that they belong to.

Hooks report them by the call's id. Gemini CLI gives its hooks no ids, so there a call is the first, second ... call of
its command among those that are new.
"""

from __future__ import annotations

from collections import Counter

from wakelog.importers import steps as st
from wakelog.model import events as ev

FileChanges = dict[str, list[ev.FileChanged]]
"""By call: its id, or `call_by_command`."""
COMMAND_MAX = 200
"""How much of a command hooks tell."""


def call_by_command(command: str, number: int) -> str:
    return f"{number} {command[:COMMAND_MAX]}"


class ObservedFiles:
    """What was observed and is not written yet."""

    def __init__(self, changes: FileChanges) -> None:
        self.left = dict(changes)
        self._count: Counter[str] = Counter()

    def pop(self, id: str, call: st.CallStep | None) -> list[ev.FileChanged]:
        """The changes of a call, in the order of the calls."""
        given = call.input if call is not None else None
        command = given.get("command") if isinstance(given, dict) else None
        if isinstance(command, str):
            command = command[:COMMAND_MAX]
            self._count[command] += 1
            if by_command := self.left.pop(call_by_command(command, self._count[command]), None):
                return by_command
        return self.left.pop(id, [])
