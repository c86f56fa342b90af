"""Erasing and pruning around an adoption: what is gone in a fork is gone in what was adopted from it."""

import pytest

from tests.log.test_adopt import fork, fresh, messages, parent
from wakelog import ConflictError, NotAllowedError
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.state.diff import diff

__all__ = ["fork", "parent"]

SECRET = "hunter-2-is-the-word"


def test_what_was_erased_in_the_fork_is_not_brought_back_and_is_counted(parent: Log, fork: Log) -> None:
    said = fork.record(ev.MessageAdded(role="user", content=SECRET))
    fact = fork.record(ev.FactRecorded(key="secret", value=SECRET))
    erase(fork, [said, fact])
    parent.adopt(fork)
    adopted = next(e for e in parent.entries() if e.kind == "history.adopted")
    assert adopted.body["gone"] == 1
    assert parent.state()["facts"]["secret"]["value"] == {"$erased": adopted.seq}
    assert not _holds(parent, SECRET)
    assert verify(fresh(parent)).ok


def test_a_pruned_fork_gives_its_state(parent: Log, fork: Log) -> None:
    prune(fork, fork.head().seq)
    parent.adopt(fork)
    assert parent.state()["facts"]["who"]["value"] == "fork"
    assert messages(parent) == ["go"]
    assert next(e for e in parent.entries() if e.kind == "history.adopted").body["gone"] == 6
    assert verify(fresh(parent)).ok


def _holds(log: Log, text: str) -> bool:
    """Whether anything a session stores, or its state, has a text in it."""
    stored = b"".join(
        record.body + b"".join(content for _, content in commit.payloads)
        for commit in log.engine.read(log.id, payloads=True)
        for record in commit.records
    )
    return text.encode() in stored or text in str(fresh(log).state())


@pytest.fixture
def secretive(parent: Log) -> Log:
    fork = parent.fork()
    fork.append(ev.MessageAdded(role="user", content=SECRET))  # 9
    fork.append(ev.MessageAdded(role="user", content=SECRET * 100))
    fork.append(ev.FactRecorded(key="secret", value=SECRET))
    patch = [{"op": "add", "path": "/data/list", "value": ["kept", {"deep": SECRET}, 5]}]
    fork.append(ev.StatePatched(patch=patch))  # 12
    fork.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/list/0", "value": "inserted"}]))
    fork.append(ev.GoalSet(goal=SECRET))  # 14
    return fork


def test_erasing_in_a_fork_reaches_what_was_adopted_from_it(parent: Log, secretive: Log) -> None:
    parent.adopt(secretive)
    child = parent.fork()
    parent.rewind(parent.head().seq, why="copies the state once more")
    assert all(_holds(log, SECRET) for log in (parent, secretive))
    erase(secretive, [9, 10, 11, 12, 14], why="ticket 42")
    for log in (parent, child, secretive):
        assert not _holds(log, SECRET)
        assert verify(fresh(log)).ok
    state = fresh(parent).state()
    seq = next(e.seq for e in parent.entries() if e.kind == "history.adopted")
    mark = {"$erased": seq}
    assert state["data"] == {"n": 1, "list": ["inserted", mark, {"deep": mark}, mark]}
    assert state["goal"] == mark


def test_erasing_one_thing_leaves_the_rest_of_what_was_adopted(parent: Log, fork: Log) -> None:
    said = fork.record(ev.MessageAdded(role="user", content=SECRET))
    parent.adopt(fork)
    erase(fork, [said])
    parent = fresh(parent)
    assert not _holds(parent, SECRET)
    assert parent.state()["data"] == {"n": 2}
    assert parent.state()["goal"] == "second"
    assert verify(parent).ok


def test_what_has_a_copy_stands_in_the_copy_alone(parent: Log, secretive: Log) -> None:
    parent.adopt(secretive, 11)
    copies = [e.seq for e in parent.entries() if e.header.cause and e.kind in ("message.added", "fact.recorded")]
    erase(parent, copies)
    assert not _holds(parent, SECRET)


def test_erasing_reaches_through_two_adoptions(parent: Log, secretive: Log) -> None:
    inner = secretive.fork()
    said = inner.record(ev.MessageAdded(role="user", content="inner " + SECRET))
    secretive.adopt(inner)
    parent.adopt(secretive)
    erase(inner, [said])
    for log in (parent, secretive, inner):
        assert not _holds(log, "inner " + SECRET)
        assert verify(fresh(log)).ok


def test_erasing_what_is_shared_reaches_what_a_fork_brought_back(parent: Log) -> None:
    """The fork rewound to a value that its parent had replaced before it left."""
    old = parent.record(ev.GoalSet(goal=SECRET))
    parent.append(ev.GoalSet(goal="plain"))
    fork = parent.fork()
    fork.rewind(old)
    parent.adopt(fork)
    assert parent.state()["goal"] == SECRET
    erase(parent, [old])
    assert not _holds(parent, SECRET)
    assert not _holds(fork, SECRET)
    assert verify(fresh(parent)).ok


def test_an_older_adoption_that_was_pruned_since_is_no_obstacle(parent: Log, secretive: Log) -> None:
    parent.adopt(secretive)
    delete(secretive)
    prune(parent, parent.head().seq)
    fork = parent.fork()
    said = fork.record(ev.MessageAdded(role="user", content="more " + SECRET))
    parent.adopt(fork)
    erase(fork, [said])
    assert not _holds(parent, "more " + SECRET)
    assert verify(fresh(parent)).ok


def test_a_hold_on_the_parent_forbids_erasing_what_it_adopted(parent: Log, secretive: Log) -> None:
    parent.adopt(secretive)
    parent.append(ev.LabelsSet(labels={"hold": "case 17"}))
    with pytest.raises(NotAllowedError) as caught:
        erase(secretive, [9])
    assert caught.value.kind == "held"
    assert _holds(parent, SECRET)


def test_adopting_does_not_lift_a_hold(parent: Log, fork: Log) -> None:
    parent.append(ev.LabelsSet(labels={"hold": "case 17"}))
    parent.adopt(fork, force=True)
    assert parent.state()["labels"] == {"hold": "case 17", "way": "other"}


def test_erasing_while_it_is_adopted_takes_the_adoption_back(
    parent: Log, secretive: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = secretive.view

    def view(at: int | None = None) -> object:
        """The first thing that an adoption asks of the fork."""
        found = read(at)
        monkeypatch.undo()
        erase(Log(secretive.engine, secretive.id), [9, 10, 11, 12, 14])
        return found

    monkeypatch.setattr(secretive, "view", view)
    before = parent.state()
    with pytest.raises(ConflictError) as caught:
        parent.adopt(secretive)
    assert caught.value.kind == "erased-meanwhile"
    after = fresh(parent).state()
    assert {part for part in after if diff(before[part], after[part])} <= {"view"}
    assert not _holds(parent, SECRET)
    assert verify(fresh(parent)).ok
    parent.adopt(secretive)


@pytest.mark.parametrize("where", ["fork", "parent"])
def test_erasing_before_the_content_is_fetched_adopts_nothing(
    parent: Log, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A fork's events name content that is fetched one by one, later than the events are read."""
    said = parent.record(ev.MessageAdded(role="user", content=SECRET * 1000))
    fork = parent.fork()
    own = fork.record(ev.MessageAdded(role="user", content=(SECRET if where == "parent" else "other") * 1000))
    read = fork.state

    def state(at: int | None = None) -> object:
        """Asked for when the fork's events have been read, and their content has not."""
        monkeypatch.undo()
        log, seq = (fork, own) if where == "fork" else (parent, said)
        erase(Log(log.engine, log.id), [seq])
        return read(at)

    monkeypatch.setattr(fork, "state", state)
    with pytest.raises(ConflictError) as caught:
        parent.adopt(fork)
    assert caught.value.kind == "erased-meanwhile"
    assert not [entry for entry in fresh(parent).entries() if entry.kind == "history.adopted"]
    parent.adopt(fork)
    assert not _holds(parent, SECRET if where == "parent" else "other")
    assert verify(fresh(parent)).ok
