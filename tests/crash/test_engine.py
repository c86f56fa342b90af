"""The SQLite engine under ill treatment: interrupted leaders, bad company in a group, closing, vanishing files."""

import _thread
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.crash.workload import Journal, append, check_whole, logs_of, named, opened
from wakelog.engine import Surgery
from wakelog.engines.sqlite import SqliteEngine
from wakelog.engines.sqlite.rows import PackedCommit
from wakelog.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)
from wakelog.log.log import Log
from wakelog.log.removal import delete
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.records import Head
from wakelog.testing.builders import CommitWriter, fact, message


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    with opened(tmp_path / "store") as engine:
        yield engine


def _opened_writer(engine: SqliteEngine) -> CommitWriter:
    writer = CommitWriter()
    engine.submit(writer.open()).result()
    return writer


def _run(*works: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def _failure(call: Callable[[], object]) -> str:
    try:
        call()
    except WakelogError as exc:
        return exc.kind
    return ""


# Interrupted leaders


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_leader_acknowledges_nothing_for_anybody(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, at: int, when: str
) -> None:
    writers = [_opened_writer(engine) for _ in range(3)]
    commits = [writer.seal(message("x"), commit_id="chosen") for writer in writers]
    pendings = [engine.submit(commit) for commit in commits]
    store = engine._store

    def interrupted(db: apsw.Connection, given: tuple[PackedCommit, ...]) -> Head:
        if when == "before" and given[0].commit == commits[at]:
            raise KeyboardInterrupt
        head = store(db, given)
        if given[0].commit == commits[at]:
            raise KeyboardInterrupt
        return head

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_store", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pendings[0].result()
    for writer, pending in zip(writers, pendings, strict=True):
        assert _failure(pending.result) == "answer-unknown"
        assert engine.head(writer.session).seq == 1
    for writer, commit in zip(writers, commits, strict=True):
        assert engine.submit(commit).result().seq == 2
        assert engine.submit(writer.seal(message("y"))).result().seq == 3


def test_a_leader_interrupted_after_the_commit_leaves_a_question_that_can_be_settled(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = _opened_writer(engine)
    commit = writer.seal(message("x"))

    def interrupted(batch: list[Any]) -> None:
        engine._write(batch)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine._group, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.submit(commit).result()
    assert engine.head(writer.session).seq == 2
    assert engine.submit(commit).result().hash == commit.hash
    assert len(list(engine.read(writer.session))) == 2


def test_a_process_interrupted_while_it_waits_for_the_lock_can_go_on(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    other = apsw.Connection(str(engine.path))
    other.execute("begin immediate")
    timer = threading.Timer(0.2, _thread.interrupt_main)
    # Whoever started the tests may ignore the signal; then Python does not handle it either.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            log.append(ev.NoteAdded(text="interrupted"))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    other.execute("rollback")
    other.close()
    assert log.append(ev.NoteAdded(text="next")).seq == 2
    assert verify(log).ok


def test_a_connection_left_inside_a_transaction_is_replaced(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    stuck = engine._pool._writer
    assert stuck is not None
    stuck.execute("begin immediate")
    assert log.append(ev.NoteAdded(text="x")).seq == 2
    assert engine._pool._writer is not stuck


# What the engine remembers of heads


def test_commits_refused_together_leave_nothing_behind(engine: SqliteEngine) -> None:
    one, two = _opened_writer(engine), _opened_writer(engine)
    good, late = one.seal(message("good")), two.rival(message("late"))
    engine.submit(two.seal(message("first"))).result()
    with pytest.raises(ConflictError):
        engine.submit(good, late).result()
    assert engine.head(one.session).seq == 1
    assert engine.submit(good).result().seq == 2


def test_surgery_refused_leaves_nothing_behind(engine: SqliteEngine) -> None:
    one, two = _opened_writer(engine), _opened_writer(engine)
    good, late = one.seal(message("good")), two.rival(message("late"))
    engine.submit(two.seal(message("first"))).result()
    with pytest.raises(ConflictError):
        engine.operate(Surgery((good, late), (), {}))
    assert engine.head(one.session).seq == 1
    assert engine.submit(good).result().seq == 2


def test_what_another_process_writes_between_two_appends_is_seen(engine: SqliteEngine) -> None:
    writer = _opened_writer(engine)
    engine.submit(writer.seal(message("mine"))).result()
    with opened(engine.path.parent) as other:
        rival = writer.rival(message("rival"))
        other.submit(writer.seal(message("theirs"))).result()
    with pytest.raises(ConflictError):
        engine.submit(rival).result()
    assert engine.submit(writer.seal(message("mine again"))).result().seq == 4


def test_a_name_given_later_is_told_by_the_next_answer(engine: SqliteEngine) -> None:
    writer = _opened_writer(engine)
    engine.submit(writer.seal(message("x"))).result()
    engine.claim("late", writer.session)
    assert engine.submit(writer.seal(message("y"))).result().name == "late"


# Company in a group


@pytest.mark.parametrize(
    "spoilt",
    [{"commit_id": "\ud800"}, {"at": 1 << 70}, {"status": b"open"}, {"turns": (1, None)}, {"paths": ("\udfff",)}],
    ids=str,
)
def test_a_commit_that_cannot_be_stored_harms_nobody_else_in_its_group(
    engine: SqliteEngine, spoilt: dict[str, Any]
) -> None:
    writers = [_opened_writer(engine) for _ in range(3)]
    commits = [writer.seal(message("x"), commit_id="chosen") for writer in writers]
    commits[1] = msgspec.structs.replace(commits[1], **spoilt)
    pendings: list[Any] = []
    for commit in commits:
        try:
            pendings.append(engine.submit(commit))
        except InvalidInputError:  # some are refused before they are in line
            pendings.append(None)
    assert pendings[0].result().seq == 2
    if pendings[1] is not None:
        with pytest.raises(WakelogError):
            pendings[1].result()
    assert pendings[2].result().seq == 2
    assert engine.head(writers[1].session).seq == 1


def test_kinds_and_paths_of_any_text_are_told_as_they_were_given(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    path = 'a b\nc\u2028"d\\\U0001fae8\0'
    log.append(ev.FileChanged(path=path), ev.Foreign(foreign_kind="x.two words", data={}))
    commit = list(engine.read(log.id))[-1]
    assert commit.paths == (path,)
    assert commit.kinds == ("file.changed", "x.two words")
    assert verify(log).ok


# Closing


def test_closing_ends_every_wait_and_nothing_more_is_written(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    queued = engine.submit(CommitWriter().open())
    heard: list[str] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        heard.append(_failure(lambda: engine.wait(log.id, after=1 << 40, timeout_s=600)))

    threads = _run(wait, wait)
    waiting.wait()
    engine.close()
    for thread in threads:
        thread.join(100)
    assert heard == ["store-closed"] * 2
    assert _failure(queued.result) == "store-closed"
    assert _failure(lambda: log.append(ev.NoteAdded(text="x"))) == "store-closed"
    assert _failure(log.head) == "store-closed"
    engine.close()
    with opened(engine.path.parent) as again:
        assert [head.session for head in again.sessions()] == [log.id]


def test_closing_while_threads_append_and_read_loses_nothing_acknowledged(tmp_path: Path) -> None:
    for round_ in range(5):
        folder, journal = tmp_path / str(round_), Journal()
        engine = SqliteEngine(folder / "log.db")
        logs = [named(engine, name) for name in ("alpha", "beta")]
        unexpected: list[BaseException] = []

        def work(log: Log, reads: bool, seed: str, *, journal: Journal = journal, bad: Any = unexpected) -> None:
            try:
                for number in range(10_000):
                    if reads:
                        list(log.entries())
                    else:
                        append(log, journal, f"{seed}.{number}")
            except UnavailableError as exc:
                if exc.kind != "store-closed":
                    bad.append(exc)
            except BaseException as exc:
                bad.append(exc)

        works = [(log, reads, f"{i}{j}") for i, log in enumerate(logs) for j, reads in enumerate([False, False, True])]
        threads = _run(*[partial(work, *each) for each in works])
        while len(journal.acknowledged) < 10 * (round_ + 1):
            time.sleep(0.001)
        engine.close()
        for thread in threads:
            thread.join(100)
        assert not unexpected
        with opened(folder) as again:
            check_whole(again, journal, f"closed under threads, round {round_}")


# Reading beside writers


def test_a_read_beside_writers_sees_a_prefix_without_a_hole(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            log.append(ev.NoteAdded(text="x"), ev.NoteAdded(text="y"))

    threads = _run(write, write)
    try:
        seen = 0
        while seen < 400:
            seqs = [entry.seq for entry in log.entries()]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= seen
            seen = len(seqs)
    finally:
        stop.set()
        for thread in threads:
            thread.join(100)


def test_a_session_deleted_while_it_is_read_says_so(engine: SqliteEngine) -> None:
    writer = _opened_writer(engine)
    for _ in range(200):
        engine.submit(writer.seal(message("x"))).result()
    reading = engine.read(writer.session)
    next(reading)
    delete(Log(engine, writer.session))
    with pytest.raises(NotFoundError) as error:
        list(reading)
    assert error.value.kind == "session-deleted"


def test_reading_one_event_touches_one_commit_however_long_the_session_is(engine: SqliteEngine) -> None:
    writer = _opened_writer(engine)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    def steps_after(commits: int) -> int:
        nonlocal steps
        for _ in range(commits):
            engine.submit(writer.seal(fact("k"), fact("l"))).result()
        steps = 0
        assert len(list(engine.read(writer.session, after=3, upto=4))) == 1
        return steps

    engine._read(lambda db: db.set_progress_handler(count, 1))  # the only reader so far, and so the next one too
    short, long = steps_after(50), steps_after(400)
    assert 0 < long <= short + 20


# Files that vanish, or are not ours


def test_a_store_whose_folder_vanished_acknowledges_nothing(engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    shutil.rmtree(engine.path.parent)
    assert _failure(lambda: log.append(ev.NoteAdded(text="x"))) == "store-moved"
    assert _failure(lambda: engine.claim("x", log.id)) == "store-moved"


def test_a_store_that_was_replaced_by_another_is_not_written(engine: SqliteEngine, tmp_path: Path) -> None:
    log = named(engine, "alpha")
    with opened(tmp_path / "other") as other:
        theirs = named(other, "beta")
    engine.path.parent.rename(tmp_path / "moved")
    (tmp_path / "other").rename(engine.path.parent)
    assert _failure(lambda: log.append(ev.NoteAdded(text="x"))) == "store-moved"
    with opened(engine.path.parent) as other:
        assert [each.id for each in logs_of(other)] == [theirs.id]


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    foreign = apsw.Connection(str(file))
    foreign.execute("create table theirs (x)")
    foreign.close()
    before = file.read_bytes()
    for create in (True, False):
        with pytest.raises(UnsupportedError) as error:
            SqliteEngine(file, create=create)
        assert error.value.kind == "not-a-store"
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["log.db"]


def test_an_empty_file_is_no_store_until_one_is_made_in_it(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    file.touch()
    assert _failure(lambda: SqliteEngine(file, create=False)) == "store-not-found"
    SqliteEngine(file).close()
    SqliteEngine(file, create=False).close()


def test_the_folders_of_a_new_store_are_durable_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda place: synced.add(os.fstat(place).st_ino))
    SqliteEngine(tmp_path / "a" / "b" / "log.db").close()
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= synced
