"""Ctrl-C between the steps of a verb: the session can go on in the same process."""

from typing import Any

import pytest

import wakelog
from wakelog.runtime.ambient import current, enter_session
from wakelog.store import Store


@pytest.mark.parametrize("is_entered", [False, True])
def test_a_turn_that_was_interrupted_while_it_opened_is_over(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_entered: bool
) -> None:
    session, outer = store.session("a", data={"n": 0}), store.session("outer")

    def interrupted(inner: Any) -> None:
        monkeypatch.undo()
        if is_entered:
            enter_session(inner)
        raise KeyboardInterrupt

    with outer.turn("around it"):
        monkeypatch.setattr("wakelog.session.turn.enter_session", interrupted)
        with pytest.raises(KeyboardInterrupt), session.turn("go"):
            raise AssertionError
        assert current() is outer
    assert session.state().turn.status == "interrupted"
    with session.turn("go on") as turn:
        turn.data["n"] = 1
    assert session.state().data == {"n": 1}


def test_a_call_that_was_interrupted_before_it_began_is_not_at_work(store: Store) -> None:
    session = store.session("a")
    runtime = session._runtime

    class Interrupted(list[str]):
        def append(self, action: str) -> None:
            super().append(action)
            runtime.at_work = list(self)
            raise KeyboardInterrupt

    @session.tool(effect="external", key=lambda: "one")
    def send() -> str:
        return "sent"

    runtime.at_work = Interrupted()
    with session.turn("go"):
        with pytest.raises(KeyboardInterrupt):
            send()
        assert runtime.at_work == []
        assert send() == "sent"


def test_a_turn_that_another_task_is_just_opening_has_no_number_yet(store: Store) -> None:
    session = store.session("a")
    session._turn = session.turn("go")
    with pytest.raises(wakelog.NotAllowedError, match=r"a turn of a is just being opened in this process"):
        session.turn("go").__enter__()
