"""Erasing: what was said goes, everywhere it is, and the log still proves what it proved."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.log.conftest import NewLog
from tests.residue import residue
from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.testing.builders import fact, message

SECRET = "SECRET-MARKER"
BIG = f"{SECRET} larger than what stays in a body " * 40


def check_gone(log: Log, folder: Path | None = None, marker: str = SECRET) -> None:
    """Nothing the log can show or its files hold still says it, and it still verifies."""
    for each in (log, Log(log.engine, log.id)):
        assert marker not in repr(each.state())
        for entry in each.entries():
            assert marker.encode() not in entry.record.body, f"event {entry.seq} {entry.kind}"
        report = verify(each)
        assert report.ok, report
    for commit in log.engine.read(log.id, payloads=True):
        assert all(marker.encode() not in content for _, content in commit.payloads)
    snapshot = log.engine.snapshot(log.id, upto=1 << 40)
    assert snapshot is None or marker.encode() not in snapshot.data
    if folder is not None and isinstance(log.engine, SqliteEngine):
        assert residue(folder, marker) == []


def test_an_erased_event_keeps_its_place_and_loses_what_it_said(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), message(BIG), fact("b", 1))
    hashes = [e.hash for e in log.entries()]
    head = erase(log, [2, 3], why="asked for")
    assert head.seq == 5
    assert [e.hash for e in log.entries(upto=4)] == hashes
    assert [e.is_intact for e in log.entries()] == [True, False, False, True, True]
    assert log.state()["facts"] == {"a": {"value": {"$erased": 2}, "seq": 2}, "b": {"value": 1, "seq": 4}}
    assert verify(log).scope == {"erased": 2, "pruned": 0, "payloads_gone": 0}
    with pytest.raises(NotFoundError):
        log.engine.payload(log.id, 3, bytes(32))
    check_gone(log, tmp_path)


def test_the_session_goes_on_after_an_erasure(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("b", 1))
    erase(log, [2])
    log.append(fact("a", "new"), fact("c", 2))
    log.rewind(3)
    assert log.state()["facts"]["a"]["value"] == {"$erased": 2}
    assert log.state_hash() == Log(log.engine, log.id).state_hash()
    check_gone(log, tmp_path)


def test_everything_authored_can_be_erased(new_log: NewLog, tmp_path: Path) -> None:
    """The marker is in every text that is not a key or a choice."""
    log = new_log(
        goal=SECRET, agent=SECRET, labels={"l": SECRET}, data={"d": {"e": [SECRET, 1]}}, why=SECRET, spawner=SECRET
    )
    s: dict[str, Any] = {"why": SECRET}
    for event in (
        ev.GoalSet(goal=SECRET, **s),
        ev.LabelsSet(labels={"m": SECRET}, **s),
        ev.TurnStarted(input=SECRET, **s),
        ev.MessageAdded(role="user", content=BIG, name=SECRET, **s),
        ev.ActionRequested(
            action="a", tool="t", input=BIG, key=SECRET, policy={"p": SECRET}, params={"q": [SECRET]}, **s
        ),
        ev.ActionStarted(action="a", **s),
        ev.ActionSucceeded(action="a", output=BIG + "2", output_summary=SECRET, stop_reason=SECRET, **s),
        ev.ActionRequested(action="b", tool="t"),
        ev.ActionFailed(action="b", error=ev.Failure(SECRET, message=SECRET), output=SECRET, **s),
        ev.ActionRecorded(action="c", tool="t", input=SECRET, output={"o": SECRET}, output_summary=SECRET, **s),
        ev.ActionEvidence(action="a", output=SECRET, **s),
        ev.InputRequested(request="q", prompt=SECRET, options=(SECRET,), **s),
        ev.InputAnswered(request="q", answer=SECRET, by=SECRET, **s),
        ev.DecisionMade(
            choice=SECRET, because=SECRET, alternatives=(SECRET,), assumptions=(SECRET,), evidence=(SECRET, 1), **s
        ),
        ev.FactRecorded(key="k", value={"deep": [SECRET, {"er": SECRET}]}, **s),
        ev.DeadEndNoted(tried=SECRET, learned=SECRET, **s),
        ev.ArtefactRecorded(name="n", uri=SECRET, content=BIG + "3", **s),
        ev.FileChanged(path="f", before=SECRET, after=BIG + "4", **s),
        ev.SubagentSpawned(session="sub", task=SECRET, **s),
        ev.SubagentReturned(session="sub", output=SECRET, **s),
        ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": {"y": SECRET}}], **s),
        ev.FlagRaised(flag="f", rule=SECRET, message=SECRET, **s),
        ev.HistoryCompacted(first=1, last=2, summary=BIG + "5", **s),
        ev.TrustEndorsed(targets=(1,), by=SECRET, **s),
        ev.NoteAdded(text=SECRET, **s),
        ev.GapNoted(missed=SECRET, source=SECRET, **s),
        ev.TurnEnded(outcome="failed", error=ev.Failure("io", message=SECRET), **s),
        ev.Foreign(foreign_kind="x.mine", data={"own": SECRET}),
    ):
        log.append(event)
    last = log.head().seq
    before = log.state()
    erase(log, range(1, last + 1))
    check_gone(log, tmp_path)
    after = log.state()
    assert after.keys() == before.keys()
    for part in ("status", "turn", "lease", "checkpoints", "pending_actions"):
        assert after[part] == before[part], part
    assert after["tools_used"] == before["tools_used"]
    log.append(fact("k", "goes on"))
    assert verify(log).ok


def test_forks_that_share_the_event_lose_it_too(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("b", 1))
    below, sharing, deep = log.fork(1), log.fork(2), log.fork().fork()
    deep.append(fact("c", 1))
    before = below.head()
    erase(log, [2])
    for fork in (sharing, deep):
        assert fork.state()["facts"]["a"]["value"] == {"$erased": 2}
        check_gone(fork, tmp_path)
    assert below.head() == before
    check_gone(log)


def test_an_event_of_the_parent_can_be_erased_from_the_fork(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("b", 1))
    fork = log.fork()
    fork.append(fact("c", 2))
    erase(fork, [2])
    check_gone(fork, tmp_path)
    check_gone(log, tmp_path)


def test_copies_that_a_rewind_made_go_with_the_original(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("a", "over"), data={"x": [1]})
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/x/1", "value": SECRET}]))
    log.append(ev.StatePatched(patch=[{"op": "replace", "path": "/data/x", "value": []}]))
    log.rewind(2)
    log.rewind(4)
    log.append(fact("a", "again"))
    log.rewind(6)
    assert SECRET in repr(log.state())
    erase(log, [2, 4])
    check_gone(log, tmp_path)


def test_copies_that_a_rewind_in_a_fork_made_go_too(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("a", "over"))
    fork = log.fork()
    fork.rewind(2)
    erase(log, [2])
    check_gone(fork, tmp_path)


def test_what_two_erasures_did_to_one_rewind_is_gone_and_verifies(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", "FIRST-MARKER"), fact("b", SECRET))
    log.append(fact("a", "x"), fact("b", "y"))
    log.rewind(3)
    erase(log, [2])
    erase(log, [3])
    check_gone(log, tmp_path, "FIRST-MARKER")
    check_gone(log, tmp_path)


def test_an_erasure_leaves_the_forks_own_events_alone(new_log: NewLog) -> None:
    log = new_log(*(fact(f"a{i}", str(i)) for i in range(2, 9)))
    fork = log.fork(5)
    fork.append(fact("own", "mine"))
    assert fork.head().seq == 7
    erase(log, [3, 7])
    assert fork.state()["facts"]["own"]["value"] == "mine"
    assert fork.state()["facts"]["a3"]["value"] == {"$erased": 3}
    assert verify(fork).ok


def test_the_same_number_can_be_erased_in_parent_and_fork(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(*(fact(f"a{i}", str(i)) for i in range(2, 7)), fact("p", SECRET))
    fork = log.fork(5)
    fork.append(fact("f", SECRET))
    assert (log.head().seq, fork.head().seq) == (7, 7)
    erase(log, [7])
    erase(fork, [7])
    check_gone(log, tmp_path)
    check_gone(fork, tmp_path)


def test_a_fork_behind_a_deleted_fork_loses_it_too(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("a", "over"))
    middle = log.fork()
    middle.rewind(2)
    last = middle.fork()
    last.rewind(2)
    delete(middle)
    erase(log, [2])
    assert last.state()["facts"]["a"]["value"] == {"$erased": 2}
    check_gone(last, tmp_path)


def test_whoever_holds_the_state_learns_of_the_erasure(engine: Engine, new_log: NewLog) -> None:
    log = new_log(fact("a", SECRET))
    other = Log(engine, log.id)
    assert SECRET in repr(other.state())
    erase(log, [2])
    assert SECRET not in repr(other.state())
    other.append(fact("b", 1))
    log.rewind(2)
    assert other.state() == log.state()
    assert verify(other).ok


def test_content_that_was_erased_is_not_mentioned_but_stored_again(engine: Engine, new_log: NewLog) -> None:
    log = new_log(message(BIG))
    other = Log(engine, log.id)
    other.append(message(BIG))
    erase(log, [2])
    for each in (log, other):
        each.append(message(BIG))
        entry = each.entry(each.head().seq)
        assert each.value(entry, entry.body["content"]) == BIG
    assert verify(log).ok


def test_later_mentions_of_erased_content_go_with_it(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(message(BIG), fact("a"), message(BIG))
    erase(log, [2])
    assert [e.is_intact for e in log.entries()] == [True, False, True, False, True]
    check_gone(log, tmp_path)


def test_an_earlier_event_of_the_same_commit_keeps_what_it_said(log: Log) -> None:
    """As it does when the two are in commits of their own."""
    log.append(message(BIG), message(BIG))
    erase(log, [3])
    entry = log.entry(2)
    assert entry.is_intact
    assert log.value(entry, entry.body["content"]) == BIG


def test_an_append_repeated_after_its_erasure_stores_nothing(new_log: NewLog) -> None:
    log = new_log()
    log.append(fact("a", SECRET), commit_id="mine")
    erase(log, [2])
    # Whether the first answer is still known is not promised, only that the content does not come back.
    with contextlib.suppress(InvalidInputError):
        assert log.append(fact("a", SECRET), commit_id="mine").seq == 2
    assert log.head().seq == 3
    check_gone(log)


def test_erasing_twice_is_harmless(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log(fact("a", SECRET), fact("b", 1))
    erase(log, [2])
    erase(log, [2])
    check_gone(log, tmp_path)


def test_state_hashes_written_before_an_erasure_are_not_held_against_the_log(new_log: NewLog) -> None:
    log = new_log(ev.TurnStarted(), fact("a", SECRET), ev.TurnEnded(), ev.TurnStarted(), ev.TurnEnded())
    erase(log, [3])
    log.append(ev.TurnStarted(), ev.TurnEnded())
    check_gone(log)


@pytest.mark.parametrize("targets", [[], [0], [99], [2, 99]])
def test_only_events_that_are_there_can_be_erased(new_log: NewLog, targets: list[int]) -> None:
    log = new_log(fact("a"))
    with pytest.raises((InvalidInputError, NotFoundError)):
        erase(log, targets)
    assert log.head().seq == 2


def test_what_says_that_something_was_removed_stays(new_log: NewLog) -> None:
    log = new_log(fact("a", SECRET), fact("b"), fact("c"))
    erase(log, [2])  # 5
    prune(log, 3)  # 6
    for seq in (5, 6):
        with pytest.raises(NotAllowedError):
            erase(log, [seq])
    with pytest.raises(NotFoundError) as refused:
        erase(log, [3])
    assert refused.value.kind == "pruned"


def test_events_of_several_sessions_are_erased_one_session_at_a_time(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    fork = log.fork()
    fork.append(fact("c"))
    with pytest.raises(InvalidInputError):
        erase(fork, [2, 5])
    assert fork.head().seq == 5


def test_writers_go_on_while_events_are_erased(engine: Engine, new_log: NewLog) -> None:
    log = new_log(*(fact(f"s{i}", SECRET) for i in range(6)))
    failures: list[BaseException] = []
    begun = threading.Event()

    def write() -> None:
        try:
            mine = Log(engine, log.id)
            for _ in range(30):
                mine.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=1)))
                begun.set()
        except BaseException as exc:
            failures.append(exc)
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(180)
    for seq in range(2, 8):
        # SQLite empties its log only once no reader is in it; it says so, and the removal itself is done.
        with contextlib.suppress(UnavailableError):
            erase(log, [seq])
    writer.join(180)
    assert failures == []
    assert log.state()["budget"]["spent"]["tokens"] == 30
    assert log.head().seq == 1 + 6 + 30 + 6
    check_gone(log)
