"""Checking all sessions, and a first answer before the index has caught up."""

from pathlib import Path

import apsw

import wakelog


def test_verify_reports_on_every_session(tmp_path: Path) -> None:
    with wakelog.open(tmp_path) as store:
        ids = {store.session("one").id, store.session("two").id}
        reports = list(store.verify())
        assert {report.session for report in reports} == ids
        assert all(report.ok for report in reports)
        assert [session for session, problem in store.session_ids() if problem is None] == sorted(ids)


def test_verify_goes_on_after_a_damaged_session(tmp_path: Path) -> None:
    with wakelog.open(tmp_path) as store:
        bad = store.session("bad")
        bad.fact("k", "v" * 50)
        good = store.session("good").id
    db = apsw.Connection(str(tmp_path / "log.db"))
    db.execute("update log set records = zeroblob(40) where first = 2")
    db.close()
    with wakelog.open(tmp_path) as store:
        verdicts = {report.session: report.ok for report in store.verify()}
    assert verdicts[good]
    assert not verdicts[bad.id]


def test_newest_index_holds_the_sessions_written_last() -> None:
    with wakelog.open("memory:") as store:
        one, two, three = (store.session(name) for name in ("one", "two", "three"))
        one.fact("k", 1)
        with store.newest_index(2) as index:
            assert {info.id for info in index.sessions()} == {one.id, three.id}
        assert two.head.seq == 1
        assert not store.is_index_behind
