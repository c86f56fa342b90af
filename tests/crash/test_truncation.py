"""Newest commits cut off behind the engine's back: an anchor finds it, and only an anchor can."""

from pathlib import Path

import apsw
import pytest

from tests.crash.workload import Journal, append, named, opened
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.records import Anchor


def _cut(engine: SqliteEngine, log: Log, after: int) -> None:
    """Removes every trace of the session's commits after an event."""
    path = engine.path
    engine.close()
    db = apsw.Connection(str(path))
    number = db.execute("select no from session where id = ?", (log.id,)).get
    for table, column in (("log", "last"), ("commit_id", "last"), ("snapshot", "seq")):
        db.execute(f"delete from {table} where session = ? and {column} > ?", (number, after))
    db.close()


@pytest.mark.parametrize("commits", [1, 3, 7])
def test_a_cut_off_end_is_found_against_an_anchor_and_only_then(tmp_path: Path, commits: int) -> None:
    with opened(tmp_path) as engine:
        log = named(engine, "alpha")
        for i in range(8):
            append(log, Journal(), f"cut-{i}")
        late, entry = log.anchor(), log.entry(2)
        early = Anchor(log.id, entry.seq, entry.hash.hex(), entry.header.at)
        lasts = [commit.last for commit in engine.read(log.id)]
        _cut(engine, log, lasts[-1 - commits])
    with opened(tmp_path) as engine:
        log = named(engine, "alpha")
        assert verify(log).ok, "without an anchor nobody can tell"
        assert not verify(log).anchored
        assert verify(log, early).ok, "what the anchor covers is there"
        report = verify(log, late)
        assert not report.integrity
        assert [fault.seq for fault in report.completeness] == [log.head().seq + 1]
        assert "cut off" in report.completeness[0].what


def test_an_end_that_was_cut_off_and_written_anew_is_found_against_an_anchor(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        log = named(engine, "alpha")
        for i in range(4):
            append(log, Journal(), f"cut-{i}")
        anchor = log.anchor()
        _cut(engine, log, 1)
    with opened(tmp_path) as engine:
        log = named(engine, "alpha")
        while log.head().seq < anchor.seq:
            log.append(ev.NoteAdded(text="anew"))
        assert verify(log).ok
        report = verify(log, anchor)
        assert [fault.seq for fault in report.integrity] == [anchor.seq]
        assert "rewritten" in report.integrity[0].what


def test_a_commit_cut_out_of_the_middle_is_found_without_an_anchor(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        log = named(engine, "alpha")
        for i in range(4):
            append(log, Journal(), f"cut-{i}")
        last = [commit.last for commit in engine.read(log.id)][2]
    db = apsw.Connection(str(tmp_path / "log.db"))
    db.execute("delete from log where last = ?", (last,))
    db.close()
    with opened(tmp_path) as engine:
        assert not verify(named(engine, "alpha")).ok
