"""Opening a database so that several processes can share it, and telling its errors in our words.

Write-ahead log with full sync: an answered commit is on the disk. Waiting for the write lock sleeps a short random time
instead of SQLite's growing steps: with those, four writers starve each other for seconds. Network file systems are
refused, because their locks lie.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from wakelog.errors import (
    ConflictError,
    CorruptLogError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)

APPLICATION_ID = 0x77616B65  # "wake"
SCHEMA_VERSION = 1
BUSY_S = 30.0

_NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ncpfs",
    "fuse.sshfs",
    "ceph",
    "fuse.glusterfs",
    "lustre",
    "9p",
}
_SCHEMA = Path(__file__).with_name("schema.sql")


def connect(path: Path, *, create: bool, vfs: str | None = None) -> apsw.Connection:
    """A connection to the database at `path`, made and given its schema when `create` says so."""
    with translated(str(path)):
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        try:
            db = apsw.Connection(str(path), flags=flags, vfs=vfs)
            _configure(db)
            ensure_schema(db, path, create=create)
        except (apsw.ReadOnlyError, apsw.CantOpenError):
            if not path.exists():
                raise
            db = _connect_read_only(path, vfs)
        return db


def _connect_read_only(path: Path, vfs: str | None) -> apsw.Connection:
    """A write-ahead log cannot even be read without writing beside it, unless it is known to be at rest."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    at_rest = not path.with_name(path.name + "-wal").exists()
    db = apsw.Connection(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}", flags=flags, vfs=vfs)
    db.set_busy_handler(_Patience())
    ensure_schema(db, path, create=False)
    return db


def _configure(db: apsw.Connection) -> None:
    db.set_busy_handler(_Patience())
    if db.pragma("journal_mode") != "wal":
        # Changing the mode needs the file alone, and SQLite does not ask the busy handler while several ask at once.
        _patiently(lambda: db.pragma("journal_mode", "wal"))
    db.pragma("synchronous", "full")
    db.pragma("fullfsync", 1)
    db.pragma("checkpoint_fullfsync", 1)
    db.pragma("secure_delete", 1)
    db.pragma("temp_store", "memory")
    db.pragma("wal_autocheckpoint", 2000)
    db.pragma("journal_size_limit", 64 << 20)


def ensure_schema(db: apsw.Connection, path: Path, *, create: bool) -> None:
    """Makes the tables in a new database; whichever process takes the write lock first does it for all."""
    version = db.pragma("user_version")
    if version == 0 and create:
        with transaction(db):
            if db.pragma("user_version") == 0:
                if db.execute("select count(*) from sqlite_schema").get:
                    raise UnsupportedError(f"{path} is a database of something else", kind="not-a-store")
                for statement in _SCHEMA.read_text().split(";\n"):
                    if statement.strip():
                        db.execute(statement)
                db.pragma("application_id", APPLICATION_ID)
                db.pragma("user_version", SCHEMA_VERSION)
        version = SCHEMA_VERSION
    if version != SCHEMA_VERSION or db.pragma("application_id") != APPLICATION_ID:
        raise UnsupportedError(
            f"{path} is not a store this wakelog can read (schema {version}, expected {SCHEMA_VERSION})",
            kind="not-a-store",
        )


@contextlib.contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    # Lock before reading the head. After a plain BEGIN two writers can both read 7; the slower one then fails as busy,
    # and no retry inside that transaction can cure it.
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if not db.get_autocommit():
            db.execute("rollback")
        raise


class _Patience:
    """A busy handler: sleeps 0.2 to 1 ms at random, so that every waiting process has the same chance, up to a
    limit."""

    def __init__(self) -> None:
        self._since = 0.0

    def __call__(self, times_called: int) -> bool:
        if times_called == 0:
            self._since = time.monotonic()
        time.sleep(random.uniform(0.0002, 0.001))
        return time.monotonic() - self._since < BUSY_S


def _patiently(work: Callable[[], object]) -> None:
    patience, tries = _Patience(), 0
    while True:
        try:
            work()
            return
        except apsw.BusyError:
            if not patience(tries):
                raise
            tries += 1


@contextlib.contextmanager
def translated(place: str) -> Iterator[None]:
    """Turns SQLite's errors into ours, the cause kept."""
    try:
        yield
    except apsw.Error as exc:
        raise translate(exc, place) from exc


def translate(exc: apsw.Error, place: str) -> WakelogError:
    match exc:
        case apsw.BusyError() | apsw.LockedError():
            return UnavailableError(f"{place} is busy: others held its lock for {BUSY_S:.0f} s", kind="store-busy")
        case apsw.FullError():
            return UnavailableError(f"{place} is full: nothing was written", kind="store-full", hint="free some space")
        case apsw.ReadOnlyError():
            return NotAllowedError(
                f"{place} is read-only", kind="read-only", hint="check the permissions of file and folder"
            )
        case apsw.CantOpenError():
            return NotFoundError(f"{place} cannot be opened: {exc}", kind="store-not-found")
        case apsw.CorruptError() | apsw.NotADBError():
            return CorruptLogError(f"{place} is damaged or not a store: {exc}")
        case apsw.ConstraintError():
            return ConflictError(f"{place} refused the write: {exc}")
        case apsw.TooBigError():
            return UnsupportedError(
                f"a commit is too big for {place}", kind="too-big", hint="split it, or keep big files outside"
            )
        case _:
            return UnavailableError(f"{place} failed, and whether it wrote is unknown: {exc}", kind="answer-unknown")


def refuse_network(folder: Path) -> None:
    """UnsupportedError when the folder is on a network file system (where the system tells)."""
    kind = _file_system_of(folder)
    if kind in _NETWORK:
        raise UnsupportedError(
            f"{folder} is on a network file system ({kind}), whose locks cannot be trusted",
            kind="network-file-system",
            hint="keep the store on a local disk, or use a server",
        )


def _file_system_of(folder: Path) -> str:
    best, kind = "", ""
    try:
        real = os.path.realpath(folder)
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                _, point, this = line.split(" ")[:3]
                point = point.replace("\\040", " ")
                if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
                    best, kind = point, this
    except OSError:
        pass
    return kind
