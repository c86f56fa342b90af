"""Connections and `os.fork`: all are closed before it, and parent and child open their own after it.

SQLite keeps a process's file locks in its own memory, by inode. A forked child inherits that memory but none of the
locks. A connection it opens to a file that its parent has open therefore believes to hold locks that nobody holds, so
that others may delete the write-ahead log under it; and a lock that another thread held at the fork stays taken in the
child for ever. Nor may an inherited connection be closed there: that could delete a log that others have written since.

So every use of a connection passes a gate. Before a fork the gate is shut, which waits for what is under way, and the
connections are closed. If somebody stays inside, or the process was forked behind Python's back, what the child
inherits is leaked on purpose.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol

FORK_WAIT_S = 35.0
"""Longer than a writer waits for the lock of another process, so that a fork gives up after it does."""


class Gate:
    """Lets any number of threads in together, until it is shut."""

    def __init__(self) -> None:
        # Reentrant, because a signal handler may fork while its own thread is in here.
        self._changed = threading.Condition(threading.RLock())
        self._inside: dict[int, int] = {}
        self._shut_by = 0
        self._shuts = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # Whoever is inside already may go deeper: shutting waits for it to come out.
            while self._shut_by and me != self._shut_by and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                if self._shut_by:
                    self._changed.notify_all()

    def shut(self, timeout_s: float) -> bool:
        """Keeps everybody out; False when somebody stayed inside all the time, or the caller is there itself."""
        me = threading.get_ident()
        with self._changed:
            while self._shut_by not in (0, me):
                self._changed.wait()
            self._shut_by = me
            self._shuts += 1
            alone = self._changed.wait_for(lambda: self._inside.keys() <= {me}, timeout_s)
            return alone and me not in self._inside

    def open(self) -> None:
        """Takes back one `shut`."""
        with self._changed:
            self._shuts -= 1
            if not self._shuts:
                self._shut_by = 0
                self._changed.notify_all()


class Holder(Protocol):
    """What holds connections."""

    def hang_up(self) -> None:
        """Closes them all. Nobody is using them."""
        ...

    def start_over(self) -> None:
        """Begins anew in a forked child, with whatever it still holds leaked."""
        ...


gate = Gate()
_holders: weakref.WeakSet[Holder] = weakref.WeakSet()


def watch(holder: Holder) -> None:
    """Tells `holder` of every fork from now on."""
    _holders.add(holder)


def leak(values: Iterable[object]) -> None:
    """Keeps objects from ever being deallocated, even when the interpreter ends."""
    for value in values:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


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
