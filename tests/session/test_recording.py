"""What the recording verbs refuse: empty texts, wrong values, and positions that do not exist."""

from collections.abc import Callable
from typing import Any

import pytest

import wakelog
from wakelog import InvalidInputError, NotFoundError
from wakelog.session import Session

Verb = Callable[[Any], Any]


@pytest.fixture
def session() -> Session[Any]:
    return wakelog.open("memory:").session("agent")


EMPTY: dict[str, Verb] = {
    "message": lambda s: s.message("", "x"),
    "decide": lambda s: s.decide(""),
    "decide in white": lambda s: s.decide(" \n"),
    "fact": lambda s: s.fact("", 1),
    "retract": lambda s: s.retract(""),
    "dead end": lambda s: s.dead_end(""),
    "artefact": lambda s: s.artefact(""),
    "file": lambda s: s.files.record(""),
    "touch": lambda s: s.context.touch(""),
    "goal": lambda s: s.set_goal(""),
    "label": lambda s: s.label({"": "a"}),
    "checkpoint": lambda s: s.checkpoint(""),
    "note": lambda s: s.note(""),
    "spawned": lambda s: s.calls.spawned(""),
    "returned": lambda s: s.calls.returned(""),
    "flag": lambda s: s.monitors.flag(""),
    "turn": lambda s: s.turn("x", role=""),
    "lease": lambda s: s.life.take_lease(""),
}
LEGAL: dict[str, tuple[Verb, str]] = {
    "fact": (lambda s: s.fact("a", 1, trust="trustd"), "trusted, unverified, untrusted"),
    "message": (lambda s: s.message("user", "x", trust="trustd"), "trusted, unverified, untrusted"),
    "untrusted": (lambda s: wakelog.untrusted("web", "trustd").__enter__(), "trusted, unverified, untrusted"),  # type: ignore[arg-type]
    "resting on": (lambda s: s.trust.taint(trust="trustd"), "trusted, unverified, untrusted"),
    "file": (lambda s: s.files.record("a", "edited"), "created, modified, deleted"),
    "touch": (lambda s: s.context.touch("a", "db"), "file, app, data_source"),
    "flag": (lambda s: s.monitors.flag("a", severity="bad"), "info, warning, error"),
    "resume": (lambda s: s.turn("x", resume="maybe"), "auto, always, never"),
}
NOWHERE: dict[str, Verb] = {
    "checkpoint": lambda s: s.checkpoint("a", 999),
    "note": lambda s: s.note("a", 999),
    "flag": lambda s: s.monitors.flag("a", on=999),
}


@pytest.mark.parametrize("verb", EMPTY.values(), ids=EMPTY)
def test_a_text_that_says_nothing_is_refused(session: Session[Any], verb: Verb) -> None:
    head = session.head
    with pytest.raises(InvalidInputError) as caught:
        verb(session)
    assert caught.value.kind == "empty-text"
    assert session.head == head


@pytest.mark.parametrize(("verb", "legal"), LEGAL.values(), ids=LEGAL)
def test_a_wrong_word_is_refused_with_the_legal_ones(session: Session[Any], verb: Verb, legal: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        verb(session)
    assert legal in caught.value.hint


@pytest.mark.parametrize("verb", NOWHERE.values(), ids=NOWHERE)
def test_a_place_that_is_not_there_is_refused(session: Session[Any], verb: Verb) -> None:
    with pytest.raises(NotFoundError) as caught:
        verb(session)
    assert caught.value.kind == "event-not-found"


@pytest.mark.parametrize("field", ["alternatives", "assumptions", "evidence"])
def test_one_text_where_a_list_is_meant_is_not_taken_apart(session: Session[Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        session.decide("go", **{field: "wait"})
    assert caught.value.kind == "not-a-list"


def test_labels_that_are_none_are_refused(session: Session[Any]) -> None:
    with pytest.raises(InvalidInputError, match="labels"):
        session.label([1])  # type: ignore[arg-type]


def test_a_note_on_the_session_and_no_goal_are_legal(session: Session[Any]) -> None:
    session.note("on the session")
    session.set_goal(None)
    assert session.state().goal is None
