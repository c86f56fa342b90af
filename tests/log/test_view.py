"""Rewinding: the view moves, history stays, and some things never come back."""

import random

import pytest

from tests.log.conftest import NewLog
from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.index import Index
from wakelog.log import Log
from wakelog.log.removal import prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS
from wakelog.testing.builders import fact


def test_without_a_rewind_everything_is_in_view(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    assert log.view() == [(1, 3)]
    assert log.view(2) == [(1, 2)]


def test_a_rewind_takes_what_came_after_out_of_view(new_log: NewLog) -> None:
    log = new_log(fact("a", 1), fact("a", 2), fact("b"))
    log.rewind(2)
    assert log.state()["facts"] == {"a": {"value": 1, "seq": 2}}
    assert log.view() == [(1, 2), (5, 5)]
    log.append(fact("c"))
    assert log.view() == [(1, 2), (5, 6)]
    assert log.view(4) == [(1, 4)]
    assert [e.seq for e in log.entries()] == [1, 2, 3, 4, 5, 6]


def test_a_rewind_can_be_undone_by_a_rewind(new_log: NewLog) -> None:
    log = new_log(fact("a", 1), fact("b", 2))
    before, hash_before = log.state(), log.state_hash()
    log.rewind(1)
    assert log.state_hash() != hash_before
    log.rewind(3, mode="undo")
    assert {part: log.state()[part] for part in REWOUND_PARTS} == {part: before[part] for part in REWOUND_PARTS}
    assert log.state_hash() == hash_before
    assert log.view() == [(1, 3), (5, 5)]


def test_rewinds_below_above_and_between_rewinds_show_the_right_ranges(new_log: NewLog) -> None:
    log = new_log(*(fact("k", i) for i in range(2, 7)))  # 1..6
    log.rewind(4)  # 7
    log.append(fact("k", 8))  # 8
    assert log.view() == [(1, 4), (7, 8)]
    log.rewind(8)  # 9: to a point after a rewind, which stays in effect
    assert log.view() == [(1, 4), (7, 8), (9, 9)]
    log.rewind(6)  # 10: to a point before the first rewind, out of view at present
    assert log.view() == [(1, 6), (10, 10)]
    log.rewind(2)  # 11
    log.append(fact("k", 12))  # 12
    assert log.view() == [(1, 2), (11, 12)]
    assert log.state(10)["facts"]["k"]["value"] == 6
    assert verify(log).ok


def test_the_state_is_always_that_of_the_events_in_view() -> None:
    """Random rewinds: the restorable state equals that of a session that only ever had what is in view."""
    from wakelog.engines.memory import MemoryEngine
    from wakelog.testing.builders import new_session

    for seed in range(20):
        rng = random.Random(seed)
        log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened())
        for step in range(25):
            if rng.random() < 0.3:
                log.rewind(rng.randint(1, log.head().seq))
            else:
                log.append(fact(f"k{rng.randint(0, 4)}", step))
        visible = [e for first, last in log.view() for e in log.entries(after=first - 1, upto=last)]
        facts = {e.body["key"]: {"value": e.body["value"], "seq": e.seq} for e in visible if e.kind == "fact.recorded"}
        assert log.state()["facts"] == facts, f"seed {seed}"


def test_money_effects_and_flags_are_not_brought_back(log: Log) -> None:
    log.append(ev.TurnStarted())
    log.append(
        ev.ActionRequested(action="sent", tool="mail"),
        ev.BudgetSpent(cost=ev.Cost(usd_micros=7)),
        ev.FlagRaised(flag="f"),
        ev.DeadEndNoted(tried="t"),
        ev.CheckpointNamed(name="c", at=1),
        ev.GoalSet(goal="g"),
    )
    before = log.state()
    log.rewind(1)
    after = log.state()
    for part in ("status", "turn", "pending_actions", "budget", "flags", "dead_ends", "checkpoints"):
        assert after[part] == before[part], part
    assert after["goal"] is None
    assert after["tools_used"] == {}


@pytest.mark.parametrize("to", [0, -1, 4, 99])
def test_one_cannot_go_back_to_where_nobody_was(new_log: NewLog, to: int) -> None:
    log = new_log(fact("a"), fact("b"))
    with pytest.raises(NotFoundError):
        log.rewind(to)
    assert log.head().seq == 3


def test_a_closed_session_is_not_rewound(log: Log) -> None:
    log.append(ev.SessionClosed())
    with pytest.raises(NotAllowedError):
        log.rewind(1)


def test_a_rewind_fits_the_state_it_meets_and_not_the_one_it_was_planned_on(new_log: NewLog) -> None:
    log = new_log(fact("a", 1), fact("a", 2))
    other = Log(log.engine, log.id)
    other.state()
    log.append(fact("b"), fact("c"))
    other.rewind(2)
    assert log.state()["facts"] == {"a": {"value": 1, "seq": 2}}
    assert verify(log).ok


def test_the_view_can_be_told_after_the_rewind_was_pruned(new_log: NewLog) -> None:
    log = new_log(fact("a", 1), fact("a", 2))
    log.rewind(2)  # 4
    log.append(fact("b"))  # 5
    prune(log, 5)  # 6
    assert log.view()[-1][1] == 6
    assert log.view()[-1][0] <= 5


def test_a_pruned_rewind_into_the_parent_still_shows_what_was_inherited(new_log: NewLog) -> None:
    parent = new_log(*(fact("k", i) for i in range(2, 7)))  # 1..6
    fork = parent.fork(6)  # 7
    fork.rewind(3)  # 8: into the parent
    fork.append(fact("k", 9))  # 9
    fork.rewind(5)  # 10: into the parent, elsewhere
    fork.rewind(9)  # 11: under the first
    fork.append(fact("k", 12))  # 12
    before = fork.view()
    assert before == [(1, 3), (8, 9), (11, 12)]
    prune(fork, 10)  # the first two rewinds are gone
    assert fork.view(12) == before
    assert fork.view() == [(1, 3), (8, 9), (11, 13)]
    prune(fork, 13)  # and so is the third
    assert fork.view() == [(1, 3), (8, 9), (11, 14)]
    fork.rewind(14)
    assert Log(fork.engine, fork.id).view() == [(1, 3), (8, 9), (11, 14), (15, 15)]
    with Index(fork.engine, None) as index:
        shown = [event.seq for event in index.events(fork.id, kinds=["fact.recorded"], limit=50)]
        assert [seq for seq in shown if seq < 7] == [2, 3]
    report = verify(fork)
    assert report.ok, report
