"""No hash covers the index: a scrub compares it with the log."""

from pathlib import Path

import apsw
import pytest

from wakelog.maintenance.scrub import scrub
from wakelog.store import Store
from wakelog.store import open as open_store

FORGERIES = {
    "a changed event": "update wl_event set summary = 'nothing happened' where seq = 3",
    "an added fact": "insert into wl_fact select session, 2, 'admin', '\"yes\"', 0 from wl_fact limit 1",
    "a missing file": "delete from wl_file",
    "a changed cost": "update wl_turn set usd_micros = 7 where turn = 1",
    "another status": "update wl_session set status = 'closed' where no = 1",
    "a hidden session": "update wl_session set hidden = 1 where no = 1",
    "another text": "update wl_text set body = 'a forged word' where id = (select min(id) from wl_text)",
    "another label": "update wl_label set value = 'b'",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_store(tmp_path) as store:
        for name in ("one", "two"):
            session = store.session(name, labels={"team": "a"})
            with session.turn("question"):
                session.fact("key", f"value of {name}")
                session.files.record("src/a.py", added=1)
                session.message("assistant", "an answer")
        store.index.catch_up()
    return tmp_path


def forge(folder: Path, statement: str) -> None:
    db = apsw.Connection(str(folder / "index.db"))
    db.execute(statement)
    assert db.changes()
    db.close()


def told(store: Store, *, repair: bool = False) -> list[str]:
    return [f.what for f in scrub(store, repair=repair, anew=True).findings if "index" in f.what]


def test_an_index_that_says_what_the_log_says_is_not_told_of(folder: Path) -> None:
    with open_store(folder) as store:
        store.session("three").note("not in the index yet")
        assert told(store) == []
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("statement", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_row_is_found_and_mended(folder: Path, statement: str) -> None:
    forge(folder, statement)
    with open_store(folder) as store:
        assert told(store)
        assert scrub(store, anew=True).damage
        told(store, repair=True)
        assert told(store) == []
