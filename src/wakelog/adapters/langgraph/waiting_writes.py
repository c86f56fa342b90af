"""Task writes that are not stored yet. They wait a moment for a checkpoint whose commit can include them.

LangGraph stores a task's writes in the background, and right after that the checkpoint that they lead to. In one commit
both cost one sync. A caller returns only when its writes are stored.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.types import INTERRUPT

from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.interrupts import interrupts_in
from wakelog.adapters.langgraph.thread_data import checkpoint_key
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
        questions: Sequence[tuple[str, Value]],
    ) -> None:
        self.ns = ns
        self.checkpoint = checkpoint
        self.key = checkpoint_key(ns, checkpoint)
        self.task = task
        self.path = path
        self.writes = writes
        self.questions = questions
        """The interrupts among the writes: request id and question."""
        self.is_stored = False
        self.is_awaited = False
        """True while a caller waits that will soon store these writes, and the checkpoint they were made on."""
        self._bell = threading.Lock()  # not an Event: creating one takes as long as storing a write
        self._bell.acquire()

    @classmethod
    def encode(
        cls, codec: ValueCodec, ns: str, checkpoint: str, task: str, path: str, writes: Sequence[tuple[str, Any]]
    ) -> TaskWrites:
        stored = [
            (WRITES_IDX_MAP.get(channel, i), channel, codec.encode(value, f"a write to {channel}"))
            for i, (channel, value) in enumerate(writes)
        ]
        interrupts = [each for channel, value in writes if channel == INTERRUPT for each in interrupts_in(value)]
        questions = [
            (str(each.id), codec.encode(each.value, "an interrupt") if codec.is_readable else "(not readable)")
            for each in interrupts
        ]
        return cls(ns, checkpoint, task, path, stored, questions)

    def wait(self, timeout_s: float) -> bool:
        """Waits until the writes are stored, or the waiter is woken; True if they are stored. For one thread only."""
        self._bell.acquire(timeout=timeout_s)
        return self.is_stored

    def mark_stored(self) -> None:
        self.is_stored = True
        self.wake()

    def wake(self) -> None:
        """Makes the waiter check again."""
        with contextlib.suppress(RuntimeError):  # it has not checked since the last call
            self._bell.release()

    @property
    def node(self) -> str:
        """The node that the task ran, as far as its path tells."""
        parts = self.path.split(", ")
        return parts[1] if len(parts) > 1 and parts[0] == "~__pregel_pull" else "a task"


class WaitingWrites:
    """The writes that wait, in order of arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[TaskWrites] = []
        self._expected: dict[str, threading.Lock] = {}

    def add(self, writes: TaskWrites) -> int:
        """Adds writes; returns how many now wait that were made on the same checkpoint."""
        with self._lock:
            self._waiting.append(writes)
            if (bell := self._expected.pop(writes.key, None)) is not None:
                bell.release()
            return sum(other.key == writes.key for other in self._waiting)

    def has_awaited(self, checkpoint: str, *, within_s: float = 0) -> bool:
        """True if writes on this checkpoint wait together with their caller, or arrive within the time given."""
        with self._lock:
            if any(writes.key == checkpoint and writes.is_awaited for writes in self._waiting):
                return True
            if not within_s:
                return False
            bell = self._expected[checkpoint] = threading.Lock()
            bell.acquire()
        if bell.acquire(timeout=within_s):
            return self.has_awaited(checkpoint)
        with self._lock:
            self._expected.pop(checkpoint, None)
        return False

    def take(self, is_ready: Callable[[TaskWrites], bool]) -> list[TaskWrites]:
        """Removes and returns the writes that are ready."""
        with self._lock:
            taken = [writes for writes in self._waiting if is_ready(writes)]
            self._waiting = [writes for writes in self._waiting if writes not in taken]
            return taken

    def give_back(self, taken: Sequence[TaskWrites]) -> None:
        """Puts writes back that could not be stored."""
        with self._lock:
            self._waiting = [*taken, *self._waiting]

    def wake(self, checkpoint: str) -> None:
        """Makes the callers check again that wrote on this checkpoint."""
        with self._lock:
            for writes in self._waiting:
                if writes.key == checkpoint:
                    writes.wake()
