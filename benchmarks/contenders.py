"""Who runs: three bare loops and wakelog, all with an answered turn on the disk.

The bare loops are the fastest a plain program gets to the same durability: the turn as JSON by the fastest encoder at
hand, one row or line, one transaction, one sync. They check nothing, fold nothing on append and keep no history of
the state. Those on SQLite use WAL, full sync and autocommit, which is one statement a turn. For more than one session a
plain program gives each thread its own connection and a busy timeout.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw
import msgspec

import wakelog
from benchmarks.workload import Summary, Turn, events_of, fold, full_recording, parts_of, summary_of
from wakelog.log import Log
from wakelog.store import Store

BUSY_S = 30
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
sync_file: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

_SET_UP = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "create table if not exists turns (id integer primary key, session text, turn int, data blob)",
    "create index if not exists place on turns (session, turn)",
)
_INSERT = "insert into turns (session, turn, data) values (?, ?, ?)"
_SELECT = "select data from turns where session = ? and turn <= ? order by turn"
_COPY = "insert into turns (session, turn, data) select ?, turn, data from turns where session = ? and turn <= ?"
_ALL = 1 << 60


class Contender(Protocol):
    """One session of a store that has a folder to itself."""

    def append(self, turn: Turn) -> None:
        """Stores a turn; it is durable on return."""

    def record(self, turn: Turn) -> None:
        """Stores a turn as it goes on: durable COMMITS_FULLY_RECORDED times."""

    def load(self, place: int | None = None) -> Any:
        """The state now, or at a place."""

    def place_of(self, turn: int, seq: int) -> int:
        """How this contender names the point after a turn, given the turn's number and our seq."""

    def fork(self, place: int) -> Any:
        """Makes another session with the same history up to a place, durable on return; gives its way to `load`."""

    def close(self) -> None: ...


class Kind(NamedTuple):
    """A contender by name, and how its sessions are opened; they are created where there are none."""

    name: str
    open: Callable[[Path], Contender]
    open_many: Callable[[Path, int], list[Contender]]
    """Several sessions of one store, each for a thread of its own."""


class _BareTable:
    """One row a turn, whichever library runs the statements."""

    def __init__(self, run: Callable[..., Any], close: Callable[[], None], session: str) -> None:
        self.session = session
        self.run, self.close = run, close

    def append(self, turn: Turn) -> None:
        self.run(_INSERT, (self.session, turn["n"], _encode(turn)))

    def record(self, turn: Turn) -> None:
        for part in parts_of(turn):
            self.run(_INSERT, (self.session, turn["n"], _encode(part)))

    def load(self, place: int | None = None) -> Summary:
        return _fold_rows(self.run(_SELECT, (self.session, place or _ALL)))

    def place_of(self, turn: int, seq: int) -> int:
        return turn

    def fork(self, place: int) -> _BareTable:
        child = f"{self.session}-fork"
        self.run(_COPY, (child, self.session, place))
        return _BareTable(self.run, self.close, child)


class BareSqlite(_BareTable):
    """The standard library's sqlite3."""

    def __init__(self, folder: Path, session: str = "bench") -> None:
        db = sqlite3.connect(folder / "turns.db", timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        for statement in _SET_UP:
            db.execute(statement)
        super().__init__(db.execute, db.close, session)

    @classmethod
    def many(cls, folder: Path, count: int) -> list[Contender]:
        return [cls(folder, f"bench-{i}") for i in range(count)]


class BareApsw(_BareTable):
    """The same through apsw, whose SQLite is newer and whose calls cost less."""

    def __init__(self, folder: Path, session: str = "bench") -> None:
        db = apsw.Connection(str(folder / "turns.db"))
        db.set_busy_timeout(BUSY_S * 1000)
        for statement in _SET_UP:
            db.execute(statement).fetchall()
        super().__init__(db.execute, db.close, session)

    @classmethod
    def many(cls, folder: Path, count: int) -> list[Contender]:
        return [cls(folder, f"bench-{i}") for i in range(count)]


def share_connection(folder: Path, count: int) -> list[Contender]:
    """The other way to write several sessions: one connection behind a lock, so that SQLite never sleeps for being
    busy."""
    first, lock = BareSqlite(folder), threading.Lock()

    def run_alone(statement: str, row: tuple[Any, ...]) -> Any:
        with lock:
            return first.run(statement, row)

    return [_BareTable(run_alone, first.close, f"bench-{i}") for i in range(count)]


class BareFile:
    """A file with one line a turn, and fdatasync. A session is a file of its own."""

    def __init__(self, folder: Path, session: str = "bench") -> None:
        self._path = folder / f"{session}.jsonl"
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    @classmethod
    def many(cls, folder: Path, count: int) -> list[Contender]:
        return [cls(folder, f"bench-{i}") for i in range(count)]

    def append(self, turn: Turn) -> None:
        os.write(self._file, _encode(turn) + b"\n")
        sync_file(self._file)

    def record(self, turn: Turn) -> None:
        for part in parts_of(turn):
            os.write(self._file, _encode(part) + b"\n")
            sync_file(self._file)

    def load(self, place: int | None = None) -> Summary:
        return fold(map(_decode, self._lines(place)))

    def place_of(self, turn: int, seq: int) -> int:
        return turn

    def fork(self, place: int) -> BareFile:
        child = BareFile(self._path.parent, "fork")
        os.write(child._file, b"".join(self._lines(place)))
        sync_file(child._file)
        return child

    def _lines(self, place: int | None) -> Iterable[bytes]:
        with open(self._path, "rb") as lines:
            for n, line in enumerate(lines, 1):
                if place is not None and n > place:
                    return
                yield line

    def close(self) -> None:
        os.close(self._file)


class Wakelog:
    """wakelog as its documentation shows it. Making the events is part of what it costs."""

    def __init__(self, folder: Path, session: str = "bench", store: Store | None = None) -> None:
        self._store = store or wakelog.open(folder)
        self.log: Log = self._store.log(session)

    @classmethod
    def many(cls, folder: Path, count: int) -> list[Contender]:
        store = wakelog.open(folder)
        return [cls(folder, f"bench-{i}", store) for i in range(count)]

    def append(self, turn: Turn) -> None:
        self.log.append(*events_of(turn))

    def record(self, turn: Turn) -> None:
        full_recording(self.log, turn)

    def load(self, place: int | None = None) -> dict[str, Any]:
        return self.log.state(place)

    def place_of(self, turn: int, seq: int) -> int:
        return seq

    def fork(self, place: int) -> Wakelog:
        child = object.__new__(Wakelog)
        child._store, child.log = self._store, self.log.fork(place)
        return child

    def close(self) -> None:
        self._store.close()


BASE = "bare sqlite3"
"""Ratios are over this one, in the same round."""
OURS = "wakelog"

_SQLITE = Kind(BASE, BareSqlite, BareSqlite.many)
_APSW = Kind("bare apsw", BareApsw, BareApsw.many)
_FILE = Kind("bare file", BareFile, BareFile.many)
_WAKELOG = Kind(OURS, Wakelog, Wakelog.many)
LOOPS = (_SQLITE, _APSW, _FILE, _WAKELOG)
FOR_SESSIONS = (_SQLITE, _APSW, Kind("one connection, one lock", BareSqlite, share_connection), _FILE, _WAKELOG)


def as_summary(state: Any) -> Summary:
    """What `load` returned, made comparable outside of what is timed."""
    return state if isinstance(state, Summary) else summary_of(state)


def _fold_rows(rows: Iterable[Any]) -> Summary:
    return fold(_decode(data) for (data,) in rows)
