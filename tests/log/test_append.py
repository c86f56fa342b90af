"""Appending through a Log: order, repetition, fencing, legality, payloads."""

import threading
from typing import Any, cast

import pytest

from tests.log.conftest import NewLog
from wakelog.engine import Engine
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError, UnavailableError
from wakelog.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import EventDraft, Head
from wakelog.testing.builders import START_US, fact, message, new_session
from wakelog.testing.contract.base import in_parallel
from wakelog.testing.faults import LossyEngine

BIG = "larger than what stays in a body " * 40


def test_an_append_returns_the_head_it_leads_to(log: Log) -> None:
    head = log.append(fact("a"), fact("b"))
    assert (head.session, head.seq) == (log.id, 3)
    assert log.head() == head
    assert [e.seq for e in log.entries()] == [1, 2, 3]


def test_events_of_one_append_are_one_commit(log: Log) -> None:
    log.append(fact("a"), fact("b"))
    assert [(c.first, c.last) for c in log.engine.read(log.id)] == [(1, 1), (2, 3)]


def test_when_one_event_is_refused_none_of_the_append_is_stored(log: Log) -> None:
    before = log.state_hash()
    with pytest.raises(NotAllowedError):
        log.append(fact("a"), message(BIG), ev.TurnEnded())
    assert log.head().seq == 1
    assert log.state_hash() == before
    log.append(message(BIG))
    entry = log.entry(2)
    assert log.value(entry, entry.body["content"]) == BIG


def test_an_append_of_nothing_is_invalid(log: Log) -> None:
    with pytest.raises(InvalidInputError) as refused:
        log.append()
    assert refused.value.kind == "empty-append"


def test_what_the_header_says_comes_from_the_draft(log: Log) -> None:
    log.append(
        EventDraft(fact("a"), actor="tool", cause=1, derived_from=((1, 1),), source="web", trust="untrusted"), fact("b")
    )
    header = log.entry(2).header
    assert (header.actor, header.cause, header.derived_from) == ("tool", 1, ((1, 1),))
    assert (header.source, header.trust) == ("web", "untrusted")
    assert log.entry(3).header.actor == "agent"


def test_time_never_goes_back_within_a_session(engine: Engine, new_log: NewLog) -> None:
    log = new_log()
    later = START_US + 10**12
    times = iter([50, 40, later, 5, later + 1])
    log.clock = lambda: next(times)
    for i in range(5):
        log.append(fact(str(i)))
    stamps = [e.header.at for e in log.entries()]
    assert stamps == sorted(stamps)
    assert stamps[-1] == later + 1
    assert verify(log).ok


def test_events_carry_the_turn_and_attempt_they_belong_to(log: Log) -> None:
    log.append(fact("before"))
    log.append(ev.TurnStarted(), fact("in"), ev.TurnEnded(), fact("between"))
    log.append(ev.TurnStarted(retry=True), fact("again"), ev.TurnEnded())
    log.append(ev.TurnStarted())
    places = [(e.header.turn, e.header.attempt) for e in log.entries()]
    assert places == [
        *[(0, 1)] * 2,
        *[(1, 1)] * 3,
        (0, 1),
        *[(1, 2)] * 3,
        (2, 1),
    ]


# Expecting a head


def test_an_expected_head_that_is_there_lets_the_append_through(log: Log) -> None:
    assert log.append(fact("a"), expect=1).seq == 2
    assert log.append(fact("b"), expect=2).seq == 3


@pytest.mark.parametrize("expect", [0, 1, 3, 99])
def test_any_other_expected_head_is_a_conflict_and_writes_nothing(log: Log, expect: int) -> None:
    log.append(fact("a"))
    with pytest.raises(ConflictError) as refused:
        log.append(fact("b"), expect=expect)
    assert (refused.value.kind, refused.value.head_seq) == ("head-moved", 2)
    assert log.head().seq == 2


def test_expecting_sees_what_another_writer_did(engine: Engine, log: Log) -> None:
    other = Log(engine, log.id)
    other.append(fact("a"))
    with pytest.raises(ConflictError) as refused:
        log.append(fact("b"), expect=1)
    assert refused.value.head_seq == 2
    assert log.append(fact("b"), expect=2).seq == 3


# The same id again


def test_the_same_id_with_the_same_events_gives_the_first_answer(log: Log) -> None:
    first = log.append(fact("a"), message(BIG), commit_id="mine")
    log.append(fact("b"))
    again = log.append(fact("a"), message(BIG), commit_id="mine")
    assert (again.seq, again.hash, again.commit_id) == (first.seq, first.hash, "mine")
    assert log.head().seq == 4
    assert log.state() == Log(log.engine, log.id).state()


def test_the_first_answer_holds_for_another_process_and_after_close(engine: Engine, log: Log) -> None:
    first = log.append(fact("a"), commit_id="mine")
    log.append(ev.SessionClosed())
    assert Log(engine, log.id).append(fact("a"), commit_id="mine").hash == first.hash
    assert log.append(fact("a"), commit_id="mine", expect=77, guard=9).hash == first.hash


def test_the_same_id_with_other_events_is_invalid(log: Log) -> None:
    log.append(fact("a"), commit_id="mine")
    for events in ([fact("b")], [fact("a", 2)], [fact("a"), fact("b")], [ev.FactRetracted(key="a")]):
        with pytest.raises(InvalidInputError) as refused:
            log.append(*events, commit_id="mine")
        assert refused.value.kind == "commit-id-reused"
    assert log.head().seq == 2


def test_an_id_taken_for_new_is_known_when_it_is_stored(log: Log, engine: Engine) -> None:
    first = log.append(fact("a"), commit_id="mine", is_new=True)
    assert log.append(fact("a"), commit_id="mine", is_new=True).hash == first.hash
    with pytest.raises(InvalidInputError) as refused:
        log.append(fact("b"), commit_id="mine", is_new=True)
    assert refused.value.kind == "commit-id-reused"
    assert Log(engine, log.id).state() == log.state()
    assert log.append(fact("b")).seq == first.seq + 1


def test_what_is_in_line_is_stored_with_what_follows_it(log: Log, engine: Engine) -> None:
    first = log.put_in_line(fact("a"), expect=1, commit_id="mine")
    second = log.append(fact("b"), expect=2)
    assert second.seq == 3
    assert log.land(first).hash == first.commit.hash
    assert [entry.commit_id for entry in Log(engine, log.id).entries(after=1)] == ["mine", second.hash.hex()[:16]]
    assert verify(log).ok


def test_what_is_put_in_line_elsewhere_than_at_the_end_is_a_conflict(log: Log, engine: Engine) -> None:
    with pytest.raises(ConflictError):
        log.put_in_line(fact("a"), expect=0)
    Log(engine, log.id).append(fact("theirs"))
    with pytest.raises(ConflictError):
        log.land(log.put_in_line(fact("a"), expect=1))
    assert log.append(fact("b")).seq == 3
    assert Log(engine, log.id).state() == log.state()


def test_an_id_in_line_that_was_used_before_is_known_when_it_is_stored(log: Log, engine: Engine) -> None:
    given = log.append(fact("a"), commit_id="mine")
    assert log.land(log.put_in_line(fact("a"), expect=given.seq, commit_id="mine")).hash == given.hash
    with pytest.raises(InvalidInputError) as refused:
        log.land(log.put_in_line(fact("b"), expect=given.seq, commit_id="mine"))
    assert refused.value.kind == "commit-id-reused"
    assert Log(engine, log.id).state() == log.state()


def test_what_is_done_at_one_look_is_refused_when_another_writer_came_between(log: Log, engine: Engine) -> None:
    other = Log(engine, log.id)
    with log.one_look():
        seen, _ = log.parts("turn")
        other.append(fact("theirs"))
        assert log.parts("turn")[0] == seen
        with pytest.raises(ConflictError):
            log.append(fact("ours"), expect=seen)
        assert log.parts("turn")[0] == seen + 1
    other.append(fact("theirs again"))
    assert log.parts("turn")[0] == seen + 2


def test_one_look_asks_for_the_head_once(log: Log, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    other, asked, head = Log(engine, log.id), [], engine.head

    def noted(session: SessionId) -> Head:
        asked.append(session)
        return head(session)

    monkeypatch.setattr(engine, "head", noted)
    with other.one_look():
        other.parts("turn")
        other.state()
    assert asked == [log.id]


def test_many_that_use_one_id_at_once_store_it_once(engine: Engine, log: Log) -> None:
    logs = [Log(engine, log.id) for _ in range(4)] + [log] * 4
    heads = in_parallel(lambda each: each.append(fact("once"), commit_id="mine"), logs)
    assert {(h.seq, h.hash) for h in heads} == {(2, log.head().hash)}
    assert log.head().seq == 2


def test_a_lost_answer_is_asked_for_again_and_stored_once(new_log: NewLog, engine: Engine) -> None:
    lossy = LossyEngine(engine)
    log = new_log(on=cast(Engine, lossy))
    lossy.lose = 1
    assert log.append(fact("a")).seq == 2
    assert log.append(fact("b")).seq == 3
    assert [c.commit_id for [c] in lossy.submitted[1:3]] == [lossy.submitted[1][0].commit_id] * 2
    assert verify(log).ok


def test_an_answer_lost_twice_is_unknown_and_the_log_goes_on(new_log: NewLog, engine: Engine) -> None:
    lossy = LossyEngine(engine)
    log = new_log(on=cast(Engine, lossy))
    lossy.lose = 2
    with pytest.raises(UnavailableError):
        log.append(fact("a"), commit_id="mine")
    assert log.append(fact("a"), commit_id="mine").seq == 2
    assert log.append(fact("b")).seq == 3
    assert log.state()["facts"].keys() == {"a", "b"}


def test_an_append_whose_answer_was_lost_stays_unknown_when_the_store_cannot_be_asked(
    new_log: NewLog, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = LossyEngine(engine)
    log = new_log(on=cast(Engine, lossy))
    submit = lossy.submit

    def once(*commits: Any) -> Any:
        def refuse(*_: Any) -> Any:
            raise UnavailableError("out of reach", kind="unreachable")

        monkeypatch.setattr(lossy, "submit", refuse)
        return submit(*commits)

    monkeypatch.setattr(lossy, "submit", once)
    lossy.lose = 1
    with pytest.raises(UnavailableError) as told:
        log.append(fact("a"))
    assert told.value.kind == "answer-unknown"
    assert engine.head(log.id).seq == 2


def test_an_engine_that_refuses_to_take_an_append_leaves_the_log_usable(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*commits: Any) -> Any:
        raise UnavailableError("out of reach")

    with monkeypatch.context() as patch:
        patch.setattr(log.engine, "submit", refuse)
        with pytest.raises(UnavailableError):
            log.append(fact("a"))
    assert log.append(fact("b")).seq == 2


# Several writers


def test_two_log_objects_write_in_turns_without_losing_anything(engine: Engine, log: Log) -> None:
    other = Log(engine, log.id)
    for i in range(10):
        (log, other)[i % 2].append(fact(str(i)))
    assert log.head().seq == 11
    assert log.state() == other.state()
    assert log.state_hash() == other.state_hash() == Log(engine, log.id).state_hash()
    assert verify(log).ok


def test_an_event_is_checked_against_the_state_it_really_meets(engine: Engine, log: Log) -> None:
    other = Log(engine, log.id)
    assert other.state()["turn"]["status"] == ""
    log.append(ev.TurnStarted())
    # What this object last saw would allow another turn; what is there does not.
    with pytest.raises(NotAllowedError):
        other.append(ev.TurnStarted())
    # And the other way round: what it last saw would not allow this.
    log.append(ev.TurnEnded())
    assert other.append(ev.TurnStarted()).turn == 2


def test_a_patch_is_checked_against_the_state_it_really_meets(engine: Engine, log: Log) -> None:
    other = Log(engine, log.id)
    other.state()
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": 1}]))
    other.append(ev.StatePatched(patch=[{"op": "replace", "path": "/data/x", "value": 2}]))
    assert log.state()["data"] == {"x": 2}


def test_a_conflict_takes_back_everything_in_flight(engine: Engine, log: Log) -> None:
    """Sealed on a head that is no longer there: counters, sets and payloads must come from the new one."""
    other = Log(engine, log.id)
    other.state()
    for i in range(3):
        log.append(ev.ActionRequested(action=f"a{i}", tool="t"), message(f"{i} {BIG}"))
        other.append(ev.ActionRequested(action=f"b{i}", tool="t"), message(f"{i} {BIG}"))
    assert log.state()["tools_used"]["t"]["calls"] == 6
    for entry in other.entries():
        if entry.kind == "message.added":
            assert other.value(entry, entry.body["content"]).endswith(BIG)
    assert verify(other).ok


@pytest.mark.parametrize("objects", [1, 8])
def test_eight_threads_on_one_session_lose_no_update(engine: Engine, log: Log, objects: int) -> None:
    """Each append adds one token, so the sum tells whether any was sealed on a state that was not the last."""
    each = 50 if objects == 1 else 12
    logs = [log] * 8 if objects == 1 else [Log(engine, log.id) for _ in range(8)]

    def spend(mine: Log) -> list[int]:
        return [mine.append(ev.BudgetSpent(cost=ev.Cost(tokens_in=1))).seq for _ in range(each)]

    answers = in_parallel(spend, logs)
    assert sorted(seq for seqs in answers for seq in seqs) == list(range(2, 8 * each + 2))
    assert all(seqs == sorted(seqs) for seqs in answers)
    assert log.state()["budget"]["spent"]["tokens"] == 8 * each
    assert [e.body["delta"][0]["value"]["tokens"] for e in log.entries(after=1)] == list(range(1, 8 * each + 1))
    assert verify(log).ok


def test_readers_see_a_whole_state_while_others_write(engine: Engine, log: Log) -> None:
    stop = threading.Event()

    def write(mine: Log) -> None:
        try:
            for i in range(40):
                mine.append(ev.FactRecorded(key="a", value=i), ev.FactRecorded(key="b", value=i))
        finally:
            stop.set()

    def read(mine: Log) -> None:
        while not stop.is_set():
            facts = mine.state()["facts"]
            if facts:
                assert facts["a"]["value"] == facts["b"]["value"]
            assert len(list(mine.entries())) % 2 == 1

    in_parallel(lambda work: work[0](work[1]), [(write, log), (read, log), (read, Log(engine, log.id))])


# Fencing


def test_an_old_epoch_is_shut_out_and_may_still_bring_evidence(engine: Engine, log: Log) -> None:
    worker = Log(engine, log.id)
    old = worker.take_lease("worker")
    worker.append(ev.ActionRequested(action="a", tool="t"), guard=old)
    new = log.take_lease("rescuer", force=True)
    assert new == old + 1
    with pytest.raises(ConflictError) as refused:
        worker.append(ev.ActionSucceeded(action="a"), guard=old)
    assert refused.value.kind == "fenced"
    worker.append(ev.ActionEvidence(action="a", outcome="succeeded", epoch=old))
    log.append(ev.ActionSucceeded(action="a"), guard=new)
    assert log.state()["pending_actions"] == {}


def test_a_fenced_append_leaves_the_log_usable(log: Log) -> None:
    epoch = log.take_lease("me")
    with pytest.raises(ConflictError):
        log.append(fact("a"), guard=epoch - 1)
    assert log.append(fact("b"), guard=epoch).seq == 3
    assert set(log.state()["facts"]) == {"b"}


# Illegal moves


@pytest.mark.parametrize(
    ("before", "event", "legal"),
    [
        ([], ev.TurnEnded(), "turn.started"),
        ([], ev.TurnStarted(retry=True), "turn.started"),
        ([ev.TurnStarted()], ev.TurnStarted(), "turn.ended"),
        ([], ev.ActionStarted(action="a"), "action.requested"),
        ([ev.ActionRequested(action="a", tool="t")], ev.ActionApproved(action="a"), "action.started"),
        ([ev.ActionRequested(action="a", tool="t", approval=True)], ev.ActionStarted(action="a"), "action.approved"),
        ([ev.ActionRequested(action="a", tool="t")], ev.ActionRequested(action="a", tool="t"), "action.succeeded"),
        ([ev.SessionPaused()], fact("a"), "session.resumed"),
        ([ev.SessionClosed()], fact("a"), "session.reopened"),
        ([ev.SessionClosed()], ev.SessionClosed(), "session.archived"),
        ([], ev.SessionReopened(), "session.paused"),
        ([], ev.SessionArchived(), "session.closed"),
        ([], ev.SessionOpened(), "session.closed"),
        ([ev.TurnStarted()], ev.SessionClosed(), "turn.ended"),
        ([ev.ActionRequested(action="a", tool="t")], ev.SessionClosed(), "action.abandoned"),
    ],
    ids=lambda x: x.kind if isinstance(x, ev.Event) else None,
)
def test_an_illegal_move_names_the_legal_ones(log: Log, before: list[ev.Event], event: ev.Event, legal: str) -> None:
    for each in before:
        log.append(each)
    with pytest.raises(NotAllowedError) as refused:
        log.append(event)
    assert legal in refused.value.legal
    assert log.head().seq == 1 + len(before)


def test_uncertain_actions_may_outlive_the_session(log: Log) -> None:
    log.append(ev.ActionRequested(action="a", tool="t"), ev.ActionUncertain(action="a"), ev.SessionClosed())
    log.append(ev.ActionReconciled(action="a", outcome="succeeded"))
    assert log.state()["pending_actions"] == {}


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/goal", "value": "g"}],
        [{"op": "add", "path": "/facts/a", "value": 1}],
        [{"op": "add", "path": "/database", "value": 1}],
        [{"op": "add", "path": "", "value": {}}],
        [{"op": "move", "path": "/data/a", "from": "/data/b"}],
        [{"op": "test", "path": "/data", "value": {}}],
        [{"op": "add", "path": "/data/a/b", "value": 1}],
        [{"op": "add", "path": "/data/l/-", "value": 1}],
        [{"op": "add", "path": "/data/l/7", "value": 1}],
        [{"op": "add", "path": "/data/a"}],
        [{"op": "remove", "path": "/data/a"}],
        [{"op": "add"}],
        [{}],
        [{"op": "add", "path": 5, "value": 1}],
    ],
)
def test_a_patch_that_does_not_fit_is_invalid_and_changes_nothing(new_log: NewLog, patch: list[dict[str, Any]]) -> None:
    log = new_log(data={"l": [1]})
    before = log.state_hash()
    with pytest.raises(InvalidInputError):
        log.append(ev.StatePatched(patch=patch))
    assert (log.head().seq, log.state_hash()) == (1, before)


@pytest.mark.parametrize(
    "op",
    [
        {"op": "remove", "path": "/data"},
        {"op": "replace", "path": "/data", "value": 5},
        {"op": "add", "path": "/data", "value": []},
        {"op": "add", "path": "/data", "value": None},
    ],
)
def test_the_users_part_stays_an_object(log: Log, op: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        log.append(ev.StatePatched(patch=[op]))
    log.append(ev.StatePatched(patch=[{"op": "replace", "path": "/data", "value": {"a": 1}}]))
    log.rewind(1)
    assert log.state()["data"] == {}


@pytest.mark.parametrize(
    "event",
    [
        ev.HistoryRewound(to=1),
        ev.SessionForked(parent="s_01HF7YAT000000000000000000", at=1, hash="00" * 32),
        ev.PayloadErased(erased=(ev.Replacement(1, {}),)),
        ev.RangePruned(upto=1, last_hash="00" * 32, base={}),
        ev.SessionDeleted(),
    ],
    ids=lambda e: e.kind,
)
def test_what_only_goes_with_a_deed_cannot_just_be_said(log: Log, event: ev.Event) -> None:
    with pytest.raises((NotAllowedError, InvalidInputError)):
        log.append(event)


# Payloads


def test_large_values_are_stored_once_and_found_from_everywhere(log: Log) -> None:
    log.append(message(BIG), message(BIG))
    log.append(ev.ActionRequested(action="a", tool="t", input=BIG))
    log.append(ev.ActionSucceeded(action="a", output={"text": BIG}))
    stored = [digest for c in log.engine.read(log.id, payloads=True) for digest, _ in c.payloads]
    assert len(stored) == len(set(stored)) == 2
    found = [log.value(e, value) for e in log.entries() for value in e.body.values()]
    assert found.count(BIG) == 3
    assert found.count({"text": BIG}) == 1


def test_another_log_object_finds_payloads_it_did_not_write(engine: Engine, log: Log) -> None:
    log.append(message(BIG))
    log.append(message(BIG))
    other = Log(engine, log.id)
    other.append(message(BIG))
    for seq in (2, 3, 4):
        entry = other.entry(seq)
        assert other.value(entry, entry.body["content"]) == BIG


def test_a_payload_of_a_refused_append_is_not_taken_for_stored(log: Log) -> None:
    for _ in range(2):
        with pytest.raises(NotAllowedError):
            log.append(message(BIG), ev.TurnEnded())
    log.append(message(BIG))
    entry = log.entry(2)
    assert log.value(entry, entry.body["content"]) == BIG


# Opening


def test_a_session_that_is_not_there_is_not_opened(engine: Engine, log: Log) -> None:
    with pytest.raises(NotFoundError):
        Log(engine, new_session())
    with pytest.raises(ConflictError):
        Log.create(engine, log.id, ev.SessionOpened())


def test_the_state_is_the_callers_own(log: Log) -> None:
    log.append(fact("a", [1]))
    taken = log.state()
    taken["facts"]["a"]["value"].append(2)
    taken["data"]["mine"] = 1
    assert log.state()["facts"]["a"]["value"] == [1]
    assert log.state()["data"] == {}


def test_what_was_passed_in_can_be_changed_afterwards(log: Log) -> None:
    value = {"list": [1]}
    log.append(fact("a", value), ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": value}]))
    value["list"].append(2)
    assert log.state()["facts"]["a"]["value"] == {"list": [1]}
    assert log.state()["data"]["x"] == {"list": [1]}
    assert log.state() == Log(log.engine, log.id).state()


def test_a_state_that_never_was_is_not_found(log: Log) -> None:
    for at in (0, -1, 2):
        with pytest.raises(NotFoundError):
            log.state(at)
        with pytest.raises(NotFoundError):
            log.entry(at)


def test_snapshots_are_taken_and_change_no_answer(engine: Engine, log: Log) -> None:
    for i in range(60):
        log.append(fact(f"k{i % 7}", f"{i} {'x' * 2000}"))
    assert engine.snapshot(log.id, upto=61) is not None
    states = [log.state(at) for at in range(1, 62)]
    assert verify(log).ok
    engine.drop_snapshots(log.id)
    assert [Log(engine, log.id).state(at) for at in range(1, 62)] == states
