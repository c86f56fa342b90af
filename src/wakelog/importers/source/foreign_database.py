"""Reads SQLite databases of other programs, also while the program is running. Never writes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from wakelog.errors import WakelogError
from wakelog.importers.source.files import bad_transcript

MAGIC = b"SQLite format 3\0"


def is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def table_names(path: Path) -> set[str]:
    """The tables of a database. Empty if it cannot be read."""
    try:
        with open_database(path) as db:
            return {str(row["name"]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except WakelogError:
        return set()


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a database read-only; InvalidInputError if that fails. Without a WAL file the database file is complete.
    With a WAL and its index, the program may be running, and SQLite reads both. With an abandoned WAL, SQLite would
    have to create an index file next to it, so a copy is read instead."""
    with _translate_errors(path), _connect_safely(path) as db:
        yield db


@contextmanager
def _connect_safely(path: Path) -> Iterator[sqlite3.Connection]:
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
    """Copies a database, for a framework that would modify it while reading. Also turns the framework's own read errors
    into InvalidInputError."""
    place = Path(path)
    # The framework may read it in its own threads.
    with (
        _translate_errors(place),
        TemporaryDirectory(prefix="wakelog-") as folder,
        closing(sqlite3.connect(Path(folder) / place.name, check_same_thread=False)) as copy,
    ):
        with _connect_safely(place) as source:
            source.backup(copy)
        yield copy


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise bad_transcript(f"{path} cannot be read as a database: {exc}", "is it complete?") from exc


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)
    db.row_factory = sqlite3.Row
    db.text_factory = lambda data: data.decode(errors="replace")
    return db
