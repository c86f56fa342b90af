"""The connections of one process to one store: one that writes, and as many as are reading at once.

Every use passes the gate of fork_safety.py. Readers are handed out one to a thread at a time; the writer is for whoever
has the right to write. What is to be done is passed in as a function. With context managers written as generators, an
interrupt could leave the end of one until its exception is forgotten: it would then roll back somebody else's work.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from wakelog.engines.sqlite import fork_safety as forking
from wakelog.engines.sqlite.connection import AtRest, connect, transact, translate
from wakelog.errors import UnavailableError

P = ParamSpec("P")
T = TypeVar("T")

_HAS_MOVED = apsw.SQLITE_FCNTL_HAS_MOVED


class Pool:
    """Opens connections when they are needed and keeps them."""

    def __init__(self, path: Path, *, create: bool, vfs: str | None, check: Callable[[], None]) -> None:
        """`check` is asked before each read whether there is still somebody to read for."""
        self.path = str(path)
        self._check = check
        self.writers = 0
        """How many write connections there have been. What one of them knew is not known to the next."""
        self._vfs = vfs
        self._all: set[apsw.Connection] = set()
        self._readers: list[apsw.Connection] = []
        self._writer: apsw.Connection | None = None
        self._is_closed = False
        self._moved: Any = None
        self._moved_at = 0
        with forking.gate.inside():
            self._writer = self._connect(create=create)  # the schema is made here, not at the first append
            self._place = self._find_place()

    def read(self, work: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Does something with a connection nobody else is reading through."""
        self._check()
        with forking.gate.inside():
            try:
                db = self._readers.pop()
            except IndexError:
                db = self._connect()
            try:
                return work(db, *args, **more)
            except (apsw.Error, UnicodeDecodeError) as exc:
                raise translate(exc, self.path) from exc
            finally:
                self._readers.append(db)
                if self._is_closed or isinstance(db, AtRest):
                    self._drop_readers()

    def transact(self, work: Callable[[apsw.Connection], T]) -> T:
        """Does something inside a transaction of its own. SQLite's errors are the caller's to translate."""
        with forking.gate.inside():
            return transact(self.writer(), work)

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Does something with the write connection outside of any transaction."""
        with forking.gate.inside():
            return work(self.writer())

    def close(self) -> None:
        """Closes what is not in use; the rest goes when its user is done."""
        self._is_closed = True
        with forking.gate.inside():
            self._drop_readers()
            self._drop_writer()

    def hang_up(self) -> None:
        """Closes everything, to be opened again when needed. Nobody may be using it."""
        self._drop_writer()
        for db in list(self._all):
            self._disconnect(db)
        self._readers.clear()

    def abandon(self) -> None:
        """In a forked child: forgets what was inherited, without closing it."""
        if self._all and self._place:
            forking.leak(self._all)
            forking.lost.add(self._place)
        self._all, self._readers, self._writer = set(), [], None

    def _connect(self, *, create: bool = False) -> apsw.Connection:
        if forking.lost and self._find_place() in forking.lost:
            raise UnavailableError(
                f"{self.path} was in use when this process was forked, and cannot be used here",
                kind="store-forked",
                hint="fork while nothing is being read or written, or start a new process instead",
            )
        db = connect(Path(self.path), create=create, vfs=self._vfs)
        self._all.add(db)
        return db

    def _disconnect(self, db: apsw.Connection) -> None:
        self._all.discard(db)
        db.close(True)

    def _drop_readers(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._disconnect(self._readers.pop())

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._disconnect(self._writer)
            self._writer = None

    def writer(self) -> apsw.Connection:
        """The write connection, for who is inside the gate and has the right to write."""
        if self._has_moved():
            # The open files could still be written, but nobody would ever find what is in them.
            raise UnavailableError(
                f"{self.path} is no longer the store that was opened: it was moved or removed",
                kind="store-moved",
                hint="open it again",
            )
        if self._writer is not None and not self._writer.get_autocommit():
            self._drop_writer()  # its last rollback failed
        if self._writer is None:
            self._writer = self._connect()
            self.writers += 1
        return self._writer

    def _has_moved(self) -> bool:
        """Whether the store is no longer where it was opened. SQLite asks the system in a third of the time."""
        writer = self._writer
        if not self._moved_at:
            import ctypes  # for who writes

            self._moved = ctypes.c_int()
            self._moved_at = ctypes.addressof(self._moved)
        if writer is not None and writer.file_control("main", _HAS_MOVED, self._moved_at):
            return bool(self._moved.value)
        return self._find_place() != self._place

    def _find_place(self) -> forking.Place | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
