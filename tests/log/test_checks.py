"""What the door and the machines refuse, so that no stored log is broken by a call."""

import pytest

from wakelog import ConflictError, InvalidInputError, NotAllowedError, events
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.model.ids import root_id
from wakelog.model.records import EventDraft


@pytest.fixture
def log() -> Log:
    return Log.create(MemoryEngine(), root_id(1, b"0123456789"), events.SessionOpened(data={"n": 1}))


@pytest.mark.parametrize(
    "draft",
    [
        EventDraft(events.NoteAdded(text="x"), trust="bogus"),  # type: ignore[arg-type]
        EventDraft(events.NoteAdded(text="x"), cause=2),
        EventDraft(events.NoteAdded(text="x"), cause=-1),
        EventDraft(events.NoteAdded(text="x"), derived_from=((1, 2),)),
        EventDraft(events.NoteAdded(text="x"), derived_from=((0, 1),)),
    ],
)
def test_a_header_must_make_sense_where_it_stands(log: Log, draft: EventDraft) -> None:
    with pytest.raises(InvalidInputError):
        log.append(draft)
    assert log.head().seq == 1


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "remove", "path": "/data"}],
        [{"op": "replace", "path": "/data", "value": [1]}],
        [{"op": "add", "path": "/goal", "value": "x"}],
        [{"op": "add", "path": "/database", "value": 1}],
        [{"op": "move", "path": "/data/a", "from": "/data/n"}],
    ],
)
def test_a_patch_changes_data_only_and_data_stays_an_object(log: Log, patch: list) -> None:
    with pytest.raises(InvalidInputError):
        log.append(events.StatePatched(patch=patch))
    assert log.state()["data"] == {"n": 1}


def test_a_patch_is_stored_once_as_the_delta(log: Log) -> None:
    log.append(events.StatePatched(patch=[{"op": "replace", "path": "/data/n", "value": 2}]))
    entry = log.entry(2)
    assert entry.record.body.count(b"/data/n") == 1
    assert entry.event.patch == entry.delta  # type: ignore[attr-defined]


def test_numbers_that_json_readers_round_are_refused_everywhere(log: Log) -> None:
    for event in (
        events.BudgetSpent(cost=events.Cost(tokens_in=2**60)),
        events.NoteAdded(text="x", occurred_at=2**60),
        events.FactRecorded(key="k", value=2**60),
    ):
        with pytest.raises(InvalidInputError):
            log.append(event)


def test_an_answer_settles_only_what_was_asked(log: Log) -> None:
    log.append(events.ActionRequested(action="a", tool="mail"))
    for event in (
        events.InputAnswered(request="a", answer="yes"),
        events.InputAnswered(request="nothing", answer="yes"),
        events.InputRequested(request="a", prompt="?"),
    ):
        with pytest.raises(NotAllowedError):
            log.append(event)
    log.append(events.InputRequested(request="q", prompt="?"))
    log.append(events.InputAnswered(request="q", answer="yes"))
    assert set(log.state()["pending_actions"]) == {"a"}


def test_an_old_holder_cannot_release_the_new_ones_lease(log: Log) -> None:
    old = log.take_lease("one")
    log.take_lease("two", force=True)
    with pytest.raises(ConflictError):
        log.append(events.LeaseReleased(epoch=old))
    assert log.state()["lease"]["holder"] == "two"


def test_following_with_no_patience_ends_at_once(log: Log) -> None:
    assert [e.seq for e in log.follow(timeout_s=0)] == [1]


def test_the_reason_of_a_foreign_event_is_kept(log: Log) -> None:
    log.append(events.Foreign(foreign_kind="x.mine", data={"a": 1}, why="because"))
    assert log.entry(2).body == {"a": 1, "why": "because"}
