"""Pruning and deleting: bodies go, headers and the state at the point stay; then all of it goes."""

from pathlib import Path

import pytest

from tests.log.conftest import NewLog
from tests.residue import residue
from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.testing.builders import fact, message

BIG = "larger than what stays in a body " * 40


def _facts(n: int) -> list[ev.Event]:
    return [fact(f"k{i}", i) for i in range(2, n + 1)]


def test_the_state_at_the_point_and_after_it_is_what_it_was(new_log: NewLog) -> None:
    log = new_log(*_facts(10))
    states = {at: log.state(at) for at in range(5, 11)}
    hashes = [e.hash for e in log.entries()]
    prune(log, 5)
    for each in (log, Log(log.engine, log.id)):
        assert {at: each.state(at) for at in range(5, 11)} == states
        assert [e.hash for e in each.entries(upto=10)] == hashes
    assert [e.is_intact for e in log.entries()] == [False] * 5 + [True] * 6
    report = verify(log)
    assert report.ok, report
    assert report.scope["pruned"] == 5
    log.append(fact("more"))
    log.engine.drop_snapshots(log.id)
    assert Log(log.engine, log.id).state() == log.state()


def test_states_before_the_point_are_told_to_be_pruned(new_log: NewLog) -> None:
    log = new_log(*_facts(10))
    prune(log, 5)
    for at in (1, 4):
        with pytest.raises(NotFoundError) as gone:
            log.state(at)
        assert gone.value.kind == "pruned"
        assert "5" in gone.value.hint
        with pytest.raises(NotFoundError):
            log.rewind(at)
        with pytest.raises(NotFoundError):
            log.fork(at)


def test_nothing_of_what_was_pruned_and_overwritten_stays_in_the_files(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", "GONE-MARKER"), message(f"GONE-MARKER {BIG}"), fact("a", "new"), fact("b", "kept"))
    prune(log, 4)
    assert log.state()["facts"]["a"]["value"] == "new"
    if isinstance(log.engine, SqliteEngine):
        assert residue(tmp_path, "GONE-MARKER") == []
    assert all(b"GONE-MARKER" not in e.record.body for e in log.entries())


def test_a_commit_can_be_pruned_in_the_middle(log: Log) -> None:
    log.append(fact("a"), message(BIG), fact("b"), message(BIG + "2"))
    state = log.state()
    prune(log, 3)
    assert log.state() == state
    assert [e.is_intact for e in log.entries(upto=5)] == [False, False, False, True, True]
    entry = log.entry(5)
    assert log.value(entry, entry.body["content"]) == BIG + "2"
    assert verify(log).ok


def test_payloads_that_later_events_mention_survive(new_log: NewLog) -> None:
    log = new_log(message(BIG), message("gone " + BIG), message(BIG))
    prune(log, 3)
    entry = log.entry(4)
    assert log.value(entry, entry.body["content"]) == BIG
    stored = [content for c in log.engine.read(log.id, upto=4, payloads=True) for _, content in c.payloads]
    assert stored == [BIG.encode()]
    assert verify(log).ok


@pytest.mark.parametrize("objects", [1, 2])
def test_content_that_was_pruned_is_not_mentioned_but_stored_again(
    engine: Engine, new_log: NewLog, objects: int
) -> None:
    log = new_log(message(BIG), fact("a"))
    other = log if objects == 1 else Log(engine, log.id)
    other.append(message(BIG))  # so that it knows where the content is
    prune(log, 4)
    other.append(message(BIG))
    entry = other.entry(6)
    assert other.value(entry, entry.body["content"]) == BIG
    assert verify(log).ok


def test_pruning_again_goes_on_from_the_last_base(new_log: NewLog) -> None:
    log = new_log(*_facts(6))
    prune(log, 3)  # 7
    log.append(*_facts(4))  # 8, 9, 10
    state = log.state()
    prune(log, 9)  # 11
    assert log.state(10) == state
    with pytest.raises(NotFoundError):
        log.state(8)
    report = verify(log)
    assert report.ok, report
    assert report.scope["pruned"] == 9


def test_later_events_can_still_be_erased_and_rewound(new_log: NewLog) -> None:
    log = new_log(*_facts(6))
    prune(log, 3)
    log.append(fact("a", "SECRET-MARKER"), fact("b"))
    erase(log, [8])
    log.rewind(4)
    assert "a" not in log.state()["facts"]
    log.rewind(9)
    assert log.state()["facts"]["a"]["value"] == {"$erased": 8}
    assert verify(log).ok


def test_what_a_living_fork_shares_is_not_pruned(new_log: NewLog) -> None:
    log = new_log(*_facts(8))
    fork = log.fork(4)
    state = fork.state()
    for upto in (5, 8):
        with pytest.raises(NotAllowedError) as refused:
            prune(log, upto)
        assert refused.value.kind == "live-fork"
        assert refused.value.hint
    prune(log, 4)
    for each in (fork, Log(fork.engine, fork.id)):
        assert each.state() == state
        assert verify(each).ok
    delete(fork)
    prune(log, 8)
    assert verify(log).ok


def test_what_a_fork_of_a_fork_shares_is_not_pruned(new_log: NewLog) -> None:
    log = new_log(*_facts(10))
    child = log.fork(10)
    grandchild = child.fork(5)
    state = grandchild.state()
    with pytest.raises(NotAllowedError):
        prune(log, 8)
    delete(child)
    with pytest.raises(NotAllowedError):
        prune(log, 8)
    prune(log, 5)
    assert Log(log.engine, grandchild.id).state() == state
    assert verify(grandchild).ok


def test_forks_of_a_pruned_session_read_through_its_base(new_log: NewLog) -> None:
    log = new_log(*_facts(8))
    early = log.fork(7)
    prune(log, 5)
    late = log.fork(6)
    for fork in (early, late, early.fork()):
        fork.append(fact("own"))
        assert set(_keys(fork)) >= {"k2", "k5", "k6", "own"}
        assert verify(fork).ok
        fork.rewind(5)
        assert "own" not in _keys(fork)


def _keys(log: Log) -> set[str]:
    return set(Log(log.engine, log.id).state()["facts"])


def test_a_fork_prunes_only_what_is_its_own(new_log: NewLog) -> None:
    log = new_log(*_facts(6))
    fork = log.fork(4)
    fork.append(*_facts(4))
    with pytest.raises(NotFoundError):
        prune(fork, 4)
    state = fork.state()
    prune(fork, 7)
    assert fork.state(8) == state
    assert verify(fork).ok
    assert all(e.is_intact for e in log.entries())
    with pytest.raises(NotFoundError):
        fork.state(6)
    assert fork.state(4) == log.state(4)


@pytest.mark.parametrize("upto", [0, -1, 5, 99])
def test_only_events_that_are_there_can_be_pruned(new_log: NewLog, upto: int) -> None:
    log = new_log(*_facts(4))
    with pytest.raises(NotFoundError):
        prune(log, upto)
    assert log.head().seq == 4


def test_whoever_holds_the_state_is_not_disturbed(engine: Engine, new_log: NewLog) -> None:
    log = new_log(*_facts(6))
    other = Log(engine, log.id)
    other.state()
    prune(log, 5)
    other.append(fact("more"))
    assert other.state() == log.state()
    assert verify(other).ok


def test_an_anchor_holds_after_erasing_and_pruning(new_log: NewLog) -> None:
    log = new_log(*_facts(8))
    anchor = log.anchor()
    erase(log, [7])
    prune(log, 5)
    report = verify(log, anchor)
    assert report.ok
    assert report.anchored


def test_a_deleted_session_is_gone_for_every_log_object(engine: Engine, new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", "GONE-MARKER"), message(f"GONE-MARKER {BIG}"))
    other = Log(engine, log.id)
    other.state()
    head = delete(log, why="asked for")
    assert (head.status, head.seq) == ("deleted", 4)
    for each in (log, other):
        with pytest.raises((NotAllowedError, NotFoundError)):
            each.append(fact("b"))
    with pytest.raises(NotFoundError):
        Log(engine, log.id)
    if isinstance(engine, SqliteEngine):
        assert residue(tmp_path, "GONE-MARKER") == []


def test_deleting_waits_for_no_writer(engine: Engine, new_log: NewLog) -> None:
    log = new_log(fact("a"))
    log.state()
    Log(engine, log.id).append(fact("b"))  # the head moved on unseen
    assert delete(log).seq == 4
