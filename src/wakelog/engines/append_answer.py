"""The answer to a pending append: set once, and awaited in any thread.

It is only a lock. The futures of the standard library also cancel, count and notify, and cost several times as much for
each commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from wakelog.model.records import Commit, Head


class AppendAnswer:
    """Commits that were submitted together, and their answer."""

    def __init__(self, commits: tuple[Commit, ...]) -> None:
        self.commits = commits
        self._head: Head | None = None
        self._error: BaseException | None = None
        self._gate = threading.Lock()
        self._gate.acquire()
        self._listener: Callable[[], None] | None = None

    @property
    def is_given(self) -> bool:
        return self._head is not None or self._error is not None

    def give(self, head: Head) -> None:
        """Sets the answer, unless there is one already."""
        if not self.is_given:
            self._head = head
            self._open()

    def refuse(self, exc: BaseException) -> None:
        if not self.is_given:
            self._error = exc
            self._open()

    def _open(self) -> None:
        self._gate.release()
        if self._listener is not None:
            self._listener()

    @property
    def stored(self) -> Head | None:
        """The head, if that is the answer and it is there."""
        return self._head

    def on_given(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when there is an answer, in the thread that gives it; at once if there is one already. It
        may be called twice, if the answer comes at this moment."""
        self._listener = listener
        if self.is_given:
            listener()

    def result(self) -> Head:
        with self._gate:
            pass  # released once there is an answer
        if self._error is not None:
            raise self._error
        assert self._head is not None
        return self._head
