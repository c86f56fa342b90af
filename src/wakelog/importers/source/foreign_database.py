"""Databases of other programs, which are only read, also while their program is at work."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from wakelog.errors import InvalidInputError, WakelogError

MAGIC = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def table_names(path: Path) -> set[str]:
    """The tables of a database; none when it cannot be read."""
    try:
        with open_database(path) as db:
            return {str(row["name"]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except WakelogError:
        return set()


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A database that is only read; InvalidInputError where it cannot be. With no log of changes beside it the file is
    all there is. With one, its program may be at work, and SQLite reads both. Where that program left the log behind,
    SQLite would make a file of its own beside it: then a copy is read."""
    with _told(path), _opened(path) as db:
        yield db


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or not wal.stat().st_size:
        with closing(_connect(path, "mode=ro&immutable=1")) as db:
            yield db
    elif path.with_name(f"{path.name}-shm").exists():
        with closing(_connect(path, "mode=ro")) as db:
            yield db
    else:
        with TemporaryDirectory(prefix="wakelog-") as folder:
            for each in (path, wal):
                shutil.copyfile(each, Path(folder) / each.name)
            with closing(_connect(Path(folder) / path.name, "mode=rw")) as db:
                yield db


@contextmanager
def copy_database(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A copy of a database, for a framework that would change it to read it. InvalidInputError where it cannot be read,
    also by that framework."""
    place = Path(path)
    # The framework may read it in threads of its own.
    with (
        _told(place),
        TemporaryDirectory(prefix="wakelog-") as folder,
        closing(sqlite3.connect(Path(folder) / place.name, check_same_thread=False)) as copy,
    ):
        with _opened(place) as source:
            source.backup(copy)
        yield copy


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise InvalidInputError(
            f"{path} cannot be read as a database: {exc}", kind="bad-transcript", hint="is it complete?"
        ) from exc


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)
    db.row_factory = sqlite3.Row
    db.text_factory = lambda data: data.decode(errors="replace")
    return db
