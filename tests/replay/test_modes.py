"""Fill and live replays: they run in a fork, refuse effects unless allowed, and report differences."""

from typing import Any

import pytest

import wakelog
from tests.replay import agents
from tests.replay.agents import clock, model, ran, run, search, send
from wakelog.errors import NotAllowedError
from wakelog.session import Session


@pytest.fixture(autouse=True)
def _fresh(session: Session[Any]) -> None:
    agents.WORLD["now"] = 100
    run(session, "one")
    run(session, "two")
    ran.clear()
    agents.WORLD["now"] = 5000


def another_prompt(s: Session[Any], text: str) -> str:
    """Like `run`, but the model gets another prompt, so that it answers something else."""
    with s.turn(user=text) as turn:
        found = search(text)
        answer = turn.model(model, ["please", text, *found])
        return send("ada", f"{answer['text']} at {clock()}")


def test_fill_answers_what_is_recorded_and_runs_the_rest(session: Session[Any], store: wakelog.Store) -> None:
    with session.replay("@2", mode="fill", effects="allow") as replay:
        replay.run(another_prompt)
    assert ran == ["model", "send ada"]
    report = replay.report
    assert [(r.verdict, r.how) for r in report.steps] == [
        ("same", "recorded"),
        ("different", "run"),
        ("same", "recorded"),
        ("different", "run"),
    ]
    assert report.divergence is not None
    assert (report.divergence.number, report.divergence.differs) == (2, ("shown",))
    assert not report.ok
    assert str(report).startswith("agent@2: 2 same, 2 different; first: turn @2 called opus(")
    assert report.fork is not None
    assert store.resume(report.fork).head.fork is not None


def test_the_fork_is_made_first_and_begins_where_the_turn_did(session: Session[Any], store: wakelog.Store) -> None:
    before = {h.session for h in store.sessions()}
    replay = session.replay("@2", mode="fill")
    assert {h.session for h in store.sessions()} - before == {replay.session.id}
    forked = next(e for e in replay.session.events(kind="session.forked"))
    assert forked.body["why"] == "replay of agent@2 (fill)"
    assert replay.session.state().turn.number == 1
    assert [m.text for m in replay.session.messages()] == [m.text for m in session.messages("@1")]
    with replay:
        replay.run(run)
    assert replay.report.ok
    assert replay.session.state().turn.number == 2
    assert ran == []


def test_an_effect_that_is_not_recorded_is_refused_by_name(session: Session[Any]) -> None:
    with pytest.raises(NotAllowedError) as caught, session.replay("@2", mode="fill") as replay:
        replay.run(another_prompt)
    assert ran == ["model"]
    assert caught.value.kind == "replay-effects"
    assert 'effects="allow"' in caught.value.hint
    assert "send(body=" in caught.value.message
    assert replay.report.steps[-1].how == "refused"


def test_live_runs_everything_and_compares(session: Session[Any]) -> None:
    with session.replay("@1", mode="live", effects="allow") as replay:
        replay.run(run)
    assert ran == ["search one", "model", "send ada"]
    assert [(r.verdict, r.differs) for r in replay.report.steps] == [
        ("same", ()),
        ("different", ("result",)),
        ("different", ("result",)),
        ("different", ("body",)),
    ]
    found = replay.report.divergence
    assert found is not None
    assert found.note.startswith("{'text': '4 messages, 100', ")
    assert " was recorded, now {'text': '4 messages, 5000', " in found.note
    assert replay.session.verify().ok


def test_live_refuses_effects_too(session: Session[Any]) -> None:
    with pytest.raises(NotAllowedError) as caught, session.replay("@1", mode="live") as replay:
        replay.run(run)
    assert ran == ["search one", "model"]
    assert 'mode="fill" answers recorded calls' in caught.value.hint


def test_new_missing_and_moved_calls_are_rows(session: Session[Any]) -> None:
    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            clock()
            search(text)
            search("more")

    with session.replay("@1", mode="fill") as replay:
        replay.run(other)
    rows = replay.report.steps
    assert [(r.number, r.verdict, r.tool) for r in rows] == [
        (1, "moved", "clock"),
        (1, "same", "search"),
        (2, "new", "search"),
        (2, "missing", "opus"),
        (4, "missing", "send"),
    ]
    assert rows[0].note.startswith("recorded as step 3 (e")
    assert replay.report.divergence == rows[0]


def test_another_input_is_reported_and_the_turn_goes_on(session: Session[Any]) -> None:
    with session.replay("@1", mode="fill", effects="allow") as replay:
        replay.inputs[0] = "uno"
        replay.run(run)
    first = replay.report.steps[0]
    assert (first.kind, first.differs, first.made, first.recorded) == ("turn", ("input",), "'uno'", "'one'")
    assert ran == ["search uno", "model", "send ada"]


def test_an_erased_result_is_run_again_by_fill(session: Session[Any]) -> None:
    from wakelog.log.removal import erase

    outcome = next(e for e in session.events(kind="action.succeeded"))
    erase(session.log, [outcome.seq], why="ticket 42")
    with session.replay("@1", mode="fill") as replay:
        replay.run(run)
    assert ran == ["search one"]
    assert [r.how for r in replay.report.steps] == ["run", "recorded", "recorded", "recorded"]


def test_calls_inside_a_tool_that_runs_are_compared(session: Session[Any]) -> None:
    @wakelog.tool(effect="read")
    def twice(q: str) -> list[str]:
        return search(q) + search(q)

    def agent(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            twice("x")

    agent(session, "go")
    ran.clear()
    with session.replay("@3", mode="live") as replay:
        replay.run(agent)
    assert ran == ["search x", "search x"]
    assert [(r.tool, r.verdict) for r in replay.report.steps] == [
        ("twice", "same"),
        ("search", "same"),
        ("search", "same"),
    ]


def test_sub_agents_have_sessions_of_their_own(session: Session[Any], store: wakelog.Store) -> None:
    """In a replay that runs calls, a turn of another session belongs to that session."""

    def agent(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            search("outer")
            with store.session(f"sub {s.id}").turn(user="task"):
                search("inner")

    agent(session, "go")
    ran.clear()
    with session.replay("@3", mode="live") as replay:
        replay.run(agent)
    assert replay.report.ok
    assert [r.tool for r in replay.report.steps] == ["search"]
    sub = store.resume(f"sub {replay.session.id}")
    assert [e.body["input"]["q"] for e in sub.events(kind="action.requested")] == ["inner"]


def test_approvals_hold_in_a_replay_that_runs(session: Session[Any]) -> None:
    def agent(s: Session[Any], text: str) -> None:
        @s.tool(approval=True)
        def mail(to: str) -> str:
            ran.append(to)
            return "sent"

        with s.turn(user=text):
            mail("ada")

    session._runtime.approver = lambda call, arguments: True
    agent(session, "go")
    ran.clear()
    session._runtime.approver = None
    with pytest.raises(NotAllowedError) as caught, session.replay("@3", mode="live", effects="allow") as replay:
        replay.run(agent)
    assert caught.value.kind == "approval-needed"
    assert ran == []
