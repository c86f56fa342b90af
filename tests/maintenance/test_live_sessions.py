"""The fleet: which sessions are listed, and which are only counted."""

from typing import Any

import pytest

from tests.maintenance.conftest import Clock
from wakelog import events as ev
from wakelog.index import Index
from wakelog.maintenance import live_sessions
from wakelog.maintenance.live_sessions import Fleet, find_live
from wakelog.model.records import Heartbeat
from wakelog.store import Store

HOUR_US = 3600 * 1_000_000


def rest(store: Store, *names: str) -> None:
    for name in names:
        store.session(name).append(ev.TurnStarted(input="go"), ev.TurnEnded())


def names_of(fleet: Fleet) -> list[str]:
    return [live.session.name for live in fleet.found]


def test_behind_enough_idle_sessions_those_that_need_somebody_are_found(store: Store) -> None:
    rest(store, "r1", "r2")
    store.session("asks").append(ev.ActionRequested(action="a", tool="send", approval=True))
    store.session("paused").life.pause()
    store.session("flagged").monitors.flag("loop", "again and again")
    rest(store, "r3", "r4", "r5")
    found = find_live(store, idle=2)
    assert names_of(found) == ["asks", "paused", "r5", "r4", "flagged"]
    assert found.resting == 3


def test_behind_enough_idle_sessions_a_living_writer_is_found(store: Store, clock: Clock) -> None:
    rest(store, "r1", "held", "r2", "r3")
    held = store.session("held")
    store.engine.beat(held.id, Heartbeat(1, "somebody", clock.now + HOUR_US))
    found = find_live(store, idle=1)
    assert names_of(found) == ["r3", "held"]
    assert found.resting == 2


def test_old_idle_sessions_are_neither_listed_nor_counted(store: Store, clock: Clock) -> None:
    rest(store, "old")
    store.session("asks").append(ev.ActionRequested(action="a", tool="send", approval=True))
    clock.now += 2 * HOUR_US
    rest(store, "r1", "r2", "r3")
    found = find_live(store, idle=2)
    assert (names_of(found), found.resting) == (["asks", "r3", "r2"], 1)
    everything = find_live(store, everything=True, idle=2)
    assert (names_of(everything), everything.resting) == (["asks", "r3", "r2"], 2)


def test_many_idle_sessions_are_not_read_from_the_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rest(store, *(f"r{number}" for number in range(20)))
    monkeypatch.setattr(live_sessions, "IDLE_MAX", 4)
    listed: list[int] = []
    sessions = Index.sessions

    def counted(index: Index, **how: Any) -> Any:
        page = sessions(index, **how)
        listed.append(len(page))
        return page

    monkeypatch.setattr(Index, "sessions", counted)
    found = find_live(store, idle=4)
    assert (len(found.found), found.resting) == (4, 16)
    assert listed == [4, 4, 0]
