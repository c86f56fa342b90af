"""Where a store is created: private files, unreadable folders, and names that are too long."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.names import NAME_MAX
from wakelog.store import open as open_store


def test_a_name_or_commit_id_that_is_too_long_is_refused_before_anything_is_stored() -> None:
    with open_store("memory:") as store:
        longest = "n" * NAME_MAX
        session = store.session(longest)
        session.append(ev.NoteAdded(text="a"), commit_id=longest)
        before = session.head.seq
        for refused in (
            lambda: store.session(longest + "n"),
            lambda: session.fork(name=longest + "n"),
            lambda: session.append(ev.NoteAdded(text="a"), commit_id=longest + "n"),
        ):
            with pytest.raises(InvalidInputError) as caught:
                refused()
            assert caught.value.kind == "too-long"
        assert session.head.seq == before
        assert len(list(store.sessions())) == 1


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("place", ["demo.db", "folder"])
def test_the_files_of_a_new_store_are_its_owners_alone(tmp_path: Path, place: str) -> None:
    before = os.umask(0)
    try:
        with open_store(tmp_path / place) as store:
            store.session("a").note("private")
            store.index.catch_up()
            inside = tmp_path if place.endswith(".db") else tmp_path / place
            found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in inside.iterdir()}
    finally:
        os.umask(before)
    assert any(name.endswith("-wal") for name in found)
    assert any("index" in name for name in found)
    assert set(found.values()) == {0o600}, found


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_store_that_its_owner_shares_stays_shared(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    open_store(path).close()
    path.chmod(0o664)
    with open_store(path) as store:
        store.session("a")
        assert stat.S_IMODE(path.stat().st_mode) == 0o664
        assert stat.S_IMODE((tmp_path / "demo.db-wal").stat().st_mode) == 0o664


def test_a_place_that_cannot_be_looked_at_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_store(tmp_path / ("n" * 5000), create=False)
    assert (caught.value.kind, bool(caught.value.hint)) == ("bad-path", True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process without rights")
def test_a_folder_that_may_not_be_entered_is_refused_with_a_hint(tmp_path: Path) -> None:
    open_store(tmp_path / "locked").close()
    (tmp_path / "locked").chmod(0)
    child = os.fork()
    if not child:  # without the rights of root, which locked folders do not stop
        code = 1
        with contextlib.suppress(BaseException):
            if os.geteuid() == 0:
                os.setuid(65534)
            try:
                SqliteEngine(tmp_path / "locked" / "log.db", create=False)
            except NotAllowedError as exc:
                code = 0 if (exc.kind, bool(exc.hint)) == ("not-readable", True) else 2
            except NotFoundError:
                code = 3
        os._exit(code)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_verify_refuses_what_is_not_an_anchor() -> None:
    with open_store("memory:") as store:
        anything: Any = "x"
        with pytest.raises(InvalidInputError):
            store.session("a").verify(anything)
        with pytest.raises(InvalidInputError):
            verify(anything)
