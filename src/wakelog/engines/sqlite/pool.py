"""The connections of one process to one store: one that writes, and one for each thread that is reading.

Every use passes the gate of fork_safety.py. The writer is for the thread with the right to write (group_commit.py).
Work is passed in as a function. A context manager written as a generator would not do: after an interrupt its end may
come late, when the generator is collected, and roll back another thread's work.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from wakelog.engines.sqlite import fork_safety as forking
from wakelog.engines.sqlite.connection import OneTimeConnection, connect, transact, translate
from wakelog.engines.sqlite.wal_room import WalRoom
from wakelog.errors import UnavailableError

P = ParamSpec("P")
T = TypeVar("T")

_LOOK = "pragma data_version"
_HAS_MOVED = apsw.SQLITE_FCNTL_HAS_MOVED


class Pool:
    """Opens connections on demand and keeps them."""

    def __init__(self, path: Path, *, create: bool, vfs: str | None, check: Callable[[], None]) -> None:
        """`check` is called before each read, and raises when the store is closed."""
        self.path = str(path)
        self._check = check
        self.writers = 0
        """How many write connections there have been. A new one knows nothing of the data version of the last."""
        self._vfs = vfs
        self._all: set[apsw.Connection] = set()
        self._readers: list[apsw.Connection] = []
        self._writer: apsw.Connection | None = None
        self._is_closed = False
        self._moved: Any = None
        self._moved_at = 0
        with forking.gate.inside():
            self._writer = self._connect_writer(create=create)  # the schema is made here, not at the first append
            self._place = self._find_place()

    def read(self, work: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Runs `work` with a connection that no other thread is using."""
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
                if self._is_closed or isinstance(db, OneTimeConnection):
                    self._drop_readers()

    def transact(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` inside a transaction of its own. The caller translates SQLite's errors."""
        with forking.gate.inside():
            return transact(self.writer(), work)

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` with the write connection, outside any transaction."""
        with forking.gate.inside():
            return work(self.writer())

    def close(self) -> None:
        """Closes the idle connections. Those in use are closed by their user."""
        self._is_closed = True
        with forking.gate.inside():
            self._drop_readers()
            self._drop_writer()

    def disconnect_all(self) -> None:
        """Closes all connections; they are opened again on demand. None may be in use."""
        self._drop_writer()
        for db in list(self._all):
            self._disconnect(db)
        self._readers.clear()

    def abandon(self) -> None:
        """In a forked child: forgets the inherited connections without closing them."""
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

    def _connect_writer(self, *, create: bool = False) -> apsw.Connection:
        db = self._connect(create=create)
        if self._vfs is None and not db.readonly("main"):  # another VFS may keep its files elsewhere
            db.set_wal_hook(WalRoom(db))
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
        """The write connection. The caller is inside the gate and holds the right to write."""
        if self._has_moved():
            # The open file could still be written, but its name is gone.
            raise UnavailableError(
                f"{self.path} is no longer the store that was opened: it was moved or removed",
                kind="store-moved",
                hint="open it again",
            )
        if self._writer is not None and not self._writer.get_autocommit():
            self._drop_writer()  # its last rollback failed
        if self._writer is None:
            self._writer = self._connect_writer()
            self.writers += 1
        return self._writer

    def version(self) -> tuple[int, int] | None:
        """Which write connection this is and its data version, which changes when another connection has written. None
        where there is none to ask. The caller holds the right to write, and no transaction is open."""
        with forking.gate.inside():
            db = self._writer
            if db is None or not db.get_autocommit():
                return None
            try:
                db.execute(_LOOK).get  # noqa: B018 - it starts a transaction, which is when the version changes
            except apsw.Error:
                return None
            return self.writers, db.data_version()

    def _has_moved(self) -> bool:
        """Whether the store is no longer where it was opened. SQLite's check takes a third of the time of `os.stat`."""
        writer = self._writer
        if not self._moved_at:
            import ctypes  # only writers need it

            self._moved = ctypes.c_int()
            self._moved_at = ctypes.addressof(self._moved)
        if writer is not None and writer.file_control("main", _HAS_MOVED, self._moved_at):
            return bool(self._moved.value)
        return self._find_place() != self._place

    def _find_place(self) -> forking.Place | None:
        try:
            stat = os.stat(self.path)
        except OSError:
            return None
        return stat.st_dev, stat.st_ino
