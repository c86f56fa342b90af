"""The fleet in numbers: what sessions need, which failed, which flags are open."""

from typing import Any

import pytest

from tests.maintenance.conftest import Clock
from wakelog import events as ev
from wakelog.engines.memory import MemoryEngine
from wakelog.maintenance import fleet_counts
from wakelog.maintenance.fleet_counts import OPEN_NEEDS, SEVERITIES, FleetCounter, add_up
from wakelog.session import Session
from wakelog.session.status import SessionCondition, read_condition
from wakelog.store import Store


def ended(store: Store, name: str, outcome: Any) -> Session[Any]:
    session = store.session(name)
    session.append(ev.TurnStarted(input="go"), ev.TurnEnded(outcome=outcome))
    return session


def test_every_need_failure_and_flag_is_counted(store: Store, clock: Clock) -> None:
    waiting = store.session("waiting")
    waiting.append(ev.ActionRequested(action="a", tool="send", approval=True))
    over = store.session("over", limits={"tokens": 10})
    over.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=11)))
    ended(store, "bad", "failed").monitors.flag("loop", "again and again", severity="alarm")
    ended(store, "cut", "interrupted")
    ended(store, "good", "completed")
    ended(store, "closed", "failed").life.end()
    clock.now += 90_000_000
    counts = FleetCounter(store).count()
    assert (counts.needs["waiting"], counts.needs["over-budget"], counts.needs["stuck"]) == (1, 1, 0)
    assert counts.failed == 2
    assert (counts.flags["alarm"], counts.flags["warning"]) == (1, 0)
    assert counts.oldest_s["waiting"] == pytest.approx(90, abs=1)
    assert (counts.oldest_s["stuck"], counts.unreadable) == (0.0, 0)


def test_a_session_that_falls_silent_becomes_stuck_without_moving(store: Store, clock: Clock) -> None:
    store.session("s").append(ev.TurnStarted(input="go"))
    counter = FleetCounter(store)
    assert counter.count().needs["stuck"] == 0
    clock.now += 301_000_000
    assert counter.count().needs["stuck"] == 1


def test_only_sessions_that_moved_or_are_at_work_are_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        ended(store, f"s{number}", "completed")
    counter = FleetCounter(store)
    counter.count()
    looked: list[str] = []

    def look(session: Session[Any]) -> SessionCondition:
        looked.append(session.name)
        return read_condition(session)

    monkeypatch.setattr(fleet_counts, "read_condition", look)
    store.resume("s3").monitors.flag("odd", "look")
    assert counter.count().flags["warning"] == 1
    assert looked == ["s3"]
    store.delete(store.resume("s3"))
    assert counter.count().flags["warning"] == 0


def test_the_series_are_as_many_as_the_words(store: Store) -> None:
    ended(store, "a", "failed")
    counts = add_up([FleetCounter(store).count(), FleetCounter(Store(MemoryEngine())).count()])
    assert (tuple(counts.needs), tuple(counts.flags)) == (OPEN_NEEDS, SEVERITIES)
    assert counts.failed == 1
    assert add_up([]).oldest_s["waiting"] == 0.0
