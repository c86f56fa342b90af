"""Watching a whole store: every session, from any writer; an unreadable session does not stop the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.monitors.play import SECOND
from wakelog.errors import CorruptLogError, UnavailableError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.monitors import store_watch as watching
from wakelog.monitors.monitor import RaisedFinding
from wakelog.monitors.repetition_rules import RepeatedFailure
from wakelog.monitors.store_watch import Watcher, WatchTrouble
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store import open as open_store


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Store:
    return open_store("memory:" if request.param == "memory" else tmp_path / "store", clock=clock)


def fail(session: Session[Any], times: int = 3) -> None:
    for _ in range(times):
        session.append(ev.ActionRecorded(action=f"a{session.head.seq}", tool="search", outcome="failed", input="same"))


def names(store: Store, found: Any) -> list[tuple[str, str]]:
    return [(store.engine.head(each.session).name, each.finding.flag.partition(":")[0]) for each in found]


def test_the_first_look_is_at_everything_and_later_ones_at_what_is_new(store: Store) -> None:
    a, b = store.session("a"), store.session("b")
    fail(a)
    watcher = store.watch()
    assert names(store, watcher.look()) == [("a", "repeated-failure")]
    assert list(watcher.look()) == []
    fail(b)
    c = store.session("c")
    fail(c)
    assert sorted(names(store, watcher.look())) == [("b", "repeated-failure"), ("c", "repeated-failure")]
    assert list(watcher.look()) == []


def test_ended_sessions_are_looked_at_when_asked_for_or_when_they_have_news(store: Store) -> None:
    a = store.session("a")
    fail(a)
    a.life.end()
    watcher = store.watch()
    assert list(watcher.look()) == []
    assert names(store, store.watch(ended=True, writes=False).look()) == [("a", "repeated-failure")]
    a.note("what happened here?")
    assert names(store, watcher.look()) == [("a", "repeated-failure")]


def test_one_session_can_be_watched_alone(store: Store) -> None:
    a, b = store.session("a"), store.session("b")
    watcher = store.watch(session="b")
    fail(a)
    fail(b)
    assert names(store, watcher.look()) == [("b", "repeated-failure")]
    fail(a)
    assert list(watcher.look()) == []


def test_the_clock_is_asked_about_all_sessions_at_work(store: Store, clock: Clock) -> None:
    for name in ("a", "b"):
        store.session(name).append(ev.TurnStarted())
    store.session("idle")
    watcher = store.watch()
    assert list(watcher.look()) == []
    clock.now += 400 * SECOND
    assert sorted(names(store, watcher.tick())) == [("a", "stall"), ("b", "stall")]
    assert list(watcher.tick()) == []


def test_own_rules_have_a_memory_for_each_session(store: Store) -> None:
    for name in ("a", "b"):
        fail(store.session(name), 2)
    watcher = store.watch(RepeatedFailure(times=3))
    assert list(watcher.look()) == []


def test_a_monitor_that_was_put_aside_goes_on_where_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MONITORS_MAX", 2)
    sessions = [store.session(f"s{number}") for number in range(6)]
    watcher = store.watch()
    for _ in range(3):
        for session in sessions:
            fail(session, 1)
            list(watcher.look())
    assert len(watcher._monitors) == 2
    assert all(len(session.state().flags) == 1 for session in sessions)


def test_a_deleted_session_is_forgotten(store: Store) -> None:
    a, b = store.session("a"), store.session("b")
    watcher = store.watch()
    list(watcher.look())
    store.delete(a)
    fail(b)
    assert names(store, watcher.look()) == [("b", "repeated-failure")]
    assert list(watcher.tick()) == []


def test_what_cannot_be_read_is_told_and_does_not_hold_up_the_others(store: Store) -> None:
    a, b = store.session("a"), store.session("b")
    fail(a)
    fail(b)
    away = {a.id: UnavailableError("the disk is busy"), b.id: CorruptLogError("event 3 was altered", seq=3)}
    troubles = dict(away)

    def open_log(session: Any) -> Log:
        if session in troubles:
            raise troubles[session]
        return Log(store.engine, session)

    c = store.session("c")
    fail(c)
    watcher = Watcher(store.engine, open_log)
    found = list(watcher.look())
    assert {each.message for each in found if isinstance(each, WatchTrouble)} == {
        "the disk is busy",
        "event 3 was altered",
    }
    assert [store.engine.head(r.session).name for r in found if isinstance(r, RaisedFinding)] == ["c"]
    troubles.clear()
    # A session that was only unavailable is read again, even without new events.
    assert names(store, watcher.look()) == [("a", "repeated-failure")]


def test_pausing_is_for_budgets_unless_all_rules_may(store: Store) -> None:
    a, b = store.session("a"), store.session("b", limits={"tokens": 1})
    fail(a)
    b.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=5)))
    list(store.watch().look())
    assert (a.status, b.status) == ("open", "paused")
    c = store.session("c")
    fail(c)
    list(store.watch(pause=True).look())
    assert (a.status, c.status) == ("open", "paused"), "what was flagged before is not judged again"
