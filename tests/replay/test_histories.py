"""What is replayed: through forks, rewinds, attempts, crashes and pruning."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.replay import agents
from tests.replay.agents import ran, run, search
from wakelog.errors import DivergenceError, NotAllowedError
from wakelog.session import Session


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()
    agents.WORLD["now"] = 100


def look(s: Session[Any], text: str, *queries: str, retry: bool = False, fails: bool = False) -> None:
    with s.turn(user=text, retry=retry):
        for q in queries:
            search(q)
        if fails:
            raise TimeoutError("too long")


def same(session: Session[Any], where: str | None, text: str, *queries: str) -> Any:
    """Replays one turn that makes these calls; nothing must run."""
    ran.clear()
    with session.replay(where) as replay:
        look(replay.session, text, *queries)
    assert replay.report.ok
    assert ran == []
    return replay


def test_the_accepted_attempt_is_replayed_and_one_can_be_chosen(session: Session[Any]) -> None:
    look(session, "first", "z")
    with pytest.raises(TimeoutError):
        look(session, "go", "a", fails=True)
    look(session, "go", "b", "c", retry=True)
    replay = same(session, "@2", "go", "b", "c")
    assert replay.session.state().turn.attempt == 2
    assert replay.session.log.state_hash() == session.log.state_hash()
    same(session, "@2.2", "go", "b", "c")
    same(session, "@2.best", "go", "b", "c")
    ran.clear()
    with pytest.raises(TimeoutError), session.replay("@2.1") as first:
        look(first.session, "go", "a", fails=True)
    assert first.report.count("same") == 1
    assert first.session.state().turn.attempt == 1
    assert ran == []


def test_a_loop_of_attempts_goes_through_the_accepted_one(session: Session[Any]) -> None:
    def agent(s: Session[Any], text: str) -> None:
        for attempt in s.attempts(3, on=TimeoutError):
            with attempt:
                search("a")
                if agents.WORLD["now"] < 102:
                    agents.WORLD["now"] += 1
                    raise TimeoutError

    agent(session, "go")
    ran.clear()
    with session.replay("@1") as replay:
        agent(replay.session, "go")
    assert replay.report.ok
    assert ran == []


def test_what_was_rewound_is_not_replayed(session: Session[Any]) -> None:
    look(session, "one", "a")
    look(session, "two", "b")
    session.rewind("@1")
    look(session, "three", "c")
    with session.replay() as replay:
        look(replay.session, "one", "a")
        look(replay.session, "three", "c")
    assert replay.report.ok
    same(session, "@2", "two", "b")


def test_a_range_inside_a_turn_is_the_whole_turn(session: Session[Any]) -> None:
    look(session, "one", "a")
    look(session, "two", "b", "c")
    middle = next(e.seq for e in session["@2"] if e.kind == "action.succeeded")
    same(session, f"e{middle}", "two", "b", "c")
    with session.replay(f"e{middle}..@2") as replay:
        look(replay.session, "two", "b", "c")


def test_forks_are_replayed_through_their_parents(session: Session[Any], store: wakelog.Store) -> None:
    look(session, "one", "a")
    look(session, "two", "b")
    child = session.fork("@1", name="child")
    look(child, "deux", "c")
    grandchild = child.fork("@2", name="grandchild")
    look(grandchild, "trois", "d")
    same(child, "@1", "one", "a")
    same(child, "@2", "deux", "c")
    same(grandchild, "@1", "one", "a")
    replay = same(grandchild, "@3", "trois", "d")
    assert replay.session.log.state_hash() == grandchild.log.state_hash()
    with grandchild.replay() as replay:
        for text, q in (("one", "a"), ("deux", "c"), ("trois", "d")):
            look(replay.session, text, q)
    assert replay.report.ok
    with grandchild.replay("@2", mode="fill") as replay:
        look(replay.session, "deux", "c")
    assert replay.session.head.fork is not None


_CHILD = """
import os, sys, wakelog
from tests.replay.agents import search, send
store = wakelog.open(sys.argv[1])
session = store.session("agent")

@wakelog.tool(effect="read")
def dies(q: str) -> str:
    if sys.argv[2] == "die":
        os.kill(os.getpid(), 9)
    return "lived"

with session.turn(user="go"):
    search("a")
    search("a")
    dies("b")
    search("c")
"""


def test_results_reused_after_a_crash_are_replayed(store: wakelog.Store, url: str) -> None:
    def process(how: str) -> int:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
        done = subprocess.run([sys.executable, "-c", _CHILD, url, how], env=env, timeout=180)
        return done.returncode

    assert process("die") == -signal.SIGKILL
    assert process("live") == 0
    session = store.resume("agent")
    assert any(e.body.get("reused") for e in session.events(kind="action.recorded"))

    @wakelog.tool(effect="read")
    def dies(q: str) -> str:
        ran.append("dies")
        return "no"

    def agent(s: Session[Any], text: str) -> str:
        with s.turn(user=text):
            search("a")
            search("a")
            answer = dies("b")
            search("c")
            return answer

    with session.replay("@1") as replay:
        assert replay.run(agent) == "lived"
    assert [r.verdict for r in replay.report.steps] == ["same"] * 4
    assert ran == []
    with pytest.raises(DivergenceError) as caught, session.replay("@1.1") as replay:
        replay.run(agent)
    assert (caught.value.kind, caught.value.step) == ("no-recorded-outcome", 3)


def test_a_call_approved_between_two_attempts_is_one_step(session: Session[Any]) -> None:
    def agent(s: Session[Any], text: str) -> str:
        @s.tool(approval=True)
        def mail(to: str) -> str:
            ran.append(to)
            return "sent"

        with s.turn(user=text):
            search("a")
            return mail("ada")

    with pytest.raises(NotAllowedError):
        agent(session, "go")
    (action,) = session.state().pending_actions
    session.calls.approve(action, by="me")
    assert agent(session, "go") == "sent"
    ran.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == "sent"
    assert [r.verdict for r in replay.report.steps] == ["same", "same"]
    assert ran == []


def test_a_pruned_session_is_replayed_from_what_is_left(session: Session[Any]) -> None:
    from wakelog.log.removal import prune

    for text in ("one", "two", "three"):
        look(session, text, text)
    prune(session.log, session.seq("@2"), why="old")
    session.log.forget()
    session.log.engine.drop_snapshots(session.id)
    same(session, "@3", "three", "three")
    with pytest.raises(wakelog.WakelogError):
        same(session, "@1", "one", "one")


def test_calls_without_a_turn_are_replayed(session: Session[Any]) -> None:
    def peek(x: int) -> int:
        ran.append("peek")
        return x

    tool = session.tool(effect="read")(peek)
    assert [tool(1), tool(2)] == [1, 2]
    ran.clear()
    with session.replay() as replay:
        assert [tool(1), tool(2)] == [1, 2]
    assert replay.report.ok
    assert ran == []


def test_an_importers_calls_can_be_answered(session: Session[Any]) -> None:
    """Calls that a framework or an importer reports at the end of a turn have no separate intent."""
    from wakelog.codec.canonical import hash_value
    from wakelog.model import events as ev

    with session.turn(user="go"):
        given = {"q": "x", "limit": 3}
        session.append(
            ev.ActionRecorded(
                action="1", tool="search", effect="read", input=given, input_hash=hash_value(given), output=["seen"]
            )
        )
    with session.replay("@1") as replay, replay.session.turn(user="go"):
        assert search("x") == ["seen"]
    assert ran == []


def test_a_closed_session_is_replayed(session: Session[Any]) -> None:
    run(session, "one")
    session.life.end()
    ran.clear()
    with session.replay("@1") as replay:
        replay.run(run)
    assert replay.report.ok
    assert ran == []
