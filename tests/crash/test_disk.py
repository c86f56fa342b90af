"""A disk that is full, or whose syncs and writes fail: what the error says, and that asking again settles it."""

import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

import wakelog
from tests.crash.workload import Journal, append, check_survived, check_whole, named, opened
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import UnavailableError
from wakelog.log.log import Log
from wakelog.log.removal import erase
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.records import Head
from wakelog.testing.builders import CommitWriter, message
from wakelog.testing.faults import FaultyDisk, Operation, failing, full_after


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk("disk")
    yield disk
    disk.unregister()


@pytest.fixture
def engine(disk: FaultyDisk, tmp_path: Path) -> Iterator[SqliteEngine]:
    with opened(tmp_path, vfs=disk.name) as engine:
        yield engine
        disk.before = None


def _failure(call: Callable[[], object]) -> str:
    """The kind of UnavailableError a call raises, or nothing."""
    try:
        call()
    except UnavailableError as exc:
        return exc.kind
    return ""


def _stored(log: Log, commit_id: str) -> int:
    return sum(entry.commit_id == commit_id for entry in log.entries())


# Full

_READ_WITHOUT_ROOM = """
import resource, sys, wakelog
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with wakelog.open(sys.argv[1]) as store:
    session = store.resume("alpha")
    print(session.head.seq, session.verify().ok, len(list(store.sessions())), len(store.index.search("hello").rows))
"""


def _read_without_room(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _READ_WITHOUT_ROOM, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_store_on_a_full_disk_can_be_read(tmp_path: Path) -> None:
    """No file may grow, so SQLite cannot make the one it wants beside a write-ahead log."""
    with wakelog.open(tmp_path) as store:
        store.session("alpha").message("user", "hello")
    read = _read_without_room(tmp_path)
    assert read.stdout.split() == ["2", "True", "1", "1"], read.stderr


def test_a_store_that_was_not_closed_says_how_much_room_it_needs(tmp_path: Path) -> None:
    with wakelog.open(tmp_path) as store:
        store.session("alpha").message("user", "hello")
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("log.db", "log.db-wal"):
            shutil.copy(tmp_path / name, copy)
    read = _read_without_room(copy)
    assert "write-ahead log cannot be read" in read.stderr
    assert "free 64 KB" in read.stderr


@pytest.mark.parametrize("size", [100, 30_000, 6_000_000])
@pytest.mark.parametrize("room", [0, 1, 4095, 4096, 9000, 40_000])
def test_an_append_to_a_full_disk_says_so_and_works_once_there_is_room(
    disk: FaultyDisk, engine: SqliteEngine, size: int, room: int
) -> None:
    log = named(engine, "alpha")
    before = log.head()
    content = ev.MessageAdded(role="user", content=random.Random(size).randbytes(size))

    def try_it() -> Head:
        return log.append(content, ev.NoteAdded(text="with it"), commit_id="full")

    disk.before = full_after(room)
    if kind := _failure(try_it):
        assert kind == "store-full"
        assert log.head() == before
        assert verify(log).ok
        assert _failure(try_it) == "store-full"
    disk.before = None
    assert try_it().hash == try_it().hash
    assert _stored(log, "full") == 2
    assert verify(log).ok


def test_a_full_disk_refuses_a_new_store_and_leaves_one_that_can_be_made(disk: FaultyDisk, tmp_path: Path) -> None:
    for room in range(0, 60_000, 5000):
        folder = tmp_path / str(room)
        disk.before = full_after(room)
        assert _failure(partial(_make, folder, disk)) in ("store-full", ""), room
        disk.before = None
        check_survived(folder, Journal(), f"room for {room}")


def _make(folder: Path, disk: FaultyDisk) -> None:
    with opened(folder, vfs=disk.name) as engine:
        named(engine, "alpha").append(ev.NoteAdded(text="x"))


def test_everybody_in_a_group_hears_of_a_full_disk(disk: FaultyDisk, engine: SqliteEngine) -> None:
    logs = [named(engine, f"session {i}") for i in range(6)]
    disk.before = full_after(0)
    kinds: list[str] = []

    def run(log: Log) -> None:
        kinds.append(_failure(lambda: log.append(ev.NoteAdded(text="x"))))

    running = [threading.Thread(target=run, args=(log,)) for log in logs]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert kinds == ["store-full"] * 6
    disk.before = None
    assert [log.append(ev.NoteAdded(text="x")).seq for log in logs] == [2] * 6


def test_a_checkpoint_that_finds_no_room_loses_nothing(disk: FaultyDisk, engine: SqliteEngine, tmp_path: Path) -> None:
    """What it could not bring into the database file is still in the write-ahead log. SQLite by itself would not even
    tell; apsw raises what a hook raised, so the append is asked for again."""
    assert engine._pool._writer is not None
    engine._pool._writer.pragma("wal_autocheckpoint", 4)
    log, journal = named(engine, "alpha"), Journal()

    def no_growth(operation: Operation) -> None:
        if operation.grows and operation.file == "log.db":
            raise apsw.FullError("the database file cannot grow")

    disk.before = no_growth
    for i in range(20):
        if _failure(partial(append, log, journal, f"growing-{i}")):
            append(log, journal, f"growing-{i}")
    check_whole(engine, journal, "no room for checkpoints")
    disk.power_cut(tmp_path, tmp_path / "cut", 1)
    check_survived(tmp_path / "cut", journal.copy(), "no room for checkpoints, then a power cut")


@pytest.mark.parametrize("room", [0, 5000, 20_000, 60_000, 90_000])
def test_an_erasure_on_a_full_disk_is_done_or_not_and_says_which(
    disk: FaultyDisk, engine: SqliteEngine, room: int
) -> None:
    log = named(engine, "alpha")
    log.append(ev.FactRecorded(key="k", value="secret"))
    for i in range(20):
        append(log, Journal(), f"erasing-{i}")
    disk.before = full_after(room)
    done = {"store-full": False, "scrub-pending": True, "": True}[_failure(lambda: erase(log, [2]))]
    disk.before = None
    assert log.entry(2).is_intact is not done
    assert verify(log).ok
    erase(log, [2])
    assert not log.entry(2).is_intact
    assert verify(log).ok


# Failing syncs and writes


@pytest.mark.parametrize("kind", ["sync", "write"])
def test_a_failed_sync_leaves_the_answer_unknown_and_asking_again_settles_it(
    disk: FaultyDisk, engine: SqliteEngine, kind: str
) -> None:
    writer = CommitWriter()
    engine.submit(writer.open()).result()
    commit = writer.seal(message("x" * 9000), message("y"), commit_id="chosen")
    for _ in range(3):
        disk.before = failing(kind, "-wal")
        with pytest.raises(UnavailableError) as error:
            engine.submit(commit).result()
        assert error.value.kind == "answer-unknown"
        assert isinstance(error.value.__cause__, apsw.IOError)
    disk.before = None
    head = engine.submit(commit).result()
    assert engine.submit(commit).result() == head
    assert [c.commit_id for c in engine.read(writer.session)].count("chosen") == 1
    assert engine.submit(writer.seal(message("more"))).result().seq == head.seq + 1


def test_a_log_asks_again_by_itself_once(disk: FaultyDisk, engine: SqliteEngine) -> None:
    log = named(engine, "alpha")
    disk.before = failing("sync", "-wal", times=1)
    assert log.append(ev.NoteAdded(text="once")).seq == 2
    disk.before = failing("sync", "-wal", times=2)
    with pytest.raises(UnavailableError) as error:
        log.append(ev.NoteAdded(text="twice"), commit_id="chosen")
    assert error.value.kind == "answer-unknown"
    disk.before = None
    assert log.append(ev.NoteAdded(text="twice"), commit_id="chosen").seq == 3
    assert log.append(ev.NoteAdded(text="more")).seq == 4
    assert verify(log).ok


def test_a_commit_that_shows_up_after_a_restart_though_its_sync_failed_is_stored_once(
    disk: FaultyDisk, engine: SqliteEngine, tmp_path: Path
) -> None:
    """Its bytes may have reached the disk all the same. Then they are found on recovery."""
    log = named(engine, "alpha")
    disk.before = failing("sync", "-wal", times=99)
    with pytest.raises(UnavailableError):
        log.append(ev.NoteAdded(text="unknown"), commit_id="chosen")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("log.db", "log.db-wal"):
        shutil.copy(tmp_path / name, copy)
    with opened(copy) as other:
        restarted = Log(other, log.id)
        assert restarted.head().seq == 2, "the test does not show what it should: nothing reached the disk"
        assert restarted.append(ev.NoteAdded(text="unknown"), commit_id="chosen").seq == 2
        assert _stored(restarted, "chosen") == 1
        assert verify(restarted).ok


@pytest.mark.parametrize("after", range(0, 12, 2))
def test_a_store_goes_on_after_any_operation_failed(disk: FaultyDisk, engine: SqliteEngine, after: int) -> None:
    assert engine._pool._writer is not None
    engine._pool._writer.pragma("wal_autocheckpoint", 3)
    log, journal = named(engine, "alpha"), Journal()
    for kind in ("write", "sync", "truncate"):
        for i in range(6):
            disk.before = failing(kind, times=3, after=after + i)
            commit_id = f"{kind}-{after}-{i}"
            assert _failure(partial(append, log, journal, commit_id)) in ("answer-unknown", "")
            disk.before = None
            append(log, journal, commit_id)
    check_whole(engine, journal, f"failures after {after}")
