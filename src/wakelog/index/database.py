"""The index in SQLite: `index.db` beside the log, or in memory. It is a cache: if anything is wrong with it, it is
rebuilt.

It uses a write-ahead log, so that queries and the projector do not wait for each other, and no sync per transaction.
After a power cut the newest transactions may be missing, rows and watermarks together, and are projected again. Removed
bytes are overwritten (`secure_delete`), because erased text must not stay here either.

A damaged file, or one of another version, is reset in place through SQLite, not removed. Otherwise another process that
has it open could delete the write-ahead log of the new file. If no file can be written, or its disk is full, the index
is in memory, and every process makes its own.

All use passes the gate of engines/sqlite/fork_safety.py, which says why connections must not outlive `os.fork`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from wakelog.engines.sqlite import fork_safety as forking
from wakelog.engines.sqlite.connection import (
    BusyHandler,
    make_private,
    transaction,
    translate_errors,
    use_write_ahead_log,
)
from wakelog.errors import UnavailableError, UnsupportedError
from wakelog.index.connection import Damaged, lower_ascii
from wakelog.index.words import LiteWords

APPLICATION_ID = 0x77616B69  # "waki"
SCHEMA_VERSION = 14

_SCHEMA = Path(__file__).with_name("schema.sql")
_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError, apsw.ConstraintError)
_NO_FILE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.FullError, apsw.IOError)


class Lite:
    """A connection to SQLite as the index uses it (connection.py)."""

    def __init__(self, db: apsw.Connection, *, keeps_texts: bool = False) -> None:
        self.execute = db.execute
        self.executemany = db.executemany
        self.words = LiteWords(db, keeps_all=keeps_texts)


class Database:
    """The connections of one process to its index (`Place`): one that writes, and as many as are reading at once."""

    def __init__(self, path: Path | None, *, keeps_texts: bool = False) -> None:
        self.path = path
        self._keeps_texts = keeps_texts
        self._writer: apsw.Connection | None
        self._begin()
        with forking.gate.inside(), translate_errors(self.place):
            try:
                self._write_connection()
            except _NO_FILE:
                if self.path is None:
                    raise
                self.path = None
                self._write_connection()
        forking.watch(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._all: set[apsw.Connection] = set()
        self._readers: list[apsw.Connection] = []
        self._askers: list[apsw.Connection] = []
        self._writer = None
        self._place: tuple[int, int] | None = None
        self._name = f"file:/wakelog-{os.getpid()}-{os.urandom(8).hex()}?vfs=memdb"
        self._is_closed = False
        self._rewritten: tuple[bytes, int] = (b"", 0)

    @property
    def place(self) -> str:
        return str(self.path) if self.path else "the index in memory"

    @contextlib.contextmanager
    def reading(self) -> Iterator[Lite]:
        with forking.gate.inside(), self._translated_errors(), self._borrowed(self._readers, self._connect) as db:
            db.execute("begin")
            try:
                yield Lite(db)
            finally:
                db.execute("rollback")

    @contextlib.contextmanager
    def writing(self) -> Iterator[Lite]:
        with forking.gate.inside(), self._lock, self._translated_errors(), transaction(self._write_connection()) as db:
            yield Lite(db, keeps_texts=self._keeps_texts)

    @contextlib.contextmanager
    def asking(self, prepare: Callable[[apsw.Connection], None]) -> Iterator[apsw.Connection]:
        """A connection that cannot write; `prepare` sets up a new one. Errors of its statements are not translated,
        because they are about the caller's SQL."""

        def connect() -> apsw.Connection:
            with self._translated_errors():
                db = self._keep(apsw.Connection(self._uri(), flags=_READ_ONLY))
                db.set_busy_handler(BusyHandler())
                prepare(db)
                return db

        with forking.gate.inside(), self._borrowed(self._askers, connect) as db:
            yield db

    def reset(self) -> None:
        with forking.gate.inside(), self._lock, self._translated_errors():
            self._check_open()
            db = self._write_connection()
            try:
                _clear(db)
                is_empty = self.empty_wal()
                _make(db)
                if not is_empty:
                    db.execute("update wl_meta set removed = removed + 1")
            except (*_DAMAGE, Damaged):
                self._drop_idle()
                self._remove()
                self._write_connection()

    def scrub(self) -> None:
        """Rewrites the file without its free pages and empties the write-ahead log. If another connection is reading,
        the rest is tried again at the next question."""
        with forking.gate.inside(), self._lock, self._translated_errors():
            db = self._write_connection()
            row: Any = db.execute("select made, removed from wl_meta").fetchone()
            if row != self._rewritten:
                db.execute("vacuum")
                self._rewritten = row
            if self.empty_wal():
                db.execute("update wl_meta set clean = max(clean, ?2) where made = ?1", row)

    def merge_words(self) -> None:
        """Merges the segments of the words into one, which is smaller, and gives the space back. An index that cannot
        be rewritten now, for want of space or because of another writer, stays as it is."""
        with contextlib.suppress(UnavailableError), forking.gate.inside(), self._lock, self._translated_errors():
            db = self._write_connection()
            with contextlib.suppress(apsw.FullError):  # else the index would leave its file
                db.execute("insert into wl_words (wl_words) values ('optimize')")
                db.execute("vacuum")
            self.empty_wal()

    def empty_wal(self) -> bool:
        """Moves everything into the file and empties the write-ahead log; False if another connection is reading it."""
        with forking.gate.inside(), self._lock, self._translated_errors():
            db = self._write_connection()
            if self.path is None:
                return True
            db.set_busy_timeout(200)
            try:
                checkpoint: Any = db.execute("pragma wal_checkpoint(truncate)").fetchone()
            finally:
                db.set_busy_handler(BusyHandler())
            return not checkpoint[0]

    def close(self) -> None:
        self._is_closed = True
        with forking.gate.inside(), self._lock:
            self._drop_idle()

    # Forking

    def disconnect_all(self) -> None:
        """Closes all connections to the file; they are opened again when needed. None may be in use."""
        if self.path is not None:
            self._drop_idle()

    def start_over(self) -> None:
        """In a forked child: leaves the inherited connections alone."""
        forking.leak(self._all)
        was_closed = self._is_closed
        self._begin()
        self._is_closed = was_closed

    # Connections

    @contextlib.contextmanager
    def _borrowed(
        self, pool: list[apsw.Connection], connect: Callable[[], apsw.Connection]
    ) -> Iterator[apsw.Connection]:
        """Lends a connection that is not in use."""
        self._check_open()
        if self._writer is None or self._find_place() != self._place:
            with self._lock:
                self._write_connection()  # checks the schema before the first read
        try:
            db = pool.pop()
        except IndexError:
            db = connect()
        try:
            yield db
        finally:
            if self._is_closed:
                self._drop(db)
            else:
                pool.append(db)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translates SQLite's errors. Damage becomes `Damaged`, which makes the index rebuild; so does a full disk,
        after which the index is in memory."""
        with translate_errors(self.place):
            try:
                yield
            except _DAMAGE as exc:
                raise Damaged(str(exc)) from exc
            except apsw.FullError as exc:
                if self.path is None:
                    raise
                self._leave_file()
                raise Damaged(str(exc)) from exc

    def _check_open(self) -> None:
        if self._is_closed:
            raise UnavailableError(f"the index {self.place} was closed", kind="store-closed", hint="open it again")

    def _write_connection(self) -> apsw.Connection:
        self._check_open()
        if self._writer is not None and self._find_place() != self._place:
            # The file was moved or deleted. Open connections stay open: closing them could delete the write-ahead log
            # of the new file at this path.
            forking.leak(self._all)
            self._all, self._writer = set(), None
            self._readers.clear()
            self._askers.clear()
        if self._writer is not None and not self._writer.get_autocommit():
            self._drop(self._writer)  # its last rollback failed
            self._writer = None
        if self._writer is None:
            self._writer = self._open()
            self._place = self._find_place()
        return self._writer

    def _open(self) -> apsw.Connection:
        """A write connection to an index of this version, rebuilt if necessary."""
        db = self._dial()
        try:
            if db.readonly("main"):
                raise apsw.ReadOnlyError(f"{self.place} is read-only")
            self._identify(db)
            self._prepare(db)
        except _DAMAGE:
            try:
                _clear(db)
                self._prepare(db)
            except _DAMAGE:
                # SQLite cannot even reset it. Other processes that have it open keep their file.
                self._drop(db)
                self._drop_idle()
                self._remove()
                db = self._dial()
                self._prepare(db)
        except BaseException:
            self._drop(db)
            raise
        return db

    def _dial(self) -> apsw.Connection:
        if self.path is not None:
            make_private(self.path)
        db = apsw.Connection(self._uri(), flags=_READ_WRITE)
        db.create_scalar_function("has_text", _has_text, 2, deterministic=True)
        db.set_busy_handler(BusyHandler())
        return self._keep(db)

    def _connect(self) -> apsw.Connection:
        """Another connection to an index that is known to have this version."""
        db = self._dial()
        _configure(db, is_file=self.path is not None)
        return db

    def _identify(self, db: apsw.Connection) -> None:
        """Raises, before anything is changed, if the file is not a wakelog index."""
        with db:  # one transaction: another process may be making the index right now
            is_empty = not db.execute("select count(*) from sqlite_schema").get
            application = db.pragma("application_id")
        if not is_empty and application != APPLICATION_ID:
            raise UnsupportedError(
                f"{self.place} is not a wakelog index, and is left alone",
                kind="not-an-index",
                hint="move it away; then a new index is built",
            )

    def _prepare(self, db: apsw.Connection) -> None:
        _configure(db, is_file=self.path is not None)
        version = db.pragma("user_version")
        if version != SCHEMA_VERSION:
            if version:
                _clear(db)
            _make(db)

    def _keep(self, db: apsw.Connection) -> apsw.Connection:
        self._all.add(db)
        return db

    def _drop(self, db: apsw.Connection) -> None:
        self._all.discard(db)
        db.close(True)

    def _drop_idle(self) -> None:
        """Closes the connections that are not in use."""
        for pool in (self._readers, self._askers):
            with contextlib.suppress(IndexError):
                while True:
                    self._drop(pool.pop())
        if self._writer is not None:
            self._drop(self._writer)
            self._writer = None

    def _leave_file(self) -> None:
        """Keeps the index in memory from now on. What is being read from the file is read to the end."""
        with self._lock:
            self._drop_idle()
            self.path, self._readers, self._askers = None, [], []

    def _remove(self) -> None:
        assert self.path is not None, "memory cannot be damaged"
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.path}{suffix}")

    def _find_place(self) -> tuple[int, int] | None:
        """Identifies the file at the path; None if there is none, or the index is in memory."""
        if self.path is None:
            return None
        try:
            stat = os.stat(self.path)
        except OSError:
            return None
        return stat.st_dev, stat.st_ino

    def _uri(self) -> str:
        return self._name if self.path is None else self.path.absolute().as_uri()


# Through any connection


def _configure(db: apsw.Connection, *, is_file: bool) -> None:
    """Sets a connection up for a cache that several processes share."""
    db.set_busy_handler(BusyHandler())
    if is_file:
        use_write_ahead_log(db)
    db.pragma("synchronous", "normal")
    db.pragma("secure_delete", 1)
    db.pragma("temp_store", "memory")
    db.pragma("journal_size_limit", 64 << 20)


def _make(db: apsw.Connection) -> None:
    """Creates the tables; the process that takes the write lock first does it for all."""
    with transaction(db):
        if db.pragma("user_version") == 0:
            db.execute(_SCHEMA.read_text(encoding="utf-8")).fetchall()
            # Other connections use this number to notice a changed schema. Counted from the beginning, it would be the
            # same as before the reset.
            import random

            db.pragma("schema_version", random.randrange(1 << 20, 1 << 30))
            db.pragma("application_id", APPLICATION_ID)
            db.pragma("user_version", SCHEMA_VERSION)


def _has_text(*arguments: Any) -> bool:
    text, part = arguments
    return part in lower_ascii(text)


def _clear(db: apsw.Connection) -> None:
    """Empties the database, even if its file cannot be read any more."""
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        db.execute("vacuum")
    finally:
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)
