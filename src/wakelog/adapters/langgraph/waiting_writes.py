"""What tasks have written and is not stored yet: it waits a moment for a checkpoint that takes it along.

LangGraph stores a task's writes in the background, and right after that the checkpoint they lead to. In one commit both
cost one sync. Nobody is told that a write is stored before it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from wakelog.model.values import Value


class TaskWrites:
    """What one task wrote after a checkpoint, in its stored form."""

    def __init__(
        self,
        ns: str,
        checkpoint: str,
        task: str,
        path: str,
        writes: Sequence[tuple[int, str, Value]],
        asked: Sequence[tuple[str, Value]],
    ) -> None:
        self.ns = ns
        self.checkpoint = checkpoint
        self.task = task
        self.path = path
        self.writes = writes
        self.asked = asked
        """Questions to people among them: request and question."""
        self.is_stored = False
        self._bell = threading.Lock()  # for the one who waits: an event takes as long to make as a write to store
        self._bell.acquire()

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is stored; False when that was not in time. Only one thread may wait."""
        return self._bell.acquire(timeout=timeout_s) or self.is_stored

    def ring(self) -> None:
        self.is_stored = True
        self._bell.release()

    @property
    def node(self) -> str:
        """The node that the task ran, as far as its path tells."""
        parts = self.path.split(", ")
        return parts[1] if len(parts) > 1 and parts[0] == "~__pregel_pull" else "a task"


class WaitingWrites:
    """Those that wait, in the order they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[TaskWrites] = []

    def add(self, writes: TaskWrites) -> int:
        """Lets it wait; how many do now."""
        with self._lock:
            self._waiting.append(writes)
            return len(self._waiting)

    def take(self, is_ready: Callable[[TaskWrites], bool]) -> list[TaskWrites]:
        """Those that are ready; the others wait on."""
        with self._lock:
            taken = [each for each in self._waiting if is_ready(each)]
            self._waiting = [each for each in self._waiting if each not in taken]
            return taken

    def give_back(self, taken: Sequence[TaskWrites]) -> None:
        """Lets them wait again: they were not stored."""
        with self._lock:
            self._waiting = [*taken, *self._waiting]

    def stored(self, taken: Sequence[TaskWrites]) -> None:
        for each in taken:
            each.ring()
