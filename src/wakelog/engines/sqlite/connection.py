"""Opens a database so that several processes can share it, and translates its errors into ours.

Write-ahead log with full sync: an answered commit is on the disk. A writer that waits for the lock sleeps a short
random time, not SQLite's growing steps: with those, four writers starve each other for seconds. Network file systems
are refused, because their locks do not work reliably.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import apsw

from wakelog.engines.sqlite.migrations import STEPS, note
from wakelog.engines.sqlite.wal_room import CHECKPOINT_FRAMES
from wakelog.errors import (
    CorruptLogError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)

T = TypeVar("T")

APPLICATION_ID = 0x77616B65  # "wake"
SCHEMA_VERSION = 1
"""A program must know this version to open the file. Changes that older programs can live with: migrations.py."""
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
_SETTINGS = {
    "synchronous": "full",
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "secure_delete": 1,
    "temp_store": "memory",
    "wal_autocheckpoint": CHECKPOINT_FRAMES,
    "journal_size_limit": 64 << 20,
}
_SCHEMA = Path(__file__).with_name("schema.sql")
_NO_SIDE_FILE = (apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP)
"""The disk has no room for the file beside a write-ahead log, which even a reader needs."""
_ROOM_BYTES = 64 << 10


class OneTimeConnection(apsw.Connection):
    """A connection to a read-only store without writers. It would not notice a new writer, so it is used once."""


def connect(path: Path, *, create: bool, vfs: str | None = None) -> apsw.Connection:
    """A connection to the database at `path`. With `create`, makes the file and its tables if needed."""
    with translate_errors(str(path)):
        if path.exists() and not os.access(path, os.W_OK):
            # SQLite would give its side files the same mode, and so lock out those who may write.
            return _connect_read_only(path, vfs)
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if create:
            make_private(path)
        try:
            db = apsw.Connection(str(path), flags=flags, vfs=vfs)
            return _prepared(db, path, create=create)
        except (apsw.ReadOnlyError, apsw.CantOpenError) as exc:
            if not path.exists():
                if create and not os.access(path.parent, os.W_OK):
                    raise apsw.ReadOnlyError(str(exc)) from exc
                raise
        except apsw.IOError as exc:
            if not _lacks_side_file(exc):
                raise
        return _connect_read_only(path, vfs)


def _connect_read_only(path: Path, vfs: str | None) -> apsw.Connection:
    """To read a write-ahead log SQLite must write a file beside it, unless the log is known to be empty."""
    log = path.with_name(path.name + "-wal")
    at_rest = not log.exists() or not log.stat().st_size
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        if at_rest:
            return _prepared(OneTimeConnection(f"{uri}&immutable=1", flags=flags, vfs=vfs), path)
        return _prepared(apsw.Connection(uri, flags=flags, vfs=vfs), path)
    except apsw.CantOpenError as exc:
        if at_rest:
            raise
        raise NotAllowedError(
            f"{path} is read-only and was not closed properly, so its write-ahead log cannot be applied",
            kind="read-only",
            hint="open it once with write access, or copy its folder to a place where you can write",
        ) from exc
    except apsw.IOError as exc:
        if not _lacks_side_file(exc):
            raise
        raise UnavailableError(
            f"the disk of {path} is full, and it was not closed properly, so its write-ahead log cannot be read",
            kind="store-full",
            hint="free 64 KB, or copy its folder to another disk",
        ) from exc


def _lacks_side_file(exc: apsw.Error) -> bool:
    return getattr(exc, "extendedresult", 0) in _NO_SIDE_FILE


def _prepared(db: apsw.Connection, path: Path, *, create: bool = False) -> apsw.Connection:
    try:
        db.set_busy_handler(BusyHandler())
        db.pragma("cell_size_check", 1)
        _identify(db, path, create=create)
        if not db.readonly("main"):
            use_write_ahead_log(db)
            for name, value in _SETTINGS.items():
                db.pragma(name, value)
            if create:
                _ensure_schema(db)
        return db
    except BaseException:
        db.close(True)
        raise


def _identify(db: apsw.Connection, path: Path, *, create: bool) -> None:
    """Raises, before anything is changed, when the file is not ours to change."""
    with db:  # one transaction: another process may be making the store just now
        is_empty = not db.execute("select count(*) from sqlite_schema").get
        application, version = db.pragma("application_id"), db.pragma("user_version")
    if is_empty and (application, version) == (0, 0):
        if not create:
            raise NotFoundError(f"there is no store in {path}: it is empty", kind="store-not-found")
    elif application == APPLICATION_ID and version > SCHEMA_VERSION:
        raise UnsupportedError(
            f"{path} has schema {version}, and this wakelog reads up to schema {SCHEMA_VERSION}",
            kind="store-newer",
            hint="upgrade wakelog",
        )
    elif application != APPLICATION_ID or not version:
        raise UnsupportedError(
            f"{path} is not a store this wakelog can read (schema {version}, expected {SCHEMA_VERSION})",
            kind="not-a-store",
        )


def use_write_ahead_log(db: apsw.Connection) -> None:
    if db.pragma("journal_mode") != "wal":
        # This needs the file exclusively, and SQLite does not call the busy handler here.
        _patiently(lambda: db.pragma("journal_mode", "wal"))


def _ensure_schema(db: apsw.Connection) -> None:
    """Makes the tables of a new database. The process that takes the write lock first does it for all."""
    if not db.pragma("user_version"):
        transact(db, _make_schema)


def _make_schema(db: apsw.Connection) -> None:
    if db.pragma("user_version"):
        return
    for statement in _SCHEMA.read_text().split(";\n"):
        if statement.strip():
            db.execute(statement)
    for step in STEPS:
        note(db, step.version)
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", SCHEMA_VERSION)


def transact(db: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
    """Runs `work` inside a transaction: all of it is stored, or nothing."""
    try:
        # Lock before reading the head. After a plain BEGIN two writers can both read 7; the slower one then fails as
        # busy, and no retry inside that transaction can cure it.
        db.execute("begin immediate")
        result = work(db)
        db.execute("commit")
        return result
    except BaseException:
        if not db.get_autocommit():
            db.execute("rollback")
        raise


@contextlib.contextmanager
def transaction(db: apsw.Connection) -> Iterator[apsw.Connection]:
    """The same for `with`. Only for work that can be repeated: after an interrupt the rollback may come late, when the
    generator is collected."""
    try:
        db.execute("begin immediate")
        yield db
        db.execute("commit")
    except BaseException:
        if not db.get_autocommit():
            db.execute("rollback")
        raise


class BusyHandler:
    """A busy handler that sleeps 0.2 to 1 ms at random, so that all waiting processes have the same chance."""

    def __init__(self) -> None:
        self._since = 0.0

    def __call__(self, times_called: int) -> bool:
        if times_called == 0:
            self._since = time.monotonic()
        import random  # seldom needed, and slow to load

        time.sleep(random.uniform(0.0002, 0.001))
        return time.monotonic() - self._since < BUSY_S


def _patiently(work: Callable[[], object]) -> None:
    patience, tries = BusyHandler(), 0
    while True:
        try:
            work()
            return
        except apsw.BusyError:
            if not patience(tries):
                raise
            tries += 1


@contextlib.contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Translates SQLite's errors into ours, and keeps the cause."""
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as exc:
        raise translate(exc, place) from exc


def translate(exc: apsw.Error | UnicodeDecodeError, place: str) -> WakelogError:
    match exc:
        case apsw.BusyError() | apsw.LockedError():
            return UnavailableError(f"{place} is busy: others held its lock for {BUSY_S:.0f} s", kind="store-busy")
        case apsw.FullError():
            return UnavailableError(f"{place} is full: nothing was written", kind="store-full", hint="free some space")
        case apsw.ReadOnlyError() if _is_full(place):
            return UnavailableError(
                f"the disk of {place} is full: nothing was written", kind="store-full", hint="free some space"
            )
        case apsw.ReadOnlyError():
            return NotAllowedError(
                f"{place} is read-only", kind="read-only", hint="check the permissions of file and folder"
            )
        case apsw.CantOpenError():
            return NotFoundError(f"{place} cannot be opened: {exc}", kind="store-not-found")
        case apsw.CorruptError() | apsw.NotADBError() | UnicodeDecodeError():
            return CorruptLogError(f"{place} is damaged or not a store: {exc}")
        case apsw.SQLError() | apsw.ConstraintError():
            # Statements are fixed and commits are checked before they are written, so the tables must be wrong.
            return CorruptLogError(f"the tables of {place} have a wrong structure: {exc}")
        case apsw.TooBigError():
            return UnsupportedError(
                f"a commit is too big for {place}", kind="too-big", hint="split it, or keep big files outside"
            )
        case _:
            return UnavailableError(f"{place} failed, and whether it wrote is unknown: {exc}", kind="answer-unknown")


def _is_full(place: str) -> bool:
    """Whether its disk has too little room for SQLite to write; the store was then opened for reading only."""
    try:
        disk = os.statvfs(place)
    except (AttributeError, OSError):
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM_BYTES


def is_there(path: Path) -> bool:
    """Whether the file exists. Raises with a hint when the system does not let us look."""
    try:
        return path.exists()
    except OSError as exc:
        why = exc.strerror or str(exc)
        if exc.errno in (errno.EACCES, errno.EPERM):
            raise NotAllowedError(
                f"the store {path} cannot be accessed: {why}",
                kind="not-readable",
                hint=f"ask the owner of {path.parent} for access, or name another store",
            ) from exc
        raise InvalidInputError(
            f"{str(path)[:200]!r} cannot be used as a store: {why}", kind="bad-path", hint="name another place"
        ) from exc


def make_private(path: Path) -> None:
    """Makes a database file that only its owner can read; SQLite gives its side files the same mode. An existing file
    keeps its mode: it may be shared on purpose."""
    with contextlib.suppress(OSError):  # it exists, or opening it will say why it cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600))


def make_folder(folder: Path) -> None:
    """Makes the folder and its parents, durably: a synced file is lost if its folder is."""
    if folder.is_dir():
        return
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in missing if os.name == "posix" else ():
            place = os.open(each.parent, os.O_RDONLY)
            try:
                os.fsync(place)
            finally:
                os.close(place)
    except OSError as exc:
        message = f"the folder {folder} cannot be made: {exc.strerror or exc}"
        if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise NotAllowedError(message, kind="read-only", hint="check the permissions, or use another") from exc
        if folder.is_file():
            message, hint = f"{folder} is a file, and not a store", "a store is a folder, or a file that ends in .db"
            raise UnavailableError(message, hint=hint) from exc
        raise UnavailableError(message) from exc


def refuse_network(folder: Path) -> None:
    """UnsupportedError when the folder is on a network file system, as far as the system says."""
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
