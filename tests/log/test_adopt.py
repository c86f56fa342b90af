"""Adopting a fork: what is taken over, what stays, what is refused, and that nothing else ever knows the difference."""

import io
from collections.abc import Callable

import pytest

from tests.log.conftest import NewLog
from wakelog import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.removal import delete
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.state.diff import diff

LARGE = "a long message " * 100
SECRET = "hunter-2-is-the-word"


def fresh(log: Log) -> Log:
    return Log(log.engine, log.id)


def messages(log: Log) -> list[str]:
    return [
        log.value(entry, entry.body["content"])
        for low, high in log.view()
        for entry in log.entries(after=low - 1, upto=high)
        if entry.kind == "message.added"
    ]


@pytest.fixture
def parent(new_log: NewLog) -> Log:
    return new_log(
        ev.TurnStarted(input="go"),
        ev.MessageAdded(role="user", content="go"),
        ev.FactRecorded(key="who", value="parent"),
        ev.FileChanged(path="a.py", after="one"),
        ev.StatePatched(patch=[{"op": "add", "path": "/data/n", "value": 1}]),
        ev.TurnEnded(),
        goal="first",
    )


@pytest.fixture
def fork(parent: Log) -> Log:
    fork = parent.fork(name="other-way")
    fork.append(ev.TurnStarted(input="try"), ev.MessageAdded(role="user", content="try"))
    fork.append(ev.FactRecorded(key="who", value="fork", why="it knows better"))
    fork.append(ev.FactRecorded(key="old", value=1), ev.FactRetracted(key="old"))
    fork.append(ev.DecisionMade(choice="left", because="it is shorter", evidence=(4, 10, 12, "a map")))
    fork.append(ev.DeadEndNoted(tried="right", learned="a wall"))
    fork.append(ev.FileChanged(path="a.py", after=LARGE), ev.FileChanged(path="b.py", change="created"))
    fork.append(ev.ArtefactRecorded(name="report", content=LARGE), ev.ResourceTouched(resource="postgres"))
    fork.append(ev.GoalSet(goal="second"), ev.LabelsSet(labels={"way": "other"}))
    fork.append(ev.StatePatched(patch=[{"op": "replace", "path": "/data/n", "value": 2}]))
    fork.append(ev.ActionRecorded(action="x", tool="search", cost=ev.Cost(usd_micros=7)))
    fork.append(ev.MessageAdded(role="assistant", content=LARGE), ev.TurnEnded())
    return fork


def test_the_forks_result_is_taken_over_and_its_conversation_is_in_view(parent: Log, fork: Log) -> None:
    parent.adopt(fork, why="better")
    state = parent.state()
    assert state["facts"]["who"]["value"] == "fork"
    assert "old" not in state["facts"]
    assert [d["choice"] for d in state["decisions_made"].values()] == ["left"]
    assert [d["tried"] for d in state["dead_ends"].values()] == ["right"]
    assert (state["goal"], state["labels"], state["data"]) == ("second", {"way": "other"}, {"n": 2})
    assert {p: f["changes"] for p, f in state["files_modified"].items()} == {"a.py": 2, "b.py": 1}
    assert state["tools_used"]["search"]["calls"] == 1
    assert messages(parent) == messages(fork) == ["go", "try", LARGE]


def test_turns_and_open_calls_stay_with_whoever_had_them(parent: Log, fork: Log) -> None:
    parent.append(ev.InputRequested(request="q", prompt="may I?"))
    parent.adopt(fork, force=True)
    state = parent.state()
    assert state["turn"]["number"] == 1
    assert set(state["pending_actions"]) == {"q"}


def test_what_a_fork_spent_is_spent_here_too_and_once(parent: Log, fork: Log) -> None:
    def spent(log: Log) -> tuple[int, int]:
        amounts = log.state()["budget"]["spent"]
        return amounts.get("usd_micros", 0), amounts.get("tokens", 0)

    parent.append(ev.BudgetSpent(cost=ev.Cost(usd_micros=100)))
    parent.adopt(fork, force=True)
    assert spent(parent) == (107, 0)
    assert parent.entry(parent.state()["tools_used"]["search"]["last"]).body["cost"] == {"usd_micros": 7}
    parent.rewind(parent.head().seq, mode="undo")
    undone = [e.seq for e in parent.entries() if e.kind == "history.rewound" and e.body.get("mode") == "adopt"]
    parent.rewind(undone[0] - 1, mode="undo")
    assert spent(parent) == (107, 0), "money is not given back"
    fork.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=2, tokens_out=3, usd_micros=5)))
    parent.adopt(fork, force=True)
    assert spent(parent) == (112, 5)
    parent.adopt(fork, force=True)
    assert spent(parent) == (112, 5)
    parent.adopt(fork, at=fork.head().seq - 1, force=True)
    assert spent(parent) == (112, 5), "an earlier point has nothing new"
    assert verify(parent).ok


def test_a_fork_of_a_fork_is_counted_all_the_way_up(parent: Log, fork: Log) -> None:
    deeper = fork.fork(fork.head().seq)
    deeper.append(ev.BudgetSpent(cost=ev.Cost(usd_micros=11)))
    fork.adopt(deeper)
    parent.adopt(fork)
    assert fork.state()["budget"]["spent"]["usd_micros"] == parent.state()["budget"]["spent"]["usd_micros"] == 18


def test_positions_in_the_state_are_of_events_that_say_so(parent: Log, fork: Log) -> None:
    parent.adopt(fork)
    state = parent.state()
    assert parent.entry(state["facts"]["who"]["seq"]).body["why"] == "it knows better"
    assert parent.entry(state["files_modified"]["b.py"]["last"]).body["path"] == "b.py"
    artefact = parent.entry(state["artefacts"]["report"]["seq"])
    assert parent.value(artefact, artefact.body["content"]) == LARGE
    assert parent.entry(state["working_set"]["data_sources"]["postgres"]).kind == "history.adopted"
    assert parent.entry(state["tools_used"]["search"]["last"]).kind == "history.adopted"
    (seq,) = state["decisions_made"]
    decision = parent.entry(int(seq))
    assert (decision.kind, decision.header.cause) == ("decision.made", state["working_set"]["data_sources"]["postgres"])
    # 4 is shared, 10 is the copied message, 12 was a fact that is no longer held.
    shared, copied, elsewhere, text = decision.body["evidence"]
    assert (shared, elsewhere, text) == (4, f"{fork.id}@e12", "a map")
    assert parent.value(parent.entry(copied), parent.entry(copied).body["content"]) == "try"


def test_later_decisions_do_not_overwrite_adopted_ones(parent: Log, fork: Log) -> None:
    for n in range(40):
        fork.append(ev.NoteAdded(text=str(n)))
    fork.append(ev.DecisionMade(choice="late"))
    parent.adopt(fork)
    for n in range(60):
        parent.append(ev.DecisionMade(choice=str(n)))
    assert len(parent.state()["decisions_made"]) == 62


def test_an_adoption_is_one_commit_that_says_what_it_copied(parent: Log, fork: Log) -> None:
    before = parent.head().seq
    parent.adopt(fork, why="better")
    entries = list(parent.entries(after=before))
    assert len({entry.commit_id for entry in entries}) == 1
    assert [e.kind for e in entries[:2]] == ["history.rewound", "history.adopted"]
    adopted = entries[1]
    assert adopted.body["hash"] == fork.entry(fork.head().seq).hash.hex()
    for copy, seq in zip(entries[2:], adopted.body["copied"], strict=True):
        original = fork.entry(seq)
        assert (copy.kind, copy.header.cause) == (original.kind, adopted.seq)
        assert copy.body["occurred_at"] == original.header.at


def test_what_is_not_trusted_is_not_trusted_here_either(parent: Log) -> None:
    fork = parent.fork()
    page = ev.MessageAdded(role="tool", content="a page")
    fork.append(EventDraft(page, source="web:x", trust="untrusted"))
    fork.append(EventDraft(ev.FactRecorded(key="k", value="v"), derived_from=((3, 3), (9, 9)), trust="untrusted"))
    parent.adopt(fork)
    rewound, adopted, message, fact = parent.entries(after=parent.head().seq - 4)
    assert [e.header.trust for e in (rewound, adopted, message, fact)] == ["trusted", *["untrusted"] * 3]
    assert fact.header.derived_from == ((3, 3), (message.seq, message.seq))
    assert parent.state()["facts"]["k"]["trust"] == "untrusted"
    assert parent.state()["trust"]["web:x"]["trust"] == "untrusted"


def test_trust_is_lowered_by_what_has_no_copy_too(parent: Log) -> None:
    fork = parent.fork()
    patch = ev.StatePatched(patch=[{"op": "add", "path": "/data/page", "value": "<html>"}])
    fork.append(EventDraft(patch, source="web:y", trust="unverified"))
    parent.adopt(fork)
    assert parent.state()["trust"] == {"web:y": {"trust": "unverified", "seq": parent.head().seq}}


def test_a_fork_can_be_taken_as_it_was(parent: Log, fork: Log) -> None:
    parent.adopt(fork, 11)
    assert parent.state()["facts"]["who"]["value"] == "fork"
    assert parent.state()["goal"] == "first"
    assert messages(parent) == ["go", "try"]


def test_a_forks_own_rewinds_are_followed(parent: Log, fork: Log) -> None:
    """Also one that went back beyond the fork point."""
    fork.rewind(3)
    fork.append(ev.MessageAdded(role="user", content="again"), ev.FactRecorded(key="new", value=1))
    parent.adopt(fork)
    assert messages(parent) == messages(fork) == ["go", "again"]
    assert set(parent.state()["facts"]) == {"new"}
    assert parent.state()["data"] == {}
    assert [d["tried"] for d in parent.state()["dead_ends"].values()] == ["right"]


def test_compactions_come_along(parent: Log, fork: Log) -> None:
    last = fork.head().seq
    fork.append(ev.HistoryCompacted(first=3, last=last, summary=LARGE))
    parent.adopt(fork)
    state = parent.state()
    (key,) = state["evicted_keys"]
    compacted = parent.entry(state["evicted_keys"][key]["handle"])
    assert compacted.kind == "history.compacted"
    assert parent.value(compacted, compacted.body["summary"]) == LARGE
    assert compacted.body["first"] == 3
    assert parent.entry(compacted.body["last"]).kind == "message.added"


def test_undo_takes_all_of_it_back_but_what_was_tried_and_paid(parent: Log, fork: Log) -> None:
    parent.append(ev.FactRecorded(key="since", value=1))
    before, seen = parent.state(), messages(parent)
    head = parent.head().seq
    parent.adopt(fork, force=True)
    parent.rewind(head, mode="undo")
    after = parent.state()
    assert {part for part in after if diff(before[part], after[part])} == {"view", "dead_ends", "budget"}
    assert messages(parent) == seen


def test_the_fork_may_be_deleted_afterwards(parent: Log, fork: Log) -> None:
    parent.adopt(fork)
    state, seen = parent.state(), messages(parent)
    delete(fork)
    parent = fresh(parent)
    assert (parent.state(), messages(parent)) == (state, seen)
    assert verify(parent).ok


def test_the_parent_travels_without_the_fork(parent: Log, fork: Log) -> None:
    parent.adopt(fork)
    data = io.BytesIO()
    export_bundle(parent, data)
    data.seek(0)
    there = import_bundle(MemoryEngine(), data)
    assert there.state() == parent.state()
    assert there.state_hash() == parent.state_hash()
    assert messages(there) == messages(parent)
    assert verify(there).ok


def test_a_fork_of_the_parent_reads_what_was_adopted(parent: Log, fork: Log) -> None:
    parent.adopt(fork)
    child = parent.fork()
    assert messages(child) == messages(parent)
    assert child.state()["facts"] == parent.state()["facts"]


def test_a_fork_can_be_adopted_twice_and_two_forks_one_after_the_other(parent: Log, fork: Log) -> None:
    other = parent.fork()
    other.append(ev.MessageAdded(role="user", content="other"))
    parent.adopt(fork)
    with pytest.raises(ConflictError) as caught:
        parent.adopt(other)
    assert caught.value.kind == "moved-on"
    parent.adopt(other, force=True)
    assert messages(parent) == ["go", "other"]
    parent.adopt(fork, force=True)
    assert messages(parent) == messages(fork)
    assert verify(fresh(parent)).ok


# What is refused


def test_only_a_sessions_own_fork_can_be_adopted(parent: Log, fork: Log, new_log: NewLog) -> None:
    for stranger in (new_log(), fork.fork(), parent):
        with pytest.raises(InvalidInputError) as caught:
            parent.adopt(stranger)
        assert caught.value.kind == "not-its-fork"
    with pytest.raises(InvalidInputError):
        fork.adopt(parent)


def test_a_parent_that_went_on_says_so_and_what_only_adds_to_it_does_not_count(parent: Log, fork: Log) -> None:
    parent.append(ev.CheckpointNamed(name="here", at=3), ev.NoteAdded(text="n"), ev.FlagRaised(flag="f"))
    parent.adopt(fork)
    parent.append(ev.TurnStarted(input="more"), ev.TurnEnded())
    with pytest.raises(ConflictError, match=r"1 turn, from event") as caught:
        parent.adopt(fork)
    assert "--force" in caught.value.hint


def test_what_was_rewound_since_does_not_count_as_going_on(parent: Log, fork: Log) -> None:
    at = parent.head().seq
    parent.append(ev.FactRecorded(key="k", value=1))
    with pytest.raises(ConflictError):
        parent.adopt(fork)
    parent.rewind(at)
    parent.adopt(fork)


@pytest.mark.parametrize(
    ("spoil", "error", "kind"),
    [
        (lambda p: p.append(ev.TurnStarted()), NotAllowedError, "turn-open"),
        (lambda p: p.append(ev.SessionPaused()), NotAllowedError, "session-paused"),
        (lambda p: p.append(ev.SessionClosed()), NotAllowedError, "session-closed"),
    ],
)
def test_nothing_is_adopted_where_nothing_new_may_happen(
    parent: Log, fork: Log, spoil: Callable[[Log], object], error: type[Exception], kind: str
) -> None:
    spoil(parent)
    head = parent.head()
    with pytest.raises(error) as caught:
        parent.adopt(fork, force=True)
    assert caught.value.kind == kind  # type: ignore[attr-defined]
    assert parent.head() == head


@pytest.mark.parametrize("at", [0, 3, 7, 1000])
def test_the_point_must_be_one_of_the_forks_own(parent: Log, fork: Log, at: int) -> None:
    with pytest.raises(NotFoundError):
        parent.adopt(fork, at)


def test_it_cannot_be_appended_by_hand(parent: Log) -> None:
    with pytest.raises(NotAllowedError, match="written by the log itself"):
        parent.append(ev.HistoryAdopted(session="s", at=1, hash=""))


def test_another_writer_in_between_is_seen(parent: Log, fork: Log) -> None:
    """The other process's fact is known to the engine only; the plan is made again, and then refused."""
    other = fresh(parent)
    parent.state()
    other.append(ev.FactRecorded(key="k", value=1))
    with pytest.raises(ConflictError) as caught:
        parent.adopt(fork)
    assert caught.value.kind == "moved-on"
