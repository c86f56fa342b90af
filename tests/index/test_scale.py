"""Many sessions: the same answers, at a cost that follows what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.index import Index
from wakelog.log.seal import SealStep, Tip, seal
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, root_id
from wakelog.model.records import EventDraft
from wakelog.state.fold import Fold
from wakelog.testing.builders import START_US


def fill(engine: Engine, sessions: int, turns: int) -> list[SessionId]:
    """Sessions written commit by commit, without the checks of a log, which are not what is tried here."""
    ids = []
    for number in range(sessions):
        session = root_id(START_US, number.to_bytes(10, "big"))
        tip = Tip(Fold())
        opened = ev.SessionOpened(name=f"s{number}", labels={"group": str(number % 10)})
        commits = [seal(tip, session, [SealStep(EventDraft(opened))], now=START_US + number).commit]
        for turn in range(turns):
            events = [
                ev.TurnStarted(input=f"question {turn} of session{number}"),
                ev.ActionRecorded(action=f"a{turn}", tool=f"tool{turn % 3}", cost=ev.Cost(tokens_out=2)),
                ev.FileChanged(path=f"f{turn % 5}.py", added=1),
                ev.TurnEnded(outcome="failed" if turn % 7 == 6 else "completed"),
            ]
            now = START_US + number + turn * 1_000_000
            commits.append(seal(tip, session, [SealStep(EventDraft(e)) for e in events], now=now).commit)
        engine.submit(*commits).result()
        ids.append(session)
    return ids


def check(engine: Engine, path: Path | None, sessions: int, turns: int) -> None:
    ids = fill(engine, sessions, turns)
    with Index(engine, path) as index:
        assert len(index.sessions(limit=10_000)) == min(sessions, 10_000)
        assert len(index.sessions(label="group=3", limit=10_000)) == sessions // 10
        totals = index.query_sql("select count(*), sum(turns), sum(events), sum(tokens) from sessions", timeout_s=60)
        assert totals.rows == ((sessions, sessions * turns, sessions * (1 + 4 * turns), sessions * turns * 2),)
        asked = ids[sessions // 2]
        assert len(index.turns(asked)) == min(turns, 50)
        assert len(index.files_modified(asked, last_turns=3)) == 3
        assert sum(tool.calls for tool in index.tools(asked)) == turns
        hits = index.search(f"session{sessions // 2}", limit=1000)
        assert len(hits) == min(turns, 1000)
        assert {hit.session for hit in hits} == {asked}
        assert len(index.search("question", limit=20)) == 20


def test_two_hundred_sessions(tmp_path: Path) -> None:
    check(MemoryEngine(), tmp_path / "index.db", sessions=200, turns=10)


@pytest.mark.slow
def test_a_thousand_sessions_and_ten_thousand_turns(tmp_path: Path) -> None:
    check(MemoryEngine(), tmp_path / "index.db", sessions=1000, turns=10)


@pytest.mark.slow
def test_sessions_of_a_thousand_turns(tmp_path: Path) -> None:
    check(MemoryEngine(), tmp_path / "index.db", sessions=10, turns=1000)
