"""Group commit: whoever asks for an answer while nobody is writing writes for all who are in line.

A lone caller is its own leader, so there is no thread to hop to; under load, what queues up while one sync runs shares
the next. Who waits for an answer sleeps by its own bell and not on the leader's lock: if it had to take the lock to
learn that its answer is there, it would stand in line behind the next leader and its sync. Giving up the lead wakes one
that is in line, so that it can lead.

Interrupts may strike anywhere. They must not leave the lock held, nor an answer given that was not written; a wake-up
that gets lost only costs time.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import msgspec

from wakelog.engines.sqlite.fork_safety import is_held
from wakelog.engines.sqlite.rows import PackedCommit
from wakelog.errors import UnavailableError
from wakelog.model.records import Head

T = TypeVar("T")

GROUP_MAX = 256
WAIT_S = 1.0
"""Who is in line looks again after this long, should its leader have died without a word."""


class Bell:
    """Wakes one sleeper. An Event would do, were it not written in Python: interrupted inside, it can stay locked."""

    __slots__ = ("_silence",)

    def __init__(self) -> None:
        self._silence = threading.Lock()
        self._silence.acquire()

    def ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has been rung already
            self._silence.release()

    def wait(self, timeout_s: float) -> bool:
        """Sleeps until it is rung; False when the time ran out."""
        return self._silence.acquire(timeout=timeout_s)


class GroupedAppend(msgspec.Struct, eq=False):
    """An append in line, and the caller's way to its answer."""

    group: Group
    commits: tuple[PackedCommit, ...]
    head: Head | None = None
    error: Exception | None = None
    done: bool = False
    bell: Bell | None = None

    def result(self) -> Head:
        while not self.done:
            self.group.lead(self)
        if self.error is not None:
            raise self.error
        assert self.head is not None
        return self.head

    def wait(self) -> None:
        """Sleeps until this is done, or may lead. The first call only makes it wakeable: its caller must look again."""
        if self.bell is None:
            self.bell = Bell()
        else:
            self.bell.wait(WAIT_S)

    def fail(self, error: Exception, cause: BaseException | None = None) -> None:
        self.head, self.error = None, error
        error.__cause__ = cause


class Group:
    """The line of appends, and the right to write, held by one thread at a time."""

    def __init__(self, write: Callable[[list[GroupedAppend]], None], check: Callable[[], None]) -> None:
        """`write` gives each of a batch its head or its error; `check` raises when nothing may be written any more."""
        self._write, self._check = write, check
        self._queue: deque[GroupedAppend] = deque()
        # Reentrant only because such a lock knows its owner: it can be given back without knowing whether it was taken.
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def submit(self, commits: tuple[PackedCommit, ...]) -> GroupedAppend:
        pending = GroupedAppend(self, commits)
        self._queue.append(pending)
        return pending

    def lead(self, pending: GroupedAppend) -> None:
        """Writes what is in line if nobody else does; else waits until `pending` is done or may lead."""
        if self._pid != os.getpid():
            raise UnavailableError("the append started before this process was forked", kind="answer-unknown")
        if is_held(self._lock):
            raise _nested()
        leads = False
        try:
            leads = self._lock.acquire(blocking=False)
            if leads and not pending.done:
                self._check()
                batch = [*map(self._queue.__getitem__, range(min(len(self._queue), GROUP_MAX)))]
                try:
                    self._write(batch)
                except BaseException as exc:
                    # Anywhere, even after the commit. This thread was told to stop; the others must ask again.
                    for each in batch:
                        each.fail(UnavailableError("the append was interrupted", kind="answer-unknown"), exc)
                    raise
                finally:
                    for each in batch:
                        each.done = True
                        self._queue.popleft()
                        if each.bell is not None:
                            each.bell.ring()
        finally:
            try:  # noqa: SIM105 - suppress() would run code in which an interrupt could strike before the release
                self._lock.release()
            except RuntimeError:
                pass  # it was not taken
        if not leads:
            pending.wait()
        elif self._queue:
            self._wake_next()

    def alone(self, work: Callable[[], T]) -> T:
        """Does something that is not in line while nobody else writes."""
        if is_held(self._lock):
            raise _nested()
        try:
            with self._lock:
                return work()
        finally:
            self._wake_next()

    @property
    def is_mine(self) -> bool:
        """Whether this very thread is writing: then it was interrupted by a signal handler, which is asking."""
        return is_held(self._lock)

    def _wake_next(self) -> None:
        for i in range(len(self._queue)):
            try:
                bell = self._queue[i].bell
            except IndexError:  # another leader was faster
                return
            if bell is not None:
                bell.ring()
                return


def _nested() -> UnavailableError:
    return UnavailableError(
        "a signal handler cannot write while its own thread is appending",
        kind="answer-unknown",
        hint="note the signal, and write after the append",
    )
