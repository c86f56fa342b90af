"""What a session's log says of its sub-agents, so that nothing is said twice.

A transcript and hooks both tell when a sub-agent starts and ends, and which of them comes first differs. When the
program ends, its sub-agents count as interrupted; a word on how one really ended may still come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wakelog.model import events as ev
from wakelog.model.values import Value


class RecordedSubagents:
    """Makes the events of a parent about its sub-agents, by session id. `state` is that part of the parent's state."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._status = {child: str(about["status"]) for child, about in state.items()}

    def status(self, child: str) -> str:
        """How it ended, or `running`. Empty if the log does not name it."""
        return self._status.get(child, "")

    def started(self, child: str, task: str) -> Iterator[ev.SubagentSpawned]:
        if child not in self._status:
            self._status[child] = "running"
            yield ev.SubagentSpawned(session=child, task=task)

    def returned(self, child: str, outcome: str, output: Value = None) -> Iterator[ev.SubagentReturned]:
        state = self.status(child)
        if state in ("", "running") or state == "interrupted" != outcome:
            self._status[child] = outcome
            yield ev.SubagentReturned(session=child, outcome=outcome, output=output)

    def left(self) -> Iterator[ev.SubagentReturned]:
        """The session ended: no parent waits for them any more."""
        for child in [child for child, status in self._status.items() if status == "running"]:
            yield from self.returned(child, "interrupted")
