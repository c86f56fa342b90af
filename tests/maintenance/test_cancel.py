"""Cancelling a session: with a reason, with its sub-agents, and with running calls left uncertain."""

from collections.abc import Iterator

import pytest

import wakelog
from wakelog import events as ev
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.maintenance.cancel import cancel_session
from wakelog.maintenance.live_sessions import find_live
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as store:
        yield store


def test_a_session_is_stopped_and_its_calls_are_settled_honestly(store: Store) -> None:
    session = store.session("s", folder="")
    session.append(ev.TurnStarted(input="go"))
    session.append(ev.ActionRequested(action="never", tool="wire", approval=True))
    session.append(ev.ActionRequested(action="runs", tool="wire"), ev.ActionStarted(action="runs"))
    (stopped,) = cancel_session(store, session, why="it loops")
    assert (stopped.abandoned, stopped.uncertain) == (("never",), ("runs",))
    assert session.status == "closed"
    closed = next(e for e in session.events(kind="session.closed"))
    assert (closed.body["outcome"], closed.body["why"]) == ("cancelled", "it loops")
    assert session.log.state()["turn"]["status"] == "interrupted"
    with pytest.raises(NotAllowedError), session.turn(user="more"):
        pass


def test_sub_agents_are_stopped_too_unless_they_are_left_alone(store: Store) -> None:
    top = store.session("top", folder="")
    child = store.spawn(top, "child", folder="")
    store.spawn(child, "grandchild", folder="")
    store.spawn(top, "done", folder="").life.end()
    store.session("other", folder="")
    (alone,) = cancel_session(store, top.fork(name="copy"), why="x", subagents=True)
    assert alone.name == "copy", "a fork has no sub-agents of its own"
    stopped = cancel_session(store, top, why="over budget")
    assert [each.name for each in stopped] == ["top", "child", "grandchild"]
    assert store.resume("other").status != "closed"
    again = store.session("again", folder="")
    store.spawn(again, "kept", folder="")
    assert len(cancel_session(store, again, why="x", subagents=False)) == 1
    assert store.resume("kept").status != "closed"


def test_cancelling_needs_a_reason_and_a_session_that_lives(store: Store) -> None:
    session = store.session("s", folder="")
    for why in ("", "  "):
        with pytest.raises(InvalidInputError, match="needs a reason"):
            session.life.cancel(why=why)
    session.life.cancel(why="x")
    with pytest.raises(NotAllowedError, match="closed already"):
        cancel_session(store, session, why="x")
    session.life.reopen()
    assert session.status != "closed"


def test_failed_sessions_are_found_whatever_their_age(store: Store) -> None:
    for name, outcome in (("good", "completed"), ("bad", "failed"), ("cut", "interrupted"), ("over", "failed")):
        session = store.session(name, folder="")
        session.append(ev.TurnStarted(input="go"))
        session.append(ev.TurnEnded(outcome=outcome))  # type: ignore[arg-type]
    store.resume("over").life.end()
    later = store.clock() + 10 * 86_400_000_000
    store.clock = lambda: later
    assert sorted(each.session.name for each in find_live(store, failed=True).found) == ["bad", "cut"]
    assert find_live(store).found == ()
