"""Connections and `os.fork`: all are closed before it, and parent and child open their own after it.

SQLite keeps a process's file locks in its own memory, by inode. A forked child inherits that memory but none of the
locks. A connection it opens to a file that its parent has open therefore believes to hold locks that nobody holds, so
that others may delete the write-ahead log under it; and a lock that another thread held at the fork stays taken in the
child for ever. Nor may an inherited connection be closed there: that could delete a log that others have written since.

So every use of a connection passes a gate. Before a fork the gate is shut, which waits for what is under way, and the
connections are closed. If somebody stays inside (a signal handler that forks in the middle of an append), or if the
process was forked behind Python's back, what the child inherits is leaked on purpose, and the child is refused the
stores it belongs to.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterable
from typing import Protocol

# What is registered first runs last before a fork: the lock there is taken when the gate is shut. The other way round,
# somebody inside the gate could wait for that lock, and the fork for him.
import wakelog.model.described  # noqa: F401

FORK_WAIT_S = 35.0
"""Longer than a writer waits for the lock of another process, so that a fork gives up after it does."""


class Gate:
    """Lets any number of threads in together, until it is shut.

    Each thread has a lock of its own, which it holds while it is inside: that costs next to nothing, and an interrupt
    cannot leave it held. Who shuts the gate takes all of them.
    """

    def __init__(self) -> None:
        self._door = threading.RLock()
        self._local = threading.local()
        self._locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
        self._held: list[list[threading.RLock]] = []

    def inside(self) -> threading.RLock:
        """What to hold while using a connection: `with gate.inside(): …`."""
        try:
            lock: threading.RLock = self._local.lock
        except AttributeError:
            with self._door:
                lock = self._local.lock = threading.RLock()
                self._locks.add(lock)
        if self._held and not is_held(lock):
            with self._door:  # until it is open again, or whoever is busy would never let the gate be shut
                pass
        return lock

    def shut(self, timeout_s: float) -> bool:
        """Keeps everybody out; False when somebody stayed inside all the time, or the caller is there itself."""
        deadline = time.monotonic() + timeout_s
        self._door.acquire()
        alone = not is_held(self.inside())
        held: list[threading.RLock] = []
        self._held.append(held)
        for lock in list(self._locks):
            if lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                held.append(lock)
            else:
                alone = False
        return alone

    def open(self) -> None:
        """Takes back one `shut`."""
        for lock in self._held.pop():
            lock.release()
        self._door.release()


def is_held(lock: threading.RLock) -> bool:
    """Whether this thread holds it; conditions ask it the same."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]


class ConnectionHolder(Protocol):
    """What holds connections."""

    def hang_up(self) -> None:
        """Closes them all. Nobody is using them."""
        ...

    def start_over(self) -> None:
        """Begins anew in a forked child, with whatever it still holds leaked."""
        ...


gate = Gate()
_holders: weakref.WeakSet[ConnectionHolder] = weakref.WeakSet()


def watch(holder: ConnectionHolder) -> None:
    """Tells `holder` of every fork from now on."""
    _holders.add(holder)


def leak(values: Iterable[object]) -> None:
    """Keeps objects from ever being deallocated, even when the interpreter ends."""
    import ctypes  # for a child that has connections of its parent

    for value in values:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


Place = tuple[int, int]
"""Device and inode of a file."""

lost: set[Place] = set()
"""Files that SQLite in this process takes for open and locked, though they are so in its parent only."""


def _before() -> None:
    if gate.shut(FORK_WAIT_S):
        for holder in list(_holders):
            holder.hang_up()


def _in_child() -> None:
    # Made anew in place: its lock may have been held by a thread that is not here.
    gate.__init__()  # type: ignore[misc]
    for holder in list(_holders):
        holder.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=gate.open, after_in_child=_in_child)
