"""The write-ahead log has room before it is needed, and zeros in it are never taken for commits."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from wakelog.engines.sqlite import SqliteEngine, wal_room
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import expected, opened, store, stored

FRAME = 4096 + 24


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(path)
    yield engine
    engine.close()


def _append(engine: SqliteEngine, writer: CommitWriter, count: int) -> None:
    for _ in range(count):
        store(engine, writer.seal(fact(f"{len(writer.commits)} {'x' * 400}")))


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def test_the_log_is_longer_than_its_commits_and_ends_in_zeros(engine: SqliteEngine, path: Path) -> None:
    writer = opened(engine)
    _append(engine, writer, 40)
    size = _log(path).stat().st_size
    assert (size - 32) % FRAME == 0
    assert (size - 32) // FRAME == 256
    _append(engine, writer, 3)
    assert _log(path).stat().st_size == size, "a few more commits must not change its length"
    assert not any(_log(path).read_bytes()[-FRAME:])


def test_a_process_that_writes_little_makes_no_room(engine: SqliteEngine, path: Path) -> None:
    _append(engine, opened(engine), 2)
    assert any(_log(path).read_bytes()[-FRAME:])


def test_it_is_checkpointed_in_time_and_then_written_over(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_room, "CHECKPOINT_FRAMES", 200)
    writer, before = opened(engine), path.stat().st_size
    _append(engine, writer, 200)  # three frames each and more
    assert _log(path).stat().st_size == 32 + 256 * FRAME
    assert path.stat().st_size > before
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_what_a_crash_leaves_is_read_and_written_on(engine: SqliteEngine, path: Path, tmp_path: Path) -> None:
    writer = opened(engine)
    _append(engine, writer, 60)
    left = tmp_path / "left"
    left.mkdir()
    for each in (path, _log(path)):
        shutil.copy(each, left / each.name)  # as `kill -9` leaves them
    survivor = SqliteEngine(left / path.name)
    assert stored(survivor, writer.session) == expected(*writer.commits)
    _append(survivor, writer, 60)
    assert stored(survivor, writer.session) == expected(*writer.commits)
    assert survivor.check() == []
    survivor.close()


def test_two_that_write_the_same_log_make_room_for_each_other(engine: SqliteEngine, path: Path) -> None:
    other = SqliteEngine(path)
    mine, theirs = opened(engine), opened(other)
    for _ in range(60):
        _append(engine, mine, 1)
        _append(other, theirs, 1)
    for session in (mine, theirs):
        assert stored(engine, session.session) == stored(other, session.session) == expected(*session.commits)
    other.close()


def test_a_log_that_cannot_be_made_longer_is_no_error(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, size: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(wal_room, "_lengthen", full)
    writer = opened(engine)
    _append(engine, writer, 60)
    assert any(_log(path).read_bytes()[-FRAME:])
    assert stored(engine, writer.session) == expected(*writer.commits)
