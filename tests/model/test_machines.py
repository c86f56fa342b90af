"""The tables of the three state machines are complete and consistent."""

import pytest

from wakelog.model import machines
from wakelog.model.events import KINDS
from wakelog.model.machines import ACTION, ALWAYS, SESSION, TURN, WHILE_PAUSED, allowed_in, are_late, legal_in

STATUSES = ("open", "active", "paused", "closed", "archived", "deleted")


@pytest.mark.parametrize("table", [SESSION, TURN, ACTION, ALWAYS, WHILE_PAUSED])
def test_every_kind_in_a_table_is_a_kind(table: object) -> None:
    assert set(table) <= set(KINDS)  # type: ignore[call-overload]


def test_every_action_kind_is_in_the_action_table_or_evidence() -> None:
    assert {kind for kind in KINDS if kind.startswith("action.")} == {*ACTION, "action.evidence"}


def test_every_session_and_turn_kind_is_in_its_table() -> None:
    assert {kind for kind in KINDS if kind.startswith("session.")} <= set(SESSION)
    assert {kind for kind in KINDS if kind.startswith("turn.")} == set(TURN)


def test_every_status_of_a_session_can_be_reached() -> None:
    reached, fresh = {""}, {""}
    while fresh:
        fresh = {to for origins, to in SESSION.values() if origins & reached} - reached
        reached |= fresh
    assert reached == {"", *STATUSES}


def test_every_status_of_an_action_can_be_reached_and_left() -> None:
    reached, fresh = {"", "waiting"}, {""}
    while fresh:
        fresh = {to for origins, to in ACTION.values() if origins & reached} - reached
        reached |= fresh
    assert reached == {"", "waiting", "requested", "running", "uncertain", "done"}
    for status in reached - {"", "done"}:
        assert any(status in origins and to == "done" for origins, to in ACTION.values()), status


def test_nothing_is_allowed_after_deletion() -> None:
    assert [kind for kind in KINDS if allowed_in("deleted", kind)] == []
    assert legal_in("deleted") == ()


def test_nothing_but_opening_is_allowed_before_it() -> None:
    assert [kind for kind in KINDS if allowed_in("", kind)] == ["session.opened"]
    assert not any(allowed_in(status, "session.opened") for status in STATUSES)


def test_what_is_allowed_in_a_closed_session_is_what_may_come_late() -> None:
    """The log asks `allowed_in`, the engine is told `are_late`: they must not disagree."""
    for kind in KINDS:
        if allowed_in("closed", kind) or allowed_in("archived", kind):
            assert are_late([kind]) or kind == "session.forked", kind


def test_after_a_session_is_reopened_everything_may_come_in_the_same_commit() -> None:
    assert are_late(["note.added", "session.reopened", "fact.recorded"])
    assert not are_late(["fact.recorded", "session.reopened"])


def test_what_an_operator_may_always_do_is_allowed_everywhere_but_after_deletion() -> None:
    for kind in ALWAYS:
        assert all(allowed_in(status, kind) for status in STATUSES if status != "deleted"), kind


def test_nothing_new_takes_effect_while_paused() -> None:
    for kind in ("action.requested", "action.started", "action.recorded", "turn.started", "state.patched"):
        assert not allowed_in("paused", kind), kind
    for kind in ("action.succeeded", "action.failed", "action.uncertain", "turn.ended", "session.resumed"):
        assert allowed_in("paused", kind), kind


@pytest.mark.parametrize("status", STATUSES)
def test_the_legal_moves_named_are_the_ones_allowed(status: str) -> None:
    assert set(legal_in(status)) == {kind for kind in SESSION if allowed_in(status, kind) and kind != "session.forked"}


def test_own_kinds_are_allowed_where_anything_new_is() -> None:
    assert allowed_in("open", "x.mine")
    assert allowed_in("active", "x.mine")
    assert not allowed_in("closed", "x.mine")


@pytest.mark.parametrize("status", ["", "waiting", "requested", "running", "uncertain"])
def test_the_legal_moves_of_an_action_are_those_of_the_table(status: str) -> None:
    assert machines.legal_for_action(status) == tuple(
        sorted(k for k, (origins, _) in ACTION.items() if status in origins)
    )
