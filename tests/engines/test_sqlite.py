"""The SQLite engine keeps the contract, and what is its own."""

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.residue import residue
from wakelog.engine import Engine
from wakelog.engines.group_commit import WAIT_S
from wakelog.engines.sqlite import SqliteEngine, connection, tables
from wakelog.engines.sqlite.fork_safety import gate
from wakelog.errors import (
    ConflictError,
    CorruptLogError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)
from wakelog.model import events as ev
from wakelog.model.records import Head
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract import EngineContract
from wakelog.testing.contract.base import expected, in_parallel, opened, store, stored


class TestSqlite(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return SqliteEngine(tmp_path / "log.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(path)
    yield engine
    engine.close()


def test_the_settings_show_that_an_answer_means_synced(engine: SqliteEngine) -> None:
    settings = engine.settings()
    assert settings["journal_mode"] == "wal"
    assert settings["synchronous"] == 2  # full
    assert settings["secure_delete"] == 1
    assert engine.durability == "synced"


def test_appends_in_flight_share_one_transaction(engine: SqliteEngine, path: Path) -> None:
    writers = [opened(engine) for _ in range(4)]
    pending = [engine.submit(w.seal(fact(str(i)))) for i in range(10) for w in writers]
    pending[0].result()
    # Only one answer was asked for, and all are there: another connection sees them.
    other = SqliteEngine(path)
    assert [other.head(w.session).seq for w in writers] == [11] * 4
    assert [p.result().seq for p in pending[-4:]] == [11] * 4
    other.close()


def test_more_appends_than_one_group_takes_are_all_stored(engine: SqliteEngine) -> None:
    writer = opened(engine)
    pending = [engine.submit(writer.seal(fact("k", i))) for i in range(600)]
    assert pending[-1].result().seq == 601
    assert [p.result().seq for p in pending] == list(range(2, 602))
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_eight_threads_on_many_sessions_lose_nothing(engine: SqliteEngine) -> None:
    groups = [[opened(engine) for _ in range(6)] for _ in range(8)]

    def work(writers: list[CommitWriter]) -> None:
        for i in range(20):
            pending = [engine.submit(w.seal(fact(f"{i}"), message("m" * 600))) for w in writers]
            assert [p.result().seq for p in pending] == [2 * i + 3] * len(writers)

    in_parallel(work, groups)
    for writer in (w for group in groups for w in group):
        assert stored(engine, writer.session) == expected(*writer.commits)


def test_two_engine_objects_write_in_turns(engine: SqliteEngine, path: Path) -> None:
    other = SqliteEngine(path)
    writer = opened(engine)
    for i in range(20):
        store((engine, other)[i % 2], writer.seal(fact("k", i)))
    assert stored(engine, writer.session) == stored(other, writer.session) == expected(*writer.commits)
    other.close()


def test_the_head_is_read_again_once_somebody_else_has_written(engine: SqliteEngine, path: Path) -> None:
    writer = opened(engine)
    first = engine.submit(writer.seal(fact("a"))).result()
    assert engine.head(writer.session) == first
    other = SqliteEngine(path)
    second = other.submit(writer.seal(fact("b"))).result()
    assert engine.head(writer.session) == second == other.head(writer.session)
    other.claim("named", writer.session)
    assert engine.head(writer.session).name == "named"
    other.close()


def test_a_head_that_is_not_yet_committed_is_not_told(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = opened(engine)
    first = engine.submit(writer.seal(fact("a"))).result()
    told: list[Head] = []
    commit, insert = writer.seal(fact("b")), tables.insert_commit

    def insert_and_ask(*given: Any) -> None:
        insert(*given)
        in_parallel(lambda _: told.append(engine.head(writer.session)), [None])

    monkeypatch.setattr(tables, "insert_commit", insert_and_ask)
    second = engine.submit(commit).result()
    assert told == [first]
    assert engine.head(writer.session) == second


def test_an_append_that_meets_a_question_for_the_head_does_not_wait(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(engine)
    asked: list[threading.Thread] = []
    version, started = engine._pool.version, time.monotonic()

    def append_and_look() -> tuple[int, int] | None:
        if not asked:
            asked.append(threading.Thread(target=store, args=(engine, writer.seal(fact("a")))))
            asked[0].start()
            while not engine._group._queue or engine._group._queue[0].bell is None:  # until it waits
                time.sleep(0)
        return version()

    monkeypatch.setattr(engine._pool, "version", append_and_look)
    engine.head(writer.session)
    asked[0].join()
    assert engine.head(writer.session).seq == 2
    assert time.monotonic() - started < WAIT_S


def test_a_new_session_does_not_make_old_heads_look_new(engine: SqliteEngine, path: Path) -> None:
    """What another process wrote since is noticed at the next append, whatever was stored in between."""
    writer = opened(engine)
    other = SqliteEngine(path)
    ours, theirs = writer.rival(fact("ours")), writer.rival(fact("theirs"))
    store(other, theirs)
    opened(engine)
    with pytest.raises(ConflictError) as caught:
        engine.submit(ours).result()
    assert caught.value.kind == "head-moved"
    other.close()


def test_a_fork_between_a_commit_and_its_answer_waits(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a fork all connections are closed that nobody is using."""
    writer, db = opened(engine), engine._pool.writer()
    forks = []

    class ForkAfterCommit:
        def __getattr__(self, name: str) -> Any:
            return getattr(db, name)

        def execute(self, statement: str, *values: Any) -> Any:
            done = db.execute(statement, *values)
            if statement == "commit":
                forks.append(gate.shut(0))
                if forks[-1]:
                    engine.disconnect_all()
                gate.open()
            return done

    monkeypatch.setattr(engine._pool, "writer", ForkAfterCommit)
    assert engine.submit(writer.seal(fact("a"))).result().seq == 2
    assert forks == [False]


def test_many_that_open_a_new_store_at_once_all_get_it(path: Path) -> None:
    engines = in_parallel(SqliteEngine, [path] * 6)
    writer = opened(engines[0])
    assert [e.head(writer.session).seq for e in engines] == [1] * 6
    for engine in engines:
        engine.close()


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_file_system_of", lambda folder: "nfs4")
    with pytest.raises(UnsupportedError) as refused:
        SqliteEngine(path)
    assert refused.value.kind == "network-file-system"
    assert not path.exists()


def test_a_store_that_is_not_there_is_not_made_unless_asked_for(path: Path) -> None:
    with pytest.raises(NotFoundError) as refused:
        SqliteEngine(path, create=False)
    assert refused.value.kind == "store-not-found"
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(text := b"dear diary, " * 1000)
    with pytest.raises(CorruptLogError):
        SqliteEngine(path)
    assert path.read_bytes() == text


def test_a_database_of_something_else_is_refused(path: Path) -> None:
    _foreign_database(path)
    with pytest.raises(UnsupportedError) as refused:
        SqliteEngine(path)
    assert refused.value.kind == "not-a-store"
    with sqlite3.connect(path) as db:
        assert [name for (name,) in db.execute("select name from sqlite_schema")] == ["recipe"]
    db.close()


def test_a_database_of_something_else_is_left_as_it_was(path: Path) -> None:
    before = _foreign_database(path)
    with pytest.raises(UnsupportedError):
        SqliteEngine(path)
    assert path.read_bytes() == before


def _foreign_database(path: Path) -> bytes:
    with sqlite3.connect(path) as db:
        db.execute("create table recipe (name text)")
    db.close()
    return path.read_bytes()


def test_a_store_of_a_newer_schema_is_refused(engine: SqliteEngine, path: Path) -> None:
    engine.close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", connection.SCHEMA_VERSION + 1)
    db.close()
    with pytest.raises(UnsupportedError) as refused:
        SqliteEngine(path)
    assert refused.value.kind == "store-newer"


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder with a store, for someone who may only look. Root may do anything, so it steps down for the time."""
    folder = Path(tempfile.mkdtemp(prefix="wakelog-ro-"))
    engine = SqliteEngine(folder / "log.db")
    writer = opened(engine, "a")
    engine.claim("name", writer.session)
    engine.close()
    (folder / "log.db").chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield folder / "log.db"
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()


def test_a_store_that_may_only_be_read_is_read(read_only: Path) -> None:
    engine = SqliteEngine(read_only, create=False)
    session = engine.find("name")
    assert session is not None
    assert [c.first for c in engine.read(session)] == [1, 2]
    with pytest.raises(NotAllowedError) as refused:
        store(engine, CommitWriter().open())
    assert refused.value.kind == "read-only"
    engine.close()


def test_a_writer_that_waits_too_long_is_told_that_the_store_is_busy(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(engine)
    monkeypatch.setattr(connection, "BUSY_S", 0.02)
    other = apsw.Connection(str(path))
    other.execute("begin immediate")
    commit = writer.seal(fact("a"))
    with pytest.raises(UnavailableError) as refused:
        engine.submit(commit).result()
    assert refused.value.kind == "store-busy"
    other.execute("rollback")
    other.close()
    assert engine.submit(commit).result().seq == 2


@pytest.mark.parametrize("column", ["records", "payloads", "kinds", "status", "hash", "turn", "at", "commit_id"])
def test_a_flipped_bit_is_found_on_reading(engine: SqliteEngine, path: Path, column: str) -> None:
    writer = opened(engine)
    store(engine, writer.seal(fact("a"), message("m" * 2000)))
    db = apsw.Connection(str(path))
    [(value,)] = db.execute(f"select {column} from log where first = 2").fetchall()
    db.execute(f"update log set {column} = ? where first = 2", (_flipped(value),))
    db.close()
    with pytest.raises(CorruptLogError):
        list(engine.read(writer.session, payloads=True))


def _flipped(value: object) -> object:
    if isinstance(value, int):
        return value ^ 4
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:]
    assert isinstance(value, bytes)
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 4]) + value[middle + 1 :]


def test_nothing_of_a_deleted_session_stays_in_the_files(engine: SqliteEngine, path: Path) -> None:
    writer, kept = CommitWriter(), opened(engine)
    # Long and varied enough that some of it lies in pages of its own.
    noise = [f"SECRET-MARKER {i} {os.urandom(300).hex()}" for i in range(50)]
    store(engine, writer.open(goal="SECRET-MARKER"), *(writer.seal(message(t), fact(t), snapshot=True) for t in noise))
    assert residue(path.parent, "SECRET-MARKER")
    engine.delete(writer.seal(ev.SessionDeleted()))
    assert residue(path.parent, "SECRET-MARKER") == []
    assert engine.head(kept.session).seq == 1


def test_errors_of_the_database_keep_their_cause(path: Path) -> None:
    path.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(WakelogError) as told:
        SqliteEngine(path)
    assert isinstance(told.value.__cause__, apsw.Error)
