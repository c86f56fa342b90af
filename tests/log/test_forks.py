"""Forks: shared history, own future, at any depth."""

import pytest

from tests.log.conftest import NewLog
from wakelog.engine import Engine
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.log import DEEP_FORK
from wakelog.log.removal import delete
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, root_of
from wakelog.testing.builders import fact, message

BIG = "larger than what stays in a body " * 40


def test_a_fork_shares_the_past_and_nothing_else(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"), fact("c"))
    fork = log.fork(2, why="try another way")
    log.append(fact("parent"))
    fork.append(fact("child"))
    assert set(fork.state()["facts"]) == {"a", "child"}
    assert set(log.state()["facts"]) == {"a", "b", "c", "parent"}
    assert [e.seq for e in fork.entries()] == [1, 2, 3, 4]
    assert [e.kind for e in fork.entries()][2] == "session.forked"
    assert [e.hash for e in fork.entries(upto=2)] == [e.hash for e in log.entries(upto=2)]
    assert root_of(fork.id) == root_of(log.id)
    assert verify(fork).ok
    assert verify(log).ok


def test_one_position_means_the_same_event_in_both(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    fork = log.fork(2)
    for at in (1, 2):
        assert fork.state(at) == log.state(at)
        assert fork.entry(at).hash == log.entry(at).hash
        assert fork.state_hash(at) == log.state_hash(at)


def test_a_fork_can_leave_in_the_middle_of_a_commit(log: Log) -> None:
    log.append(fact("a"), fact("b"), fact("c"))
    fork = log.fork(3)
    fork.append(fact("d"))
    assert set(fork.state()["facts"]) == {"a", "b", "d"}
    assert [e.seq for e in fork.entries(after=1, upto=5)] == [2, 3, 4, 5]
    assert verify(fork).ok


@pytest.mark.parametrize("at", [0, -1, 3, 99])
def test_a_fork_cannot_leave_where_nothing_is(new_log: NewLog, at: int) -> None:
    log = new_log(fact("a"))
    with pytest.raises(NotFoundError):
        log.fork(at)


def test_calls_open_at_the_fork_point_are_abandoned_as_inherited(log: Log) -> None:
    log.append(ev.TurnStarted(), ev.ActionRequested(action="a", tool="t"), ev.ActionRequested(action="b", tool="t"))
    log.append(ev.ActionSucceeded(action="a"), ev.InputRequested(request="q", prompt="?"))
    fork = log.fork(4)
    abandoned = [e.event for e in fork.entries(after=5)]
    assert {e.action for e in abandoned if isinstance(e, ev.ActionAbandoned) and e.inherited} == {"a", "b"}
    assert fork.state()["pending_actions"] == {}
    assert fork.state()["turn"]["status"] == "interrupted"
    assert set(log.state()["pending_actions"]) == {"b", "q"}
    assert log.fork().state()["pending_actions"] == {}


def test_a_fork_of_a_closed_session_is_open_and_has_no_lease(log: Log) -> None:
    log.take_lease("me")
    log.append(ev.SessionClosed())
    fork = log.fork()
    state = fork.state()
    assert (state["status"], state["lease"]) == ("open", {"epoch": 0, "holder": ""})
    assert fork.head().epoch == 0
    assert fork.take_lease("you") == 1
    fork.append(fact("a"), guard=1)
    assert verify(fork).ok


def test_payloads_of_the_shared_past_are_found_in_the_fork(new_log: NewLog) -> None:
    log = new_log(message(BIG), message(BIG))
    fork = log.fork().fork()
    for seq in (2, 3):
        entry = fork.entry(seq)
        assert fork.value(entry, entry.body["content"]) == BIG
    fork.append(message(BIG))
    entry = fork.entry(fork.head().seq)
    assert fork.value(entry, entry.body["content"]) == BIG
    assert verify(fork).ok


def test_a_fork_of_a_fork_may_leave_below_where_its_parent_began(new_log: NewLog) -> None:
    log = new_log(*(fact(f"a{i}") for i in range(8)))
    child = log.fork(8)
    child.append(fact("child"))
    grandchild = child.fork(3)
    grandchild.append(fact("grandchild"))
    assert set(grandchild.state()["facts"]) == {"a0", "a1", "grandchild"}
    assert [e.seq for e in grandchild.entries()] == [1, 2, 3, 4, 5]
    assert verify(grandchild).ok
    again = Log(log.engine, grandchild.id)
    assert again.state() == grandchild.state()


def test_deep_chains_of_forks_stay_whole(engine: Engine, new_log: NewLog) -> None:
    log = new_log(fact("k0", "x" * 100))
    chain = [log]
    for depth in range(1, 2 * DEEP_FORK + 4):
        chain.append(chain[-1].fork())
        chain[-1].append(fact(f"k{depth}", depth))
    last = Log(engine, chain[-1].id)
    assert len(last.state()["facts"]) == 2 * DEEP_FORK + 4
    assert [e.seq for e in last.entries()] == list(range(1, last.head().seq + 1))
    assert last.state_hash() == chain[-1].state_hash()
    assert verify(last).ok
    assert any(engine.snapshot(each.id, upto=99) for each in chain[1:]), "long ancestries start with a snapshot"
    for each in chain:
        engine.drop_snapshots(each.id)
    assert Log(engine, last.id).state() == last.state()


def test_forks_between_forks_leave_at_any_point_of_the_chain(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    one = log.fork(3)
    one.append(fact("c"))
    two = one.fork()
    two.append(fact("d"))
    for at in range(1, two.head().seq + 1):
        fork = two.fork(at)
        assert fork.state(at) == two.state(at)
        assert verify(fork).ok


def test_a_fork_goes_on_reading_after_its_parent_was_deleted(new_log: NewLog) -> None:
    log = new_log(fact("a"), message(BIG))
    fork = log.fork()
    before = fork.state()
    delete(log)
    again = Log(fork.engine, fork.id)
    assert again.state() == before
    entry = again.entry(3)
    assert again.value(entry, entry.body["content"]) == BIG
    again.append(fact("b"))
    assert verify(again).ok
    with pytest.raises(NotFoundError):
        Log(log.engine, log.id)


def test_a_rewind_in_a_fork_reaches_into_the_parents_part(new_log: NewLog) -> None:
    log = new_log(fact("a", 1), fact("a", 2), fact("a", 3))
    fork = log.fork(3)
    fork.append(fact("a", 4))
    fork.rewind(2)
    assert fork.state()["facts"]["a"]["value"] == 1
    assert fork.view() == [(1, 2), (6, 6)]
    assert log.state()["facts"]["a"]["value"] == 3
    assert verify(fork).ok


def test_forks_are_listed_by_the_time_they_were_made(new_log: NewLog) -> None:
    """Ids of forks are random, and the last write is not when a fork was made."""
    log = new_log(fact("a"))
    ids = [SessionId(f"{root_of(log.id)}.{letter * 8}") for letter in "CABD"]
    for session in ids:
        log.fork(session=session)
    Log(log.engine, ids[0], clock=log.clock).append(fact("later"))
    assert [head.session for head in log.forks()] == ids


def test_many_fork_one_session_at_once(new_log: NewLog) -> None:
    from wakelog.testing.contract.base import in_parallel

    log = new_log(fact("a"))
    forks = in_parallel(lambda i: log.fork(2 - i % 2), list(range(8)))
    assert len({f.id for f in forks}) == 8
    assert len(log.engine.children(log.id)) == 8
