"""A store that may be read but not written. Where the tests run as root, a child gives up its rights first."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.crash.answers import Questions, small_store
from tests.crash.processes import child, finish, run, run_all
from tests.crash.workload import named, opened
from wakelog.model import events as ev

WRITES = ["write NotAllowedError read-only"] * 3


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can come to, which pytest's own are not."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    folder = top / "store"
    with opened(folder) as engine:
        small_store(engine)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(top)


def _protect(folder: Path, *, files: int = 0o444, mode: int = 0o555) -> None:
    for file in folder.iterdir():
        file.chmod(files)
    folder.chmod(mode)


def _readable(folder: Path) -> tuple[list[str], list[str]]:
    """The sessions, and what a reader should say of them."""
    with opened(folder) as engine:
        sessions = [str(session) for session in Questions(engine).sessions]
        return sessions, [f"read {head.session} {head.hash.hex()}" for head in engine.sessions()]


@pytest.mark.parametrize("files", [0o444, 0o666])
def test_a_store_in_a_read_only_folder_can_be_read_and_refuses_writes(folder: Path, files: int) -> None:
    sessions, wanted = _readable(folder)
    _protect(folder, files=files)
    before = sorted((file.name, file.read_bytes()) for file in folder.iterdir())
    assert run("read_without_rights", path=str(folder), sessions=sessions) == [*wanted, *WRITES]
    assert sorted((file.name, file.read_bytes()) for file in folder.iterdir()) == before


def test_a_check_without_rights_finds_nothing_wrong_with_the_index_or_the_home_folder(folder: Path) -> None:
    with wakelog.open(folder) as store:
        store.index.search("x")
    assert (folder / "index.db").exists()
    home = folder.parent / "home"
    home.mkdir()
    home.chmod(0)
    _protect(folder)
    said = run("check_without_rights", path=str(folder), home=str(home))
    home.chmod(0o755)
    assert said == ["own store '', prices True"]


def test_a_read_only_file_in_a_writable_folder_can_be_read_and_refuses_writes(folder: Path) -> None:
    sessions, wanted = _readable(folder)
    _protect(folder, mode=0o777)
    assert run("read_without_rights", path=str(folder), sessions=sessions) == [*wanted, *WRITES]
    assert [file.name for file in folder.iterdir()] == ["log.db"], "something was left in the owner's way"
    (folder / "log.db").chmod(0o644)
    with opened(folder) as engine:
        assert named(engine, "alpha").append(ev.NoteAdded(text="the owner goes on")).seq


def test_a_store_that_was_not_closed_says_why_it_cannot_be_read_there(folder: Path) -> None:
    with child("append_until_point", path=str(folder), seed="x", point="after-commit", times=5, threads=1) as process:
        finish(process, killed=True)
    assert (folder / "log.db-wal").stat().st_size
    (folder / "log.db-shm").unlink()
    _protect(folder)
    said = run("read_without_rights", path=str(folder), sessions=[])
    assert said == ["open NotAllowedError read-only"]


def test_a_reader_without_rights_sees_what_a_live_writer_stores(folder: Path) -> None:
    with opened(folder) as engine:
        log = named(engine, "alpha")
        log.append(ev.NoteAdded(text="now there is a write-ahead log"))
        sessions = [str(session) for session in Questions(engine).sessions]
        _protect(folder, files=0o644)
        said = run_all([("read_without_rights", {"path": str(folder), "sessions": sessions, "wait": True})])[0]
        assert said == [*(f"read {head.session} {head.hash.hex()}" for head in engine.sessions()), *WRITES]
        assert log.append(ev.NoteAdded(text="and on it goes")).seq


def test_a_store_cannot_be_made_where_nothing_may_be_written(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty").chmod(0o555)
    folder.chmod(0o555)
    for place in ("new", "empty"):
        said = run("read_without_rights", path=str(folder / place), sessions=[])
        assert said == ["open NotAllowedError read-only"], place
