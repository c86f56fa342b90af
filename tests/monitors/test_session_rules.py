"""Rules about the session: budgets, stalls, leases, and evictions."""

from __future__ import annotations

import pytest

from tests.monitors.play import SECOND, Play
from wakelog.model import events as ev
from wakelog.monitors.monitor import Monitor
from wakelog.monitors.session_rules import BudgetRule, LeaseTakeover, PendingEvicted, Stall

# Budget


def test_a_budget_warns_at_eighty_percent_and_pauses_at_a_hundred() -> None:
    play = Play(limits={"usd_micros": 1_000_000})
    play.spend(usd_micros=799_999)
    assert play.flags(BudgetRule) == []
    play.spend(usd_micros=1)
    play.spend(usd_micros=100_000)
    play.spend(usd_micros=100_000)
    play.spend(usd_micros=500_000)
    near, reached = play.found(BudgetRule)
    assert (near.flag, near.severity, near.pause) == ("budget:usd", "warning", False)
    assert near.message == "nearly reached: $0.80 of $1.00 (80 %)"
    assert (reached.flag, reached.severity, reached.pause) == ("budget:usd", "error", True)
    assert reached.message == "reached: $1.00 of $1.00 (100 %)"


def test_every_unit_has_its_own_flag_and_one_event_may_reach_several() -> None:
    play = Play(limits={"tokens": 100, "duration_us": 10 * SECOND})
    play.spend(tokens=100, seconds=10)
    assert play.flags(BudgetRule) == ["budget:tokens", "budget:seconds"]


def test_without_a_limit_nothing_is_reached() -> None:
    play = Play()
    play.spend(usd_micros=10**12)
    assert play.flags(BudgetRule) == []


def test_raising_or_lifting_a_limit_clears_the_flag() -> None:
    play = Play(limits={"tokens": 100})
    play.spend(tokens=150)
    play.add(ev.BudgetSet(limits={"tokens": 160}), actor="user")
    play.add(ev.BudgetSet(limits={"tokens": 1000}), actor="user")
    play.spend(tokens=850)
    play.add(ev.BudgetSet(limits={"tokens": None}), actor="user")
    assert play.flags(BudgetRule) == [
        "budget:tokens",
        "budget:tokens",
        "-budget:tokens",
        "budget:tokens",
        "-budget:tokens",
    ]
    assert [f.severity for f in play.found(BudgetRule)][:2] == ["error", "warning"]


def test_a_fork_of_a_session_that_had_nearly_spent_its_budget_is_told_so() -> None:
    play = Play(limits={"tokens": 100})
    play.spend(tokens=85)
    early = play.log.fork()
    assert [r.finding.flag for r in Monitor(early, [BudgetRule]).catch_up()] == ["budget:tokens"]
    Monitor(play.log, [BudgetRule]).catch_up()
    assert Monitor(play.log.fork(), [BudgetRule]).catch_up() == [], "it has its parent's flag"


# Stall


def stalled(play: Play, seconds: float, rule: Stall | None = None) -> list[str]:
    """What `tick` finds after a silence."""
    monitor = Monitor(play.log, [rule or Stall()], writes=False)
    raised = monitor.tick(play.log.head().at + int(seconds * SECOND))
    return [each.finding.message for each in raised]


def test_silence_while_a_call_is_open_is_a_stall() -> None:
    play = Play()
    play.turn()
    play.request("deploy", "staging", effect="external")
    assert stalled(play, 299) == []
    [message] = stalled(play, 301)
    assert "5 minutes" in message
    assert "deploy" in message


def test_silence_in_an_open_turn_is_a_stall() -> None:
    play = Play()
    play.turn()
    [message] = stalled(play, 7300)
    assert "2 hours" in message
    assert "turn @1 is open" in message


def test_silence_at_rest_or_while_somebody_is_asked_is_none() -> None:
    play = Play()
    play.turn()
    play.end()
    assert stalled(play, 10**6) == []
    play.turn()
    play.add(ev.InputRequested(request="q", prompt="go on?"))
    assert stalled(play, 10**6) == []
    play.add(ev.InputAnswered(request="q", answer="yes"))
    assert len(stalled(play, 10**6)) == 1
    play.add(ev.SessionPaused())
    assert stalled(play, 10**6) == []


def test_a_session_that_is_slow_by_habit_gets_more_time() -> None:
    play = Play()
    play.turn()
    for _ in range(20):
        play.call(took_s=60)
    play.request("search", "more")
    assert stalled(play, 500) == []
    assert len(stalled(play, 700)) == 1


def test_a_tool_that_once_took_long_may_take_as_long_again() -> None:
    play = Play()
    play.turn()
    play.call("build", "all", took_s=1800)
    for _ in range(64):
        play.call()
    play.request("build", "all")
    assert stalled(play, 3000) == []
    assert len(stalled(play, 3700)) == 1


def test_a_living_writer_gets_six_times_as_long() -> None:
    play = Play()
    play.log.take_lease("worker-1", ttl_s=10**6)
    play.turn()
    assert stalled(play, 1799) == []
    assert len(stalled(play, 1801)) == 1


def test_a_stall_is_told_once_and_cleared_by_the_next_sign_of_work() -> None:
    play = Play()
    play.turn()
    play.request("deploy")
    monitor = Monitor(play.log, [Stall()])
    play.wait(400)
    assert [r.finding.flag for r in monitor.tick(play.now)] == ["stall"]
    assert monitor.tick(play.now + 10**12) == []
    play.add(ev.NoteAdded(text="looking at it"), actor="user")
    assert monitor.catch_up() == []
    assert "stall" in play.log.state()["flags"]
    play.add(ev.FactRecorded(key="k", value=1))
    assert [r.finding.is_over for r in monitor.catch_up()] == [True]
    assert play.log.state()["flags"] == {}


def test_a_monitor_that_was_started_anew_clears_the_stall_too() -> None:
    play = Play()
    play.turn()
    play.wait(400)
    Monitor(play.log, [Stall()]).tick(play.now)
    play.add(ev.FactRecorded(key="k", value=1))
    Monitor(play.log, [Stall()]).catch_up()
    assert play.log.state()["flags"] == {}


# Leases


def test_taking_the_lease_of_a_writer_who_did_not_release_it_is_flagged() -> None:
    play = Play()
    play.log.take_lease("worker-1")
    play.log.take_lease("worker-2", force=True)
    [found] = play.found(LeaseTakeover)
    assert found.flag == "lease-takeover"
    assert "worker-2 took over from worker-1" in found.message


@pytest.mark.parametrize("second", ["worker-1", "worker-2"])
def test_a_lease_that_was_released_or_is_renewed_is_no_takeover(second: str) -> None:
    play = Play()
    epoch = play.log.take_lease("worker-1")
    if second != "worker-1":
        play.log.release_lease(epoch)
    play.log.take_lease(second, force=True)
    assert play.flags(LeaseTakeover) == []


# Evicted while pending


def test_evicting_what_an_open_call_is_about_is_flagged() -> None:
    for about in ("request", "message"):
        play = Play()
        action = play.request("deploy", "staging", effect="external")
        handle = play.log.head().seq - 1
        if about == "message":
            handle = play.add(ev.MessageAdded(role="assistant", content="deploying", action=action))
        play.add(ev.ContextEvicted(key="old", handle=handle), actor="runtime")
        [found] = play.found(PendingEvicted)
        assert found.flag == "pending-evicted:old"
        assert "deploy is pending" in found.message


def test_evicting_a_question_that_waits_is_flagged() -> None:
    play = Play()
    asked = play.add(ev.InputRequested(request="q", prompt="go on?"))
    play.add(ev.ContextEvicted(key="old", handle=asked), actor="runtime")
    assert play.flags(PendingEvicted) == ["pending-evicted:old"]


def test_evicting_what_is_settled_is_not_flagged() -> None:
    play = Play()
    outcome = play.call()
    play.request("deploy")
    for number, handle in enumerate((outcome, outcome - 2, 1)):
        play.add(ev.ContextEvicted(key=f"k{number}", handle=handle), actor="runtime")
    assert play.flags(PendingEvicted) == []


@pytest.mark.parametrize("how", ["restored", "settled"])
def test_it_is_over_when_it_is_back_or_settled(how: str) -> None:
    play = Play()
    action = play.request("deploy")
    play.add(ev.ContextEvicted(key="old", handle=play.log.head().seq), actor="runtime")
    play.add(ev.FactRecorded(key="k", value=1))
    assert play.flags(PendingEvicted) == ["pending-evicted:old"]
    play.add(ev.ContextRestored(key="old") if how == "restored" else ev.ActionSucceeded(action=action))
    assert play.flags(PendingEvicted) == ["pending-evicted:old", "-pending-evicted:old"]
