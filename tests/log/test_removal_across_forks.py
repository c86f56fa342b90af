"""Erasing and pruning where histories are shared: every fork that has the content, and nothing else."""

import io
from collections.abc import Iterator

import pytest

from wakelog import NotAllowedError, events
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model.ids import root_id

SECRET = "hunter-2-is-the-word"


@pytest.fixture(params=["memory", "sqlite"])
def engine(request, tmp_path) -> Iterator[Engine]:
    made = MemoryEngine() if request.param == "memory" else SqliteEngine(tmp_path / "log.db")
    yield made
    made.close()


@pytest.fixture
def log(engine: Engine) -> Log:
    made = Log.create(engine, root_id(1, b"0123456789"), events.SessionOpened())
    made.append(events.FactRecorded(key="a", value=1))
    made.append(events.FactRecorded(key="secret", value=SECRET))  # 3
    for n in range(4, 9):
        made.append(events.FactRecorded(key="n", value=n))
    return made


def fresh(log: Log) -> Log:
    return Log(log.engine, log.id)


def fact(log: Log, key: str):
    return fresh(log).state()["facts"][key]["value"]


def travelled(log: Log) -> Log:
    data = io.BytesIO()
    export_bundle(fresh(log), data, beyond=True)
    data.seek(0)
    return import_bundle(MemoryEngine(), data)


def test_a_forks_own_event_of_the_same_number_is_left_alone(log: Log) -> None:
    fork = log.fork(5)
    fork.append(events.FactRecorded(key="x", value="mine"), events.FactRecorded(key="own", value="eight"))
    assert fork.entry(8).body["key"] == "own"
    erase(log, [3, 8])
    assert fact(fork, "own") == "eight"
    assert fact(fork, "secret") == {"$erased": 3}
    assert verify(fresh(fork)).ok
    assert verify(fresh(log)).ok


def test_a_fork_below_a_deleted_fork_is_reached(log: Log) -> None:
    child = log.fork(5)
    grandchild = child.fork()
    delete(child)
    erase(log, [3])
    assert fact(grandchild, "secret") == {"$erased": 3}
    assert verify(fresh(grandchild)).ok


def test_a_deleted_fork_of_which_only_the_tombstone_is_left_does_not_hinder(log: Log) -> None:
    fork = log.fork(5)
    fork.append(events.FactRecorded(key="x", value=1))
    delete(fork)
    erase(log, [3])
    prune(fresh(log), 6)
    assert fact(log, "secret") == {"$erased": 3}
    assert verify(fresh(log)).ok


def test_events_of_a_deleted_parent_can_be_erased_from_its_fork(log: Log) -> None:
    fork = log.fork(5)
    delete(log)
    erase(fresh(fork), [3])
    assert fact(fork, "secret") == {"$erased": 3}
    assert verify(fresh(fork)).ok


def test_a_fork_made_after_the_fact_at_a_point_before_the_erasure_verifies_and_travels(log: Log) -> None:
    erase(log, [3])
    fork = fresh(log).fork(5)
    assert verify(fork).ok
    assert travelled(fork).state() == fork.state()


def test_a_fork_that_ran_on_before_the_erasure_still_verifies(log: Log) -> None:
    fork = log.fork(5)
    fork.append(events.TurnStarted())
    fork.append(events.TurnEnded())
    fork.append(events.CheckpointNamed(name="here", at=fork.head().seq))
    erase(log, [3])
    assert verify(fresh(fork)).ok
    assert travelled(fork).state() == fresh(fork).state()


def test_parent_and_fork_may_each_erase_their_own_event_of_one_number(log: Log) -> None:
    fork = log.fork(5)
    fork.append(events.FactRecorded(key="own", value="seven"))
    erase(log, [7])
    erase(fresh(fork), [7])
    assert verify(fresh(log)).ok
    assert verify(fresh(fork)).ok


def test_a_rewind_that_is_replaced_twice_counts_as_replaced_last(log: Log) -> None:
    log.append(events.FactRecorded(key="other", value="second secret"))
    at = log.head().seq
    log.append(events.FactRetracted(key="secret"), events.FactRetracted(key="other"))
    log.rewind(at)
    erase(log, [3])
    erase(fresh(log), [at])
    assert fact(log, "secret") == {"$erased": 3}
    assert fact(log, "other") == {"$erased": at}
    assert verify(fresh(log)).ok


def test_a_rewind_cannot_bring_back_what_is_erased_between_its_call_and_its_sealing(log: Log) -> None:
    log.append(events.FactRetracted(key="secret"))
    other = fresh(log)
    seen = log.state

    def read_then_be_overtaken(at=None):
        state = seen(at)
        log.state = seen  # only once
        erase(other, [3])
        return state

    log.state = read_then_be_overtaken  # type: ignore[method-assign]
    log.rewind(4)
    assert fact(log, "secret") == {"$erased": 3}
    assert all(SECRET.encode() not in e.record.body for e in fresh(log).entries())


def test_a_prune_is_refused_below_any_live_fork_at_any_depth(log: Log) -> None:
    child = log.fork(6)
    child.append(events.FactRecorded(key="x", value=1))
    grandchild = child.fork(4)
    with pytest.raises(NotAllowedError) as caught:
        prune(log, 5)
    assert caught.value.kind == "live-fork"
    prune(log, 4)
    assert verify(fresh(grandchild)).ok
    assert fact(grandchild, "n") == 4


def test_a_fork_that_leaves_below_its_parents_start_travels(log: Log) -> None:
    child = log.fork(6)
    grandchild = child.fork(4)
    grandchild.append(events.FactRecorded(key="x", value=1))
    assert travelled(grandchild).state() == grandchild.state()


def test_a_history_with_two_prunes_folds_and_verifies(log: Log) -> None:
    fork = log.fork(6)
    for n in range(3):
        fork.append(events.FactRecorded(key="m", value=n))
    prune(log, 4)
    prune(fresh(fork), 8)
    fork.engine.drop_snapshots(log.id)
    fork.engine.drop_snapshots(fork.id)
    assert fact(fork, "n") == 6
    assert fact(fork, "m") == 2
    assert verify(fresh(fork)).ok
    assert travelled(fork).state() == fresh(fork).state()


def test_content_pruned_by_another_process_is_stored_again_and_not_mentioned(log: Log) -> None:
    long = "x" * 2000
    log.append(events.MessageAdded(role="user", content=long))
    prune(fresh(log), log.head().seq)
    log.append(events.MessageAdded(role="user", content=long))
    last = fresh(log).entry(log.head().seq)
    assert fresh(log).value(last, last.body["content"]) == long
    assert verify(fresh(log)).ok


def test_an_event_that_mentions_an_erased_payload_is_erased_with_it(log: Log) -> None:
    long = SECRET + "x" * 2000
    log.append(events.MessageAdded(role="user", content=long))
    first = log.head().seq
    log.append(events.MessageAdded(role="assistant", content=long))
    assert log.entry(first + 1).body["content"]["at"] == first
    erase(log, [first])
    assert "content" not in fresh(log).entry(first + 1).body
    assert verify(fresh(log)).ok


def test_no_state_hash_is_left_to_test_guesses_against(log: Log) -> None:
    log.append(events.CheckpointNamed(name="here", at=log.head().seq))
    erase(log, [3])
    assert all("state_hash" not in e.body for e in fresh(log).entries())
    assert fresh(log).state()["checkpoints"]["here"]


def test_the_view_can_be_told_although_the_rewind_was_pruned(log: Log) -> None:
    log.rewind(4)
    log.append(events.FactRecorded(key="later", value=1))
    prune(log, log.head().seq)
    assert fresh(log).view()[-1][1] == fresh(log).head().seq
