"""What a model saw at a call, and what entered and left since the call before."""

from typing import Any

from tests.context.conftest import call, work
from wakelog.context.recorded_window import seen_at, window_change
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session


def _ask(session: Session[Any], *, budget: int | None = None, recorded: bool = True) -> int:
    """A model call that was shown the window; returns its request."""
    context = session.context.window(budget)
    ranges = context.ranges if recorded else ()
    request = ev.ActionRequested(
        action=f"m{session.head.seq}", tool="gpt", effect="model", params={"model": "gpt"}, context_hash=context.hash
    )
    seq = session.log.record(EventDraft(request, derived_from=ranges))
    session.append(ev.ActionSucceeded(action=request.action, output="ok"))
    return seq


def test_a_recorded_call_tells_what_was_in_its_window(session: Session[Any]) -> None:
    work(session, 2)
    shown = [i.key for i in session.context.window().items]
    asked = _ask(session)
    work(session, 2)
    session.rewind("@1")
    seen = seen_at(session.log, asked)
    assert (seen.call, seen.recorded, seen.model) == (asked, True, "gpt")
    assert [i.key for i in seen.items] == shown, "whatever happened to the view since"
    assert seen.context_hash == session.log.entry(asked).body["context_hash"]


def test_a_models_answer_is_shown_although_its_question_is_not_in_the_window(session: Session[Any]) -> None:
    session.message("user", "hi")
    session.append(ev.ActionRequested(action="m", tool="gpt", effect="model"))
    session.fact("between", 1)
    said = session.log.record(ev.ActionSucceeded(action="m", output="hello"))
    request = ev.ActionRequested(action="n", tool="gpt", effect="model")
    asked = session.log.record(EventDraft(request, derived_from=((2, 2), (said, said))))
    assert [i.text for i in seen_at(session.log, asked).items] == ["hi", "hello"]


def test_a_call_that_names_nothing_is_told_by_what_would_have_been_offered(session: Session[Any]) -> None:
    work(session, 2)
    asked = _ask(session, recorded=False)
    work(session, 1)
    seen = seen_at(session.log, session.head.seq)
    assert (seen.call, seen.recorded) == (asked, False)
    assert [i.text for i in seen.items if i.role == "user"] == ["question 1", "question 2"]


def test_where_no_model_was_called_it_is_what_would_be_offered(session: Session[Any]) -> None:
    work(session, 2)
    seen = seen_at(session.log, session.seq("@1"))
    assert (seen.call, seen.recorded) == (0, False)
    assert [i.text for i in seen.items if i.role == "user"] == ["question 1"]


def test_what_entered_and_what_left_since_the_call_before(session: Session[Any]) -> None:
    work(session, 3)
    first = _ask(session)
    seq = session.context.compact("@1", "@1", "the first turn")
    evicted = next(i for i in session.context.window().items if i.text == "question 2")
    session.context.evict(evicted.key)
    with session.turn("next"):
        new = call(session)
        second = _ask(session)
    found = window_change(session.log, seen_at(session.log, second))
    assert found.before == first
    entered = [i.key for i in found.entered]
    assert f"e{seq}" in entered
    assert f"e{new}" in entered
    assert {left.item.text.split("\n")[0]: left.how for left in found.left}["question 1"] == "summarised"
    assert {left.item.text: left.how for left in found.left}["question 2"] == "evicted"


def test_an_answer_that_came_meanwhile_enters_anew(session: Session[Any]) -> None:
    seq = session.log.record(ev.ActionRequested(action="a", tool="send"))
    _ask(session)
    session.append(ev.ActionSucceeded(action="a", output="sent"))
    second = _ask(session)
    assert f"e{seq}" in [i.key for i in window_change(session.log, seen_at(session.log, second)).entered]


def test_the_first_call_has_nothing_before_it(session: Session[Any]) -> None:
    work(session, 1)
    asked = _ask(session)
    found = window_change(session.log, seen_at(session.log, asked))
    assert found.before == 0
    assert len(found.entered) == 3
