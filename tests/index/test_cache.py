"""The index is a cache: whatever happens to its file, the next answer is right."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.index.asking import contents
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import CorruptLogError, UnavailableError, UnsupportedError
from wakelog.index import Index
from wakelog.index.database import APPLICATION_ID, SCHEMA_VERSION
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head
from wakelog.testing.builders import new_session, raw_commit, raw_record

pytestmark = pytest.mark.usefixtures("cures")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    made = SqliteEngine(tmp_path / "log.db")
    yield made
    made.close()


@pytest.fixture
def log(engine: SqliteEngine) -> Log:
    log = Log.create(engine, new_session(), ev.SessionOpened(name="x"))
    for i in range(5):
        log.append(*(ev.NoteAdded(text=f"note number {10 * i + j} " * 20) for j in range(10)))
    log.append(ev.FactRecorded(key="k", value=1), ev.FileChanged(path="a.py"))
    return log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def wanted(engine: SqliteEngine, log: Log) -> object:
    with Index(engine, None) as index:
        return contents(index)


def test_a_file_that_was_deleted_loses_nothing(engine: SqliteEngine, path: Path, wanted: object) -> None:
    with Index(engine, path) as index:
        assert contents(index) == wanted
    path.unlink()
    with Index(engine, path) as index:
        assert contents(index) == wanted
        assert index.path == path


def test_a_file_deleted_while_it_is_open_loses_nothing(
    engine: SqliteEngine, log: Log, path: Path, wanted: object
) -> None:
    with Index(engine, path) as index:
        assert contents(index) == wanted
        for each in path.parent.glob("index.db*"):
            each.unlink()
        head = log.append(ev.NoteAdded(text="more"))
        assert index.events(log.id, newest_first=True)[0].seq == head.seq
        assert path.exists()
        with Index(engine, path) as other:
            assert other.events(log.id, newest_first=True)[0].seq == head.seq
            assert contents(other) == contents(index)


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1])
def test_an_index_of_another_version_is_made_anew(
    engine: SqliteEngine, path: Path, wanted: object, version: int
) -> None:
    db = apsw.Connection(str(path))
    db.execute("create table wl_session (other text); create table sessions (x); create view v as select 1").fetchall()
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", version)
    db.close()
    with Index(engine, path) as index:
        assert contents(index) == wanted


def test_summaries_from_before_a_change_of_their_words_are_made_anew(engine: SqliteEngine, path: Path) -> None:
    """An index of version 13 may be from when a message that the program wrote was shown with its tags."""
    log = Log.create(engine, new_session(), ev.SessionOpened(name="x"))
    notice = "<task-notification>\n<summary>it is done</summary>\n</task-notification>"
    log.append(ev.MessageAdded(role="user", content=notice, name="notice"))
    with Index(engine, path) as index:
        index.catch_up()
    db = apsw.Connection(str(path))
    db.execute("update wl_event set summary = ? where summary = 'it is done'", (notice,)).fetchall()
    assert db.changes() == 1
    db.pragma("user_version", 13)
    db.close()
    with Index(engine, path) as index:
        (event,) = index.events(log.id, kinds=("message.added",))
        assert event.summary == "it is done"


def test_a_database_of_something_else_is_left_alone(engine: SqliteEngine, path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("create table mine (x)")
    db.pragma("application_id", 1234)
    db.close()
    before = path.read_bytes()
    with pytest.raises(UnsupportedError) as refused:
        Index(engine, path)
    assert refused.value.kind == "not-an-index"
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 500, b"SQLite format 3\0" + bytes(8000)])
def test_a_file_that_is_no_database_is_made_anew(
    engine: SqliteEngine, path: Path, wanted: object, content: bytes
) -> None:
    path.write_bytes(content)
    with Index(engine, path) as index:
        assert contents(index) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_cured(engine: SqliteEngine, path: Path, wanted: object, seed: int) -> None:
    with Index(engine, path) as index:
        index.catch_up()
    data = bytearray(path.read_bytes())
    assert len(data) // 4096 > 10
    for page in range(seed % 3, len(data) // 4096, 3):
        data[page * 4096 + 100 * (page == 0) : (page + 1) * 4096] = os.urandom(4096 - 100 * (page == 0))
    path.write_bytes(data)
    with Index(engine, path) as index:
        index.search("note")
        index.rebuild()
        assert contents(index) == wanted


def test_a_missing_table_is_cured_while_in_use(engine: SqliteEngine, path: Path, wanted: object) -> None:
    with Index(engine, path) as index:
        index.catch_up()
        db = apsw.Connection(str(path))
        db.execute("drop table wl_event")
        db.close()
        assert index.tools().rows == ()
        assert contents(index) == wanted
        db = apsw.Connection(str(path))
        db.execute("drop table wl_fact")
        db.close()
        assert contents(index) == wanted


def test_another_history_under_the_same_name_is_noticed(
    engine: SqliteEngine, log: Log, path: Path, tmp_path: Path
) -> None:
    """A log put back from a backup, and written on from there."""
    backup = tmp_path / "backup"
    backup.mkdir()
    engine.close()
    shutil.copy(tmp_path / "log.db", backup / "log.db")
    engine = SqliteEngine(tmp_path / "log.db")
    with Index(engine, path) as index:
        Log(engine, log.id).append(ev.NoteAdded(text="lost in the crash"))
        assert index.search("crash").rows
    engine.close()
    shutil.copy(backup / "log.db", tmp_path / "log.db")
    engine = SqliteEngine(tmp_path / "log.db")
    Log(engine, log.id).append(ev.NoteAdded(text="written instead"))
    with Index(engine, path) as index:
        assert index.search("instead").rows
        assert not index.search("crash").rows
    engine.close()


def test_an_index_of_another_store_is_noticed(engine: SqliteEngine, log: Log, path: Path, tmp_path: Path) -> None:
    with Index(engine, path) as index:
        index.catch_up()
    other = SqliteEngine(tmp_path / "other.db")
    with Index(other, path) as index:
        assert index.sessions().rows == ()
    other.close()


@pytest.fixture
def unwritable() -> Iterator[Path]:
    """A folder that may only be looked at. Root may write anywhere, so it steps down for the time."""
    folder = Path(tempfile.mkdtemp(prefix="wakelog-ro-"))
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.rmdir()


def test_without_a_place_to_write_it_is_kept_in_memory(unwritable: Path) -> None:
    engine = MemoryEngine()
    Log.create(engine, new_session(), ev.SessionOpened(name="x")).append(ev.NoteAdded(text="kept"))
    with pytest.raises(PermissionError):
        (unwritable / "anything").touch()
    with Index(engine, None) as index, Index(engine, unwritable / "index.db") as other:
        assert contents(other) == contents(index)
        assert other.path is None
        assert other.search("kept").rows


def test_without_a_folder_it_is_kept_in_memory(engine: SqliteEngine, tmp_path: Path, wanted: object) -> None:
    with Index(engine, tmp_path / "nowhere" / "index.db") as index:
        assert contents(index) == wanted
        assert index.path is None


def test_a_closed_index_says_so(engine: SqliteEngine, path: Path) -> None:
    index = Index(engine, path)
    index.close()
    index.close()
    for question in (index.sessions, index.catch_up, index.rebuild, lambda: index.query_sql("select 1")):
        with pytest.raises(UnavailableError) as told:
            question()
        assert told.value.kind == "store-closed"


def test_a_damaged_session_does_not_hold_up_the_others(engine: SqliteEngine, log: Log, path: Path) -> None:
    bad = new_session()
    good = raw_record(1, "session.opened", {"name": "bad", "delta": []})
    newer = raw_record(2, "note.added", {"text": "x"}, v=2)
    first = raw_commit(bad, [good])
    engine.submit(first).result()
    engine.submit(raw_commit(bad, [newer], prev=first.hash)).result()
    with Index(engine, path) as index:
        assert index.search("note").rows
        infos = {info.id: info for info in index.sessions()}
        assert (infos[bad].head, infos[log.id].head) == (1, log.head().seq)
        assert "version" in infos[bad].damaged
        assert infos[log.id].damaged == ""
        assert index.catch_up().damaged == 1


def test_a_broken_chain_is_reported_and_read_up_to_there(engine: SqliteEngine, log: Log) -> None:
    class Broken:
        """An engine that lost a commit in the middle."""

        def read(self, *arguments: Any, **options: Any) -> Iterator[Commit]:
            return (c for c in engine.read(*arguments, **options) if c.first != 22)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    with Index(engine, None) as index:
        index.catch_up()
        index.engine = Broken()
        log.append(ev.NoteAdded(text="after the damage"))
        assert index.search("damage").rows, "what was read before stays"
        index.rebuild()
        [info] = index.sessions()
        assert (info.head, info.damaged) == (21, f"event 22 of {log.id} is missing")


def test_a_session_whose_head_cannot_be_read_says_so(engine: SqliteEngine, log: Log) -> None:
    class Unreadable:
        def head(self, session: SessionId) -> Head:
            if session == fork.id:
                raise CorruptLogError("the stored commit is damaged")
            return engine.head(session)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    fork = log.fork()
    with Index(engine, None) as index:
        index.engine = Unreadable()
        assert {info.id: info.damaged for info in index.sessions()} == {
            log.id: "",
            fork.id: "the stored commit is damaged",
        }
        assert index.catch_up().damaged == 1
        index.engine = engine
        fork.append(ev.NoteAdded(text="repaired"))
        assert [hit.session for hit in index.search("repaired")] == [fork.id]
        assert index.catch_up().damaged == 0
        assert len(index.events(fork.id)) == fork.head().seq


def test_whatever_a_body_holds_has_a_row(engine: SqliteEngine, path: Path) -> None:
    """Kinds to come, and known kinds with fields that are not what they promise."""
    strange = new_session()
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("session.opened", {"name": 5, "labels": [1], "agent": {}, "delta": 7}),
        ("kind.to.come", {"what": "a walrus", "delta": [{"op": "add", "path": "/nowhere/x", "value": 1}]}),
        ("file.changed", {"path": ["x"], "added": -5, "removed": 2**70, "change": None}),
        ("decision.made", {"choice": {}, "alternatives": "x"}),
        ("fact.recorded", {"value": {"a": [None]}}),
        ("message.added", {"role": 1, "content": {"$payload": "zz"}}),
        ("message.added", {"role": "user", "content": {"$payload": "00" * 32, "size": 1, "media": "text"}}),
        ("action.failed", {"action": 4, "error": "text"}),
        ("action.recorded", {"action": "a", "tool": "t", "outcome": "odd", "cost": 3, "params": 4}),
        ("turn.ended", {"error": []}),
        ("history.rewound", {"to": "x", "under": None}),
        ("note.added", {"text": "\0 \ufffd \U0001f600", "occurred_at": "yesterday"}),
        ("goal.set", {"delta": [{"op": "add", "path": "/goal", "value": 5}, {"op": "remove", "path": "/goal/x"}]}),
        ("budget.spent", {"delta": [{"op": "add", "path": "/budget", "value": 5}]}),
    ]
    records = [raw_record(seq, kind, body, turn=1) for seq, (kind, body) in enumerate(bodies, 1)]
    engine.submit(raw_commit(strange, records)).result()
    with Index(engine, path) as index:
        rows = index.query_sql("select kind from events order by seq").rows
        assert [kind for (kind,) in rows] == [kind for kind, _ in bodies]
        assert [hit.kind for hit in index.search("walrus")] == ["kind.to.come"]
        for question in (index.turns, index.decisions, index.errors, index.files_modified, index.tools):
            question(strange)
        contents(index)


@pytest.mark.parametrize("pages", [1, 10, 40])
def test_when_its_disk_is_full_the_answer_comes_from_memory(
    engine: SqliteEngine, path: Path, wanted: object, pages: int
) -> None:
    """Full while it is made, at its first rows, and later."""

    def limit(db: apsw.Connection) -> None:
        if db.filename.endswith("index.db"):
            db.pragma("max_page_count", pages)

    apsw.connection_hooks.append(limit)
    try:
        with Index(engine, path) as index:
            assert contents(index) == wanted
            assert index._database.path is None
    finally:
        apsw.connection_hooks.remove(limit)
