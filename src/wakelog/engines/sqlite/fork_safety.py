"""Connections and `os.fork`: all are closed before it, and parent and child open their own after it.

SQLite keeps a process's file locks in memory, by inode. A forked child inherits that memory but not the locks. If it
opens a file that its parent has open, SQLite believes that it holds locks which it does not hold, so another process
may delete the write-ahead log under it. A lock that another thread held at the fork stays taken in the child.
The child must not close an inherited connection either: that could delete a log that others have written since.

So every use of a connection passes a gate. Before a fork the gate is shut, which waits for all users, and the
connections are closed. If a thread stays inside (a signal handler forks during an append), or if C code forked without
Python's hooks, the child leaks the inherited connections on purpose and may not open those stores.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterable
from typing import Protocol

# Hooks registered first run last before a fork. So the lock in that module is taken after the gate is shut. The other
# way round a thread inside the gate could wait for that lock, and the fork for the thread.
import wakelog.model.described  # noqa: F401
from wakelog.engines.group_commit import is_held

FORK_WAIT_S = 35.0
"""Longer than a writer waits for another process's lock, so that the writer gives up first."""


class Gate:
    """Lets any number of threads in together, until it is shut.

    Each thread has a lock of its own and holds it while it is inside. That costs next to nothing, and an interrupt
    cannot leave it held. To shut the gate is to take all of these locks.
    """

    def __init__(self) -> None:
        self._door = threading.RLock()
        self._local = threading.local()
        self._locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
        self._held: list[list[threading.RLock]] = []

    def inside(self) -> threading.RLock:
        """The lock to hold while using a connection: `with gate.inside(): …`."""
        try:
            lock: threading.RLock = self._local.lock
        except AttributeError:
            with self._door:
                lock = self._local.lock = threading.RLock()
                self._locks.add(lock)
        if self._held and not is_held(lock):
            with self._door:  # wait until it is open again; else busy threads would never let it be shut
                pass
        return lock

    def shut(self, timeout_s: float) -> bool:
        """Keeps all threads out. False when one stayed inside until the timeout, or the caller is inside itself."""
        deadline = time.monotonic() + timeout_s
        self._door.acquire()
        alone = not is_held(self.inside())
        locks: list[threading.RLock] = []
        self._held.append(locks)
        for lock in list(self._locks):
            if lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                locks.append(lock)
            else:
                alone = False
        return alone

    def open(self) -> None:
        """Reverts one `shut`."""
        for lock in self._held.pop():
            lock.release()
        self._door.release()


class ConnectionHolder(Protocol):
    """An owner of connections."""

    def disconnect_all(self) -> None:
        """Closes them all. None is in use."""
        ...

    def start_over(self) -> None:
        """Starts over in a forked child, and leaks the connections that it still has."""
        ...


gate = Gate()
_holders: weakref.WeakSet[ConnectionHolder] = weakref.WeakSet()


def watch(holder: ConnectionHolder) -> None:
    """Calls `holder` at every fork from now on."""
    _holders.add(holder)


def leak(values: Iterable[object]) -> None:
    """Keeps objects from ever being deallocated, even when the interpreter ends."""
    import ctypes  # only such a child needs it

    for value in values:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


Place = tuple[int, int]
"""Device and inode of a file."""

lost: set[Place] = set()
"""Files that SQLite in this process believes to be open and locked, though only the parent has them open."""


def _before() -> None:
    if gate.shut(FORK_WAIT_S):
        for holder in list(_holders):
            holder.disconnect_all()


def _in_child() -> None:
    # Reset in place: a thread that does not exist here may have held its lock.
    gate.__init__()  # type: ignore[misc]
    for holder in list(_holders):
        holder.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=gate.open, after_in_child=_in_child)
