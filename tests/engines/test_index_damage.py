"""A damaged index of the file is made anew from its rows; a row that cannot be read costs its commit and no other."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import wakelog
from wakelog.log.log import Log
from wakelog.log.verify import verify
from wakelog.maintenance.scrub import scrub
from wakelog.model.ids import SessionId
from wakelog.store import Store

PAGE = 4096
INDEXES = (
    *("log_place", "log_twin", "session_twin", "sqlite_autoindex_session_1"),
    *("name_twin", "name_session", "name_session_twin", "commit_id_twin"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    with wakelog.open(folder / "store") as store:
        for name in ("alpha", "beta"):
            session = store.session(name)
            for number in range(6):
                session.append(wakelog.events.NoteAdded(text=f"{name} {number}"), commit_id=f"{name}-{number}")
    return (folder / "store" / "log.db").read_bytes()


@contextlib.contextmanager
def damaged(folder: Path, data: bytes, at: int, mask: int) -> Iterator[Store]:
    (folder / "store").mkdir(exist_ok=True)
    changed = data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
    (folder / "store" / "log.db").write_bytes(changed)
    with wakelog.open(folder / "store") as store:
        yield store


def last_page(folder: Path, data: bytes, name: str) -> int:
    """The offset of the last leaf of a table or index."""
    path = folder / "look.db"
    path.write_bytes(data)
    with contextlib.closing(apsw.Connection(str(path))) as db:
        query = "select max(pageno) from dbstat where name = ? and pagetype = 'leaf'"
        number: Any = db.execute(query, (name,)).get
    return PAGE * (number - 1)


def told(store: Store) -> dict[str, list[int]]:
    """What can be read of each session, around the damage."""
    return {
        str(id): [e.seq for e in Log(store.engine, id, even_damaged=True).entries(on_hole=lambda _: None)]
        for id, _ in store.session_ids()
    }


@pytest.mark.parametrize("name", INDEXES)
def test_a_damaged_index_is_made_anew(tmp_path: Path, whole: bytes, name: str) -> None:
    start = last_page(tmp_path, whole, name)
    # In a row, and where the page says how many rows it has. Where SQLite's check cannot read the page, it stays.
    fewer = () if name == "commit_id_twin" else ((start + 4, 2),)
    for at, mask in (*fewer, (start + PAGE - 3, 64), (start + PAGE - 12, 1)):
        with damaged(tmp_path, whole, at, mask) as store:
            faults = [finding.what for finding in store.engine.inspect()]  # type: ignore[attr-defined]
            if not faults:
                continue  # a bit that is never read
            done = scrub(store, repair=True, anew=True)
            assert [finding.what for finding in done.findings] == [], (name, at - start, faults)
            assert done.repaired == 1
            assert [len(seqs) for seqs in told(store).values()] == [7, 7]
            assert all(store.resume(each).verify().ok for each in ("alpha", "beta"))


def test_a_row_of_a_session_or_name_is_written_as_it_was(tmp_path: Path, whole: bytes) -> None:
    """Every third byte of the tables' rows, damaged: it is mended, or somebody is told, and nothing is made up."""
    tried = mended = 0
    for name in ("session", "name"):
        start = last_page(tmp_path, whole, name)
        rows = range(start + PAGE - 90, start + PAGE, 3)
        for at in rows:
            with damaged(tmp_path, whole, at, 1 << at % 7) as store:
                faults = [finding.what for finding in store.engine.inspect()]  # type: ignore[attr-defined]
                if not faults and all(report.ok for report in store.verify()):
                    continue  # a bit that is never read
                done = scrub(store, repair=True, anew=True)
                tried += 1
                if any(finding.is_damage for finding in done.findings):
                    continue
                mended += 1
                assert {(h.name, h.seq) for h in store.sessions()} == {("alpha", 7), ("beta", 7)}, (name, at - start)
                assert all(report.ok for report in store.verify())
                assert store.resume("alpha").verify().ok
    assert mended > 0.7 * tried > 30


def test_a_fork_s_row_is_known_by_its_first_commit(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        parent = store.session("parent")
        with parent.turn("one"):
            parent.fact("a", 1)
        parent.fork("@1", name="fork")
    changes = (
        *("fork_at = 4", "fork_at = null", "fork_hash = x'00'", "parent = 's_x'", "parent = id", "checksum = 1"),
        "id = replace(id, 's_', 't_')",
    )
    for change in changes:
        with contextlib.closing(apsw.Connection(str(tmp_path / "store" / "log.db"))) as db:
            db.execute(f"update session set {change} where parent is not null")
        with wakelog.open(tmp_path / "store") as store:
            assert not all(report.ok for report in store.verify()), change
            done = scrub(store, repair=True, anew=True)
            assert [f.what for f in done.findings if f.is_damage] == [], change
            assert all(report.ok for report in store.verify())
            assert store.resume("fork").state().facts["a"].value == 1


@pytest.mark.parametrize("name", ["name", "session", "commit_id", "log"])
def test_an_index_is_left_as_a_witness_where_a_row_may_be_wrong(tmp_path: Path, whole: bytes, name: str) -> None:
    """The right name may stand in the index alone, and a row that is gone is missed by the index alone."""
    start = last_page(tmp_path, whole, name)
    for at, mask in ((start + PAGE - 20, 1), (start + 4, 1)):
        if at > start + 4 and name in ("name", "session"):
            continue  # which is repaired
        with damaged(tmp_path, whole, at, mask) as store:
            before = (tmp_path / "store" / "log.db").read_bytes()
            done = scrub(store, repair=True, anew=True)
            assert any(finding.is_damage for finding in done.findings)
        assert _rows_of_indexes(tmp_path, before) == _rows_of_indexes(
            tmp_path, (tmp_path / "store" / "log.db").read_bytes()
        )


def _rows_of_indexes(folder: Path, data: bytes) -> list[bytes]:
    return [data[start : start + PAGE] for name in INDEXES for start in [last_page(folder, data, name)]]


def test_a_value_that_is_no_text_any_more_costs_its_commit_and_no_other(tmp_path: Path, whole: bytes) -> None:
    at = whole.rindex(b"alpha-3", 0, whole.rindex(b'["note.added"][]alpha-3') + 30)
    with damaged(tmp_path, whole, at, 0x80) as store:
        alpha, beta = told(store).values()
        assert (alpha, beta) == ([1, 2, 3, 4, 6, 7], [1, 2, 3, 4, 5, 6, 7])
        assert store.resume("beta").verify().ok
        [damaged_id] = [id for id, seqs in told(store).items() if seqs == alpha]
        report = verify(Log(store.engine, SessionId(damaged_id), even_damaged=True))
        assert (report.events, report.integrity[0].seq) == (6, 5)
