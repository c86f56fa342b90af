"""Group commit: a thread that asks for a result while no thread writes becomes the leader and writes the whole queue.

A lone caller is its own leader, so no other thread is involved. Under load, the appends that queue up during one sync
share the next one. A waiting thread sleeps on a bell of its own and not on the leader's lock: to take the lock it would
have to wait for the next leader's sync as well. A leader that is done wakes one waiting thread, which leads next.

An interrupt can arrive at any point. It must not leave the lock held, or an append answered that was not written. A
lost wake-up only costs time.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from wakelog.errors import UnavailableError
from wakelog.model.records import Head

T = TypeVar("T")
C = TypeVar("C")
"""A commit as the engine writes it."""

GROUP_MAX = 256
WAIT_S = 1.0
"""A waiting thread checks again after this long, in case its leader was interrupted before waking it."""


class Bell:
    """Wakes one sleeper. Not `threading.Event`: that is Python code, and an interrupt inside can leave it locked."""

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


class GroupedAppend(msgspec.Struct, Generic[C], eq=False):
    """A queued append, and its result."""

    group: Group[C]
    commits: tuple[C, ...]
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
        """Sleeps until this is done or may lead. The first call only makes the bell: the caller must check again."""
        if self.bell is None:
            self.bell = Bell()
        else:
            self.bell.wait(WAIT_S)

    def fail(self, error: Exception, cause: BaseException | None = None) -> None:
        self.head, self.error = None, error
        error.__cause__ = cause


class Group(Generic[C]):
    """The queue of appends, and the right to write, which one thread holds at a time."""

    def __init__(self, write: Callable[[list[GroupedAppend[C]]], None], check: Callable[[], None]) -> None:
        """`write` sets the head or the error of each append in a batch. `check` raises when the store is closed."""
        self._write, self._check = write, check
        self._queue: deque[GroupedAppend[C]] = deque()
        # Reentrant because such a lock knows its owner: releasing it is safe without knowing whether it was taken.
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def submit(self, commits: tuple[C, ...]) -> GroupedAppend[C]:
        pending = GroupedAppend(self, commits)
        self._queue.append(pending)
        return pending

    def lead(self, pending: GroupedAppend[C]) -> None:
        """Writes the queue if no other thread does; else waits until `pending` is done or may lead."""
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
                    # Perhaps after the commit. This thread must stop; the others must submit again.
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
        """Runs work that is not in the queue, while no other thread writes."""
        if is_held(self._lock):
            raise _nested()
        try:
            with self._lock:
                return work()
        finally:
            self._wake_next()

    def alone_or_not(self, work: Callable[[], T]) -> T | None:
        """The same if no thread is writing at this moment; else None, without waiting."""
        if is_held(self._lock):
            return None
        try:
            return work() if self._lock.acquire(blocking=False) else None
        finally:
            try:  # noqa: SIM105 - as in `lead`
                self._lock.release()
            except RuntimeError:
                pass  # it was not taken
            if self._queue:
                self._wake_next()

    @property
    def is_mine(self) -> bool:
        """Whether this thread is writing already: then a signal handler has interrupted it, and is asking."""
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


def is_held(lock: threading.RLock) -> bool:
    """Whether this thread holds the lock. `threading.Condition` uses the same method."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]


def _nested() -> UnavailableError:
    return UnavailableError(
        "a signal handler cannot write while its own thread is appending",
        kind="answer-unknown",
        hint="note the signal, and write after the append",
    )
