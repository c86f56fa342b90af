"""Undo and redo: any order of rewinds, undos and redos ends where a stack of states says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wakelog
from wakelog.errors import NotFoundError
from wakelog.session import Session


def _known(session: Session[Any]) -> dict[str, Any]:
    return {key: fact.value for key, fact in session.state().facts.items()}


def test_redo_does_again_what_undo_took_back() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        points = [session.fact("n", number) for number in range(3)]
        session.rewind(points[1])
        session.rewind(points[0])
        session.undo()
        session.undo()
        assert _known(session) == {"n": 2}
        session.redo()
        assert _known(session) == {"n": 1}
        session.redo()
        assert _known(session) == {"n": 0}
        with pytest.raises(NotFoundError) as caught:
            session.redo()
        assert caught.value.kind == "nothing-to-redo"


def test_a_new_rewind_leaves_nothing_to_redo() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        points = [session.fact("n", number) for number in range(3)]
        session.rewind(points[0])
        session.undo()
        session.rewind(points[1])
        with pytest.raises(NotFoundError):
            session.redo()
        session.undo()
        assert _known(session) == {"n": 2}


def test_undo_leaves_the_retries_of_a_turn_alone() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        with pytest.raises(ValueError), session.turn("try"):
            raise ValueError
        with session.turn("try", retry=True):
            session.fact("n", 1)
        for verb in (session.undo, session.redo):
            with pytest.raises(NotFoundError):
                verb()


@given(st.lists(st.sampled_from(["fact", "rewind", "undo", "redo"]), max_size=14), st.randoms(use_true_random=False))
def test_any_order_follows_the_stack(steps: list[str], random: Any) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        done: list[dict[str, Any]] = []
        undone: list[dict[str, Any]] = []
        for number, step in enumerate(steps):
            before = _known(session)
            if step == "fact":
                session.fact("n", number)
            elif step == "rewind":
                to = random.randint(1, session.head.seq)
                session.rewind(to)
                done.append(before)
                undone.clear()
            else:
                stack, other, verb = (done, undone, session.undo) if step == "undo" else (undone, done, session.redo)
                if stack:
                    verb()
                    assert _known(session) == stack.pop()
                    other.append(before)
                else:
                    with pytest.raises(NotFoundError):
                        verb()
        assert session.verify().ok
