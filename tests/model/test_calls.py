"""Events are folded into calls: every kind, and every course of a call."""

from typing import Any

import pytest

from wakelog.model.calls import ANSWERS, BEGIN_KINDS, END_KINDS, Call, Calls, outcome_of
from wakelog.model.machines import ACTION
from wakelog.model.records import Header


def play(*events: tuple[str, dict[str, Any]], calls: Calls[Call] | None = None, first: int = 1) -> Calls[Call]:
    calls = calls or Calls(Call)
    for seq, (kind, body) in enumerate(events, first):
        calls.take(seq, kind, header(seq, kind), {"action": "a", **body})
    return calls


def header(seq: int, kind: str, **more: Any) -> Header:
    return Header(seq=seq, kind=kind, at=seq, body_hash="", turn=2, attempt=3, **more)


Told = tuple[str, dict[str, Any]]
ASKED: Told = (
    "action.requested",
    {"tool": "t", "effect": "write", "input_hash": "h", "key": "k"},
)
STARTED: Told = ("action.started", {})
BEFORE: dict[str, tuple[Told, ...]] = {
    "": (),
    "waiting": (("action.requested", {"approval": True}),),
    "requested": (ASKED,),
    "running": (ASKED, STARTED),
    "uncertain": (ASKED, STARTED, ("action.uncertain", {})),
}


def test_the_sets_of_kinds_come_from_the_machine() -> None:
    assert {"action.requested", "action.recorded"} == BEGIN_KINDS
    assert set(ACTION) - END_KINDS == {"action.requested", "action.approved", "action.started", "action.uncertain"}
    assert {"action.denied", "action.abandoned"} == END_KINDS - ANSWERS


def test_a_request_says_what_is_called() -> None:
    call = play(ASKED).by_action["a"]
    assert (call.action, call.tool, call.effect, call.input_hash, call.key) == ("a", "t", "write", "h", "k")
    assert (call.request, call.turn, call.attempt, call.seqs) == (1, 2, 3, [1])
    assert (call.status, call.outcome, call.tries, call.settled) == ("requested", "", 0, 0)


def test_an_undeclared_effect_is_external() -> None:
    assert play(("action.requested", {})).by_action["a"].effect == "external"


@pytest.mark.parametrize("kind", sorted(ACTION))
def test_every_kind_leads_where_the_machine_says(kind: str) -> None:
    origins, status = ACTION[kind]
    before = {"": (), "waiting": (("action.requested", {"approval": True}),), "requested": (ASKED,)}
    before |= {"running": (ASKED, STARTED), "uncertain": (ASKED, STARTED, ("action.uncertain", {}))}
    for origin in origins:
        call = play(*before[origin], (kind, {"outcome": "failed"} if kind == "action.reconciled" else {})).by_action[
            "a"
        ]
        assert call.status == status
        assert bool(call.settled) == (kind in END_KINDS)
        assert call.seqs == list(range(1, len(BEFORE[origin]) + 2))


@pytest.mark.parametrize("kind", ["action.failed", "action.timed_out"])
def test_a_retry_goes_back_to_requested_and_counts_its_tries(kind: str) -> None:
    calls = play(ASKED, STARTED, (kind, {"retry": True}))
    call = calls.by_action["a"]
    assert (call.status, call.has_begun, call.settled) == ("requested", False, 0)
    assert call.outcome == kind.removeprefix("action.")
    assert not call.is_failure
    play(STARTED, calls=calls, first=4)
    assert (call.status, call.outcome, call.tries) == ("running", "", 2)
    play(("action.succeeded", {}), calls=calls, first=5)
    assert (call.outcome, call.tries, call.settled, call.seqs) == ("succeeded", 2, 5, [1, 2, 3, 4, 5])


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "never_ran"])
def test_an_uncertain_call_stays_open_until_it_is_reconciled(outcome: str) -> None:
    calls = play(ASKED, STARTED, ("action.uncertain", {}))
    call = calls.by_action["a"]
    assert (call.status, call.outcome, call.settled) == ("uncertain", "uncertain", 0)
    play(("action.reconciled", {"outcome": outcome}), calls=calls, first=4)
    assert (call.status, call.outcome, call.settled) == ("done", outcome, 4)
    assert call.is_failure == (outcome == "failed")


def test_a_recorded_call_is_over_at_once() -> None:
    call = play(("action.recorded", {"tool": "t", "outcome": "timed_out"})).by_action["a"]
    assert (call.status, call.outcome, call.request, call.settled, call.tries) == ("done", "timed_out", 1, 1, 1)
    assert outcome_of("action.recorded", {}) == "succeeded"


def test_a_call_that_is_answered_without_a_start_was_tried_once_and_a_denied_one_never() -> None:
    assert play(ASKED, ("action.succeeded", {})).by_action["a"].tries == 1
    assert play(ASKED, ("action.denied", {})).by_action["a"].tries == 0


def test_an_inherited_call_is_abandoned_and_remembers_that_it_had_begun() -> None:
    call = play(ASKED, STARTED, ("action.abandoned", {"inherited": True})).by_action["a"]
    assert (call.status, call.outcome, call.has_begun) == ("done", "abandoned", True)


def test_evidence_belongs_to_a_call_and_changes_nothing() -> None:
    call = play(ASKED, STARTED, ("action.timed_out", {}), ("action.evidence", {"outcome": "succeeded"})).by_action["a"]
    assert (call.outcome, call.settled, call.seqs) == ("timed_out", 3, [1, 2, 3, 4])


def test_changed_files_are_apart_from_a_calls_own_events() -> None:
    call = play(ASKED, STARTED, ("action.succeeded", {}), ("file.changed", {"path": "x"})).by_action["a"]
    assert (call.seqs, call.files) == ([1, 2, 3], [4])


def test_a_name_that_is_used_again_is_another_call() -> None:
    calls = play(ASKED, ("action.denied", {}), ASKED)
    assert calls.by_action["a"].request == 3
    assert [call.status for call in calls.by_request.values()] == ["done", "requested"]


def test_an_outcome_whose_request_was_not_taken_belongs_to_no_call() -> None:
    calls = Calls(Call)
    end = header(9, "action.succeeded", cause=4)
    assert calls.take(9, "action.succeeded", end, {"action": "a"}) is None
    asked = calls.take(4, "action.requested", header(4, "action.requested"), {"action": "a", "tool": "t"})
    assert calls.take(9, "action.succeeded", end, {"action": "a"}) is asked


def test_a_pruned_outcome_is_found_by_its_cause() -> None:
    calls = Calls(Call)
    asked = calls.take(4, "action.requested", header(4, "action.requested"), {})
    assert calls.take(5, "action.failed", header(5, "action.failed", cause=4), {}) is asked
    assert asked is not None
    assert asked.outcome == "failed"


def test_other_kinds_tell_of_no_call() -> None:
    calls = play(ASKED)
    assert calls.take(2, "message.added", header(2, "message.added"), {"action": "a"}) is None


def test_a_reader_may_keep_more_of_a_call() -> None:
    class Timed(Call):
        began_at: int = 0

    calls = Calls(Timed)
    asked = calls.take(1, "action.requested", header(1, "action.requested"), {"action": "a"})
    assert type(asked) is Timed
