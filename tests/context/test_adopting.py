"""A fork taken back: its numbers mean other events here, so what left its window is in this one again."""

from typing import Any

from tests.context.conftest import work
from tests.context.validity import check
from wakelog.session import Session
from wakelog.store import Store


def _texts(session: Session[Any]) -> list[str]:
    context = session.context.window()
    check(context)
    return [i.text for i in context.items if i.kind == "message"]


def test_what_left_the_forks_window_is_in_this_one_again(store: Store) -> None:
    session = store.session("s")
    work(session, 2)
    fork = session.fork(name="f")
    work(fork, 3)
    said = _texts(fork)
    left = fork.context.evict(f"e{fork.seq('@3') - 5}..e{fork.seq('@4')}")
    assert left.what == "range"
    assert len(_texts(fork)) == len(said) - 4
    session.adopt(fork)
    assert _texts(session) == said
    assert session.state().evicted_keys == {}


def test_what_left_before_the_fork_stays_out(store: Store) -> None:
    session = store.session("s")
    calls = work(session, 3)
    session.context.evict(f"e{calls[0]}:output")
    fork = session.fork(name="f")
    work(fork, 1)
    session.adopt(fork)
    assert [e.key for e in session.context.window().evicted] == [f"e{calls[0]}:output"]


def test_a_compaction_made_in_the_fork_comes_along(store: Store) -> None:
    session = store.session("s")
    work(session, 1)
    fork = session.fork(name="f")
    work(fork, 2)
    fork.context.compact("@2", "@2", "the second turn")
    said = [m.text for m in fork.messages()]
    session.adopt(fork)
    assert [m.text for m in session.messages()] == said
    [made] = session.context.compactions()
    session.context.expand(made.seq)
    assert "question 2" in [m.text for m in session.messages()]
