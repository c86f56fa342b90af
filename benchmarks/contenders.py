"""The bare loops and wakelog, all with an answered turn on the disk.

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
from typing import TYPE_CHECKING, Any, Self

import msgspec

from benchmarks.protocol import AsyncContender, Contender, Settings, pragmas
from benchmarks.turns import State, Turn, fold

if TYPE_CHECKING:
    from wakelog.log import Log
    from wakelog.session import Session
    from wakelog.store import Store

BUSY_S = 30
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
sync_file: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

_SET_UP = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "create table if not exists turns (id integer primary key, session text, turn int, data blob)",
    "create index if not exists place on turns (session, turn)",
)
_INSERT = "insert into turns (session, turn, data) values (?, ?, ?)"
_SELECT = "select data from turns where session = ? and turn <= ? order by turn, id"
_COPY = "insert into turns (session, turn, data) select ?, turn, data from turns where session = ? and turn <= ?"
_LAST = "select data from turns where session = ? order by turn desc limit ?"
_ALL = 1 << 60


class _BareTable(Contender):
    """One row a turn, whichever library runs the statements."""

    run: Callable[..., Any]

    def append(self, turn: Turn) -> None:
        self.run(_INSERT, (self.session, turn["n"], encode(turn)))

    def load(self, at: int | None = None) -> State:
        return self._load(self.session, at or _ALL)

    def _load(self, session: str, at: int = _ALL) -> State:
        return fold(decode(data) for (data,) in self.run(_SELECT, (session, at)))

    def fork(self, at: int) -> Callable[[], State]:
        child = f"{self.session}-fork"
        self.run(_COPY, (child, self.session, at))
        return lambda: self._load(child)

    def recent_files(self, turns: int) -> list[str]:
        rows = list(self.run(_LAST, (self.session, turns)))
        return [decode(data)["file"] for (data,) in reversed(rows)]

    def settings(self) -> Settings:
        return pragmas(lambda statement: next(iter(self.run(statement)))[0])


class BareSqlite(_BareTable):
    """The standard library's sqlite3."""

    def __init__(self, place: str | Path, session: str = "bench", beside: Self | None = None) -> None:
        super().__init__(str(place), session)
        db = sqlite3.connect(Path(place) / "turns.db", timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        for statement in _SET_UP:
            db.execute(statement)
        self.run, self.close = db.execute, db.close  # type: ignore[method-assign]  # no wrapper: it is what is timed


class BareApsw(_BareTable):
    """The same through apsw, whose SQLite is newer and whose calls cost less."""

    def __init__(self, place: str | Path, session: str = "bench", beside: Self | None = None) -> None:
        import apsw

        super().__init__(str(place), session)
        db = apsw.Connection(str(Path(place) / "turns.db"))
        db.set_busy_timeout(BUSY_S * 1000)
        for statement in _SET_UP:
            db.execute(statement).fetchall()
        self.run, self.close = db.execute, db.close  # type: ignore[method-assign]  # as above


class SharedConnection(BareSqlite):
    """The other way to write several sessions: one connection behind a lock, so that SQLite never sleeps for being
    busy."""

    def __init__(self, place: str | Path, session: str = "bench", beside: Self | None = None) -> None:
        if beside is None:
            super().__init__(place, session)
            self.lock, self.alone = threading.Lock(), self.run
        else:
            Contender.__init__(self, str(place), session)
            self.lock, self.alone, self.close = beside.lock, beside.alone, beside.close  # type: ignore[method-assign]
        self.run = self._run_alone

    def _run_alone(self, *statement: Any) -> Any:
        with self.lock:
            return self.alone(*statement)


class EightCommits(BareSqlite):
    """The bare loop with as many durable commits a turn as full recording has."""

    def append(self, turn: Turn) -> None:
        from benchmarks.workload import parts_of

        for part in parts_of(turn):
            self.run(_INSERT, (self.session, turn["n"], encode(part)))

    def _load(self, session: str, at: int = _ALL) -> State:
        rows = [decode(data) for (data,) in self.run(_SELECT, (session, at))]
        return fold(map(_joined, zip(*[iter(rows)] * 8, strict=True)))

    def recent_files(self, turns: int) -> list[str]:
        rows = [decode(data) for (data,) in self.run(_LAST, (self.session, turns * 8))]
        return [row["file"] for row in reversed(rows) if "file" in row]


def _joined(parts: tuple[dict[str, Any], ...]) -> Turn:
    calls = [{**parts[i], **parts[i + 1]} for i in (1, 3, 5)]
    return {**parts[0], "tools": calls, **parts[7]}


class BareFile(Contender):
    """A file with one line a turn, and fdatasync. A session is a file of its own."""

    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        super().__init__(place, session)
        self._path = Path(place) / f"{session}.jsonl"
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def append(self, turn: Turn) -> None:
        os.write(self._file, encode(turn) + b"\n")
        sync_file(self._file)

    def load(self, at: int | None = None) -> State:
        # By number, for the case that several writers share the file.
        turns = sorted(map(decode, self._lines(at)), key=lambda turn: int(turn["n"]))
        return fold(turns)

    def fork(self, at: int) -> Callable[[], State]:
        child = BareFile(self.place, f"{self.session}-fork")
        os.write(child._file, b"".join(self._lines(at)))
        sync_file(child._file)
        return child.load

    def recent_files(self, turns: int) -> list[str]:
        return [decode(line)["file"] for line in list(self._lines(None))[-turns:]]

    def settings(self) -> Settings:
        return {"sync": sync_file.__name__}

    def _lines(self, at: int | None) -> Iterable[bytes]:
        with open(self._path, "rb") as lines:
            for n, line in enumerate(lines, 1):
                if at is not None and n > at:
                    return
                yield line

    def close(self) -> None:
        os.close(self._file)


class BarePostgres(AsyncContender):
    """asyncpg, one insert a turn, a connection for each session."""

    _TABLE = "create table if not exists turns (session text, turn bigint, data bytea, primary key (session, turn))"
    _INSERT = "insert into turns (session, turn, data) values ($1, $2, $3)"
    _SELECT = "select data from turns where session = $1 and turn <= $2 order by turn"
    _LAST = "select data from turns where session = $1 order by turn desc limit $2"

    async def aopen(self, beside: Self | None) -> None:
        import asyncpg

        self._db: Any = await asyncpg.connect(self.place)
        if beside is None:
            await self._db.execute(self._TABLE)

    async def aappend(self, turn: Turn) -> None:
        await self._db.execute(self._INSERT, self.session, turn["n"], encode(turn))

    async def aload(self, at: int | None = None) -> State:
        rows = await self._db.fetch(self._SELECT, self.session, at or _ALL)
        return fold(decode(row[0]) for row in rows)

    def recent_files(self, turns: int) -> list[str]:
        rows = self.run(self._db.fetch(self._LAST, self.session, turns))
        return [decode(row[0])["file"] for row in reversed(rows)]

    def settings(self) -> Settings:
        names = ("synchronous_commit", "fsync", "wal_sync_method", "server_version")
        return {name: self.run(self._db.fetchval(f"show {name}")) for name in names}

    async def aclose(self) -> None:
        await self._db.close()


# Ours


class Wakelog(Contender):
    """wakelog as its documentation shows it: one commit a turn. Making the events is part of what it costs."""

    is_bounded = True
    abandons = True

    def __init__(self, place: str | Path, session: str = "bench", beside: Self | None = None) -> None:
        import wakelog
        from benchmarks import workload

        super().__init__(str(place), session)
        self.store: Store = beside.store if beside else wakelog.open(place)
        self.opened: Session[Any] = self.store.session(session)
        self.log: Log = self.opened.log
        self.workload = workload
        self._events = workload.events_of

    def append(self, turn: Turn) -> None:
        self.log.append(*self._events(turn))

    def load(self, at: int | None = None) -> Any:
        return self.opened.log.state(None if at is None else self.opened.seq(_point(at)))

    def fork(self, at: int) -> Callable[[], Any]:
        return self.opened.fork(f"@{at}").log.state

    def diff(self, a: int, b: int) -> Any:
        return self.opened.diff(f"@{a}", f"@{b}")

    def recent_files(self, turns: int) -> list[str]:
        return [file.path for file in reversed(self.opened.files.modified(turns).files)]  # from the log, no index

    def settings(self) -> Settings:
        engine: Any = self.store.engine
        if self.place.startswith("postgresql"):
            row = engine._fetchrow("select current_setting('synchronous_commit') as value")
            return {"synchronous_commit": row["value"]}
        return dict(engine.settings())

    def close(self) -> None:
        self.store.close()


class WakelogFully(Wakelog):
    """Every call's intent durable before it, its outcome after: eight commits a turn."""

    def append(self, turn: Turn) -> None:
        self.workload.full_recording(self.log, turn)


class WakelogMessages(Wakelog):
    """Loading gives the messages too, as the state of most peers does."""

    def load(self, at: int | None = None) -> Any:
        return {**super().load(at), "messages": self.opened.messages(_point(at))}


class WakelogLists(Wakelog):
    """Loading gives the very state that peers keep: messages, all calls with their summaries, all changes of files."""

    is_bounded = False

    def load(self, at: int | None = None) -> Any:
        upto = None if at is None else self.opened.seq(f"@{at}")
        return self.workload.lists_of(self.log, super().load(at), upto)


def _point(at: int | None) -> str | None:
    return None if at is None else f"@{at}"
