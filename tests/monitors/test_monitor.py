"""A monitor records what rules find: once, with its cause, and pauses only if it may."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.monitors.play import Play
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import NotAllowedError, UnavailableError
from wakelog.log import Log
from wakelog.log.removal import erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.monitors.monitor import Monitor
from wakelog.monitors.repetition_rules import Loop, RepeatedFailure
from wakelog.monitors.rules import RuleFinding
from wakelog.monitors.session_rules import BudgetRule
from wakelog.monitors.session_view import SessionView


def fail(play: Play, times: int = 3) -> None:
    for _ in range(times):
        play.call(error="no")


def test_a_finding_becomes_a_flag_with_its_cause() -> None:
    play = Play()
    fail(play)
    cause = play.log.head().seq
    [raised] = Monitor(play.log, [RepeatedFailure]).catch_up()
    entry = play.log.entry(raised.seq)
    assert entry.kind == "flag.raised"
    assert (entry.header.actor, entry.header.cause, raised.cause) == ("monitor", cause, cause)
    assert entry.body["rule"] == "repeated-failure"
    assert raised.finding.flag in play.log.state()["flags"]
    assert verify(play.log).ok


def test_nothing_is_written_twice_by_a_monitor_that_is_started_again() -> None:
    play = Play()
    fail(play)
    for _ in range(3):
        Monitor(play.log, [RepeatedFailure]).catch_up()
    fail(play)
    Monitor(play.log, [RepeatedFailure]).catch_up()
    assert len(play.raised()) == 1


def test_a_flag_that_somebody_cleared_does_not_come_back_for_the_same_cause() -> None:
    play = Play()
    fail(play)
    [raised] = Monitor(play.log, [RepeatedFailure]).catch_up()
    play.add(ev.FlagCleared(flag=raised.finding.flag, why="known"), actor="user")
    assert Monitor(play.log, [RepeatedFailure]).catch_up() == []
    assert play.log.state()["flags"] == {}


def test_a_clearing_that_is_found_again_does_not_take_down_a_newer_flag() -> None:
    play = Play()
    monitor = Monitor(play.log, [RepeatedFailure])
    fail(play)
    [raised] = monitor.catch_up()
    play.add(ev.FlagCleared(flag=raised.finding.flag, why="known"), actor="user")
    play.call()  # would clear it, but it is down already
    assert monitor.catch_up() == []
    fail(play)
    assert len(monitor.catch_up()) == 1
    assert Monitor(play.log, [RepeatedFailure]).catch_up() == []
    assert raised.finding.flag in play.log.state()["flags"]


def test_a_rule_pauses_only_when_its_monitor_lets_it() -> None:
    for pause, status in ((False, "open"), ((), "open"), (("loop",), "open"), (("repeated-failure",), "paused")):
        play = Play()
        fail(play)
        [raised] = Monitor(play.log, [RepeatedFailure], pause=pause).catch_up()
        assert play.log.head().status == status
        assert raised.has_paused == (status == "paused")


def test_pausing_stops_the_next_call_and_lets_open_ones_end() -> None:
    play = Play()
    running = play.request("slow")
    fail(play)
    Monitor(play.log, [RepeatedFailure], pause=True).catch_up()
    with pytest.raises(NotAllowedError) as refused:
        play.request("search")
    assert refused.value.kind == "session-paused"
    play.add(ev.ActionSucceeded(action=running))
    paused = next(e for e in play.log.entries() if e.kind == "session.paused")
    assert "search failed 3 times" in paused.body["why"]


def test_the_flag_is_written_where_a_pause_is_not_possible() -> None:
    play = Play()
    fail(play)
    play.add(ev.SessionPaused())
    [raised] = Monitor(play.log, [RepeatedFailure], pause=True).catch_up()
    assert not raised.has_paused
    closed = Play()
    fail(closed)
    closed.add(ev.SessionClosed())
    assert len(Monitor(closed.log, [RepeatedFailure], pause=True).catch_up()) == 1


def test_nothing_is_paused_for_what_is_over_or_was_seen() -> None:
    recovered, seen = Play(), Play()
    fail(recovered)
    recovered.call()
    fail(seen)
    seen.add(ev.SessionPaused(), actor="user")
    seen.add(ev.SessionResumed(why="I know"), actor="user")
    asked_on = Play()
    fail(asked_on)
    asked_on.turn("never mind, go on")
    for play in (recovered, seen, asked_on):
        raised = Monitor(play.log, [RepeatedFailure], pause=True).catch_up()
        assert not any(each.has_paused for each in raised)
        assert len(play.raised()) >= 1
        assert play.log.head().status != "paused"


def test_a_budget_that_was_raised_meanwhile_pauses_nothing() -> None:
    play = Play(limits={"tokens": 10})
    play.spend(tokens=20)
    play.add(ev.BudgetSet(limits={"tokens": 100}), actor="user")
    assert [r.has_paused for r in Monitor(play.log, [BudgetRule], pause=True).catch_up()] == [False, False]


def test_a_reached_budget_pauses_by_default_and_says_how_to_go_on() -> None:
    play = Play(limits={"usd_micros": 5_000_000})
    play.spend(usd_micros=5_020_000)
    [raised] = Monitor(play.log, [BudgetRule]).catch_up()
    assert raised.has_paused
    reached = [e for e in play.log.entries() if e.kind == "budget.reached"]
    assert [e.body["limit"] for e in reached] == ["usd_micros"]
    why = next(e.body["why"] for e in play.log.entries() if e.kind == "session.paused")
    assert f"wakelog budget {play.log.id} --usd 10.04 && wakelog resume {play.log.id}" in why


def test_without_writes_it_only_looks() -> None:
    play = Play(limits={"tokens": 1})
    fail(play)
    play.spend(tokens=5)
    head = play.log.head()
    found = Monitor(play.log, [RepeatedFailure, BudgetRule], pause=True, writes=False).catch_up()
    assert [raised.rule for raised in found] == ["repeated-failure", "budget"]
    assert play.log.head() == head


# Forks, and what was removed


def test_a_fork_is_judged_by_its_own_events_with_its_parents_in_mind() -> None:
    play = Play()
    fail(play, 3)
    child = play.log.fork()
    assert Monitor(child, [RepeatedFailure(times=3)]).catch_up() == []
    action = "again"
    child.append(ev.ActionRequested(action=action, tool="search", effect="read", input="same"))
    child.append(ev.ActionFailed(action=action, error=ev.Failure("io")))
    assert len(Monitor(child, [RepeatedFailure(times=4)]).catch_up()) == 1
    assert [e for e in play.log.entries() if e.kind == "flag.raised"] == []


def test_a_pruned_beginning_is_passed_over_and_the_state_after_it_is_known() -> None:
    play = Play(limits={"tokens": 100})
    fail(play, 2)
    play.spend(tokens=70)
    prune(play.log, play.log.head().seq)
    play.spend(tokens=30)
    fail(play, 2)
    monitor = Monitor(Log(play.log.engine, play.log.id, clock=play.clock), [RepeatedFailure, BudgetRule])
    assert [raised.finding.flag for raised in monitor.catch_up()] == ["budget:tokens"]
    assert monitor.seq <= play.log.head().seq


def test_erasing_under_a_running_monitor_does_not_confuse_it() -> None:
    play = Play()
    fail(play, 2)
    secret = play.add(ev.FactRecorded(key="k", value="secret"))
    monitor = Monitor(play.log, [RepeatedFailure])
    monitor.catch_up()
    erase(play.log, [secret])
    fail(play, 1)
    assert len(monitor.catch_up()) == 1
    assert "secret" not in repr(monitor._seen.state)


def test_judging_from_a_place_knows_what_came_before_it() -> None:
    play = Play()
    fail(play, 2)
    place = play.log.head().seq
    fail(play, 1)
    assert len(Monitor(play.log, [RepeatedFailure], after=place).catch_up()) == 1
    assert Monitor(play.log, [RepeatedFailure], after=play.log.head().seq).catch_up() == []


# Several at once


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_two_monitors_at_the_same_time_raise_one_flag(kind: str, tmp_path: Path) -> None:
    engine = MemoryEngine() if kind == "memory" else SqliteEngine(tmp_path / "log.db")
    play = Play(engine)
    for number in range(8):
        for _ in range(3):
            play.call(given=number, error="no")
    monitors = [Monitor(Log(engine, play.log.id), [RepeatedFailure, Loop]) for _ in range(4)]
    barrier = threading.Barrier(len(monitors))
    raised: list[int] = []

    def work(monitor: Monitor) -> None:
        barrier.wait()
        raised.append(len(monitor.catch_up()))

    threads = [threading.Thread(target=work, args=(monitor,)) for monitor in monitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(play.raised()) == len(set(play.raised())) == 8
    engine.close()


def test_a_finding_is_not_lost_when_the_store_fails_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    fail(play)
    monitor = Monitor(play.log, [RepeatedFailure])
    with monkeypatch.context() as patched:

        def away(*_: object, **__: object) -> None:
            raise UnavailableError("the disk is busy")

        patched.setattr(play.log, "append", away)
        with pytest.raises(UnavailableError):
            monitor.catch_up()
    assert len(monitor.catch_up()) == 1


# Rules that fail


def test_a_rule_that_fails_is_retired_and_that_is_flagged_while_the_others_go_on() -> None:
    def broken(entry: object, seen: SessionView) -> RuleFinding | None:
        raise KeyError("oops")

    play = Play()
    fail(play)
    monitor = Monitor(play.log, [broken, RepeatedFailure])
    flags = [raised.finding.flag for raised in monitor.catch_up()]
    assert flags[0] == "broken-rule:broken"
    assert flags[1].startswith("repeated-failure:")
    assert "KeyError" in play.log.state()["flags"]["broken-rule:broken"]["message"]
    fail(play)
    assert monitor.catch_up() == []


NOT_A_TEXT = RuleFinding("x", message=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["a text", 7, [RuleFinding("x"), "y"], NOT_A_TEXT, RuleFinding("\ud800")])
def test_a_rule_that_returns_something_else_is_retired_as_well(answer: object) -> None:
    play = Play()
    monitor = Monitor(play.log, [lambda entry, seen: answer])  # type: ignore[list-item, return-value]
    [raised] = monitor.catch_up()
    assert raised.finding.flag.startswith("broken-rule:")
    assert monitor.catch_up() == []
