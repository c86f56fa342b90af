"""What tasks have written and is not stored yet: it waits a moment for a checkpoint that takes it along.

LangGraph stores a task's writes in the background, and right after that the checkpoint they lead to. In one commit both
cost one sync. Nobody is told that a write is stored before it is.
"""

from __future__ import annotations

import contextlib
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
        self.is_awaited = False
        """Whether a caller waits, and will soon see to it that this is stored, and the checkpoint it was made on."""
        self._bell = threading.Lock()  # for the one who waits: an event takes as long to make as a write to store
        self._bell.acquire()

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is stored; False when that was not in time. Only one thread may wait."""
        self._bell.acquire(timeout=timeout_s)
        return self.is_stored

    def ring(self) -> None:
        self.is_stored = True
        self.wake()

    def wake(self) -> None:
        """Lets the one who waits look again."""
        with contextlib.suppress(RuntimeError):  # it has not looked since the last time
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
        self._expected: dict[tuple[str, str], threading.Lock] = {}

    def add(self, writes: TaskWrites) -> int:
        """Lets it wait; how many do now that were made on the same checkpoint."""
        with self._lock:
            self._waiting.append(writes)
            if (bell := self._expected.pop((writes.ns, writes.checkpoint), None)) is not None:
                bell.release()
            return sum((each.ns, each.checkpoint) == (writes.ns, writes.checkpoint) for each in self._waiting)

    def has(self, ns: str, checkpoint: str, *, within_s: float = 0) -> bool:
        """Whether a task has written on a checkpoint, or does so soon, and its caller waits."""
        with self._lock:
            if any((each.ns, each.checkpoint) == (ns, checkpoint) and each.is_awaited for each in self._waiting):
                return True
            if not within_s:
                return False
            bell = self._expected[ns, checkpoint] = threading.Lock()
            bell.acquire()
        if bell.acquire(timeout=within_s):
            return self.has(ns, checkpoint)
        with self._lock:
            self._expected.pop((ns, checkpoint), None)
        return False

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

    def wake(self, ns: str, checkpoint: str) -> None:
        """Lets those look again that wrote on a checkpoint."""
        with self._lock:
            for each in self._waiting:
                if (each.ns, each.checkpoint) == (ns, checkpoint):
                    each.wake()

    def stored(self, taken: Sequence[TaskWrites]) -> None:
        for each in taken:
            each.ring()
