"""Random agents, killed at random moments, again and again: each effect happens once, and the end is the same."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

import wakelog
from tests.runtime.lives import Killed, Life, World, born, effect, found
from tests.seeds import some
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotAllowedError
from wakelog.session import Session

GOAL = "do it all"


class Call(msgspec.Struct, frozen=True):
    """A call of a tool. With an id it is the same call whenever it is made."""

    tool: str
    n: int
    id: str = ""


class Loop(msgspec.Struct, frozen=True):
    """The same again, some times."""

    times: int
    steps: tuple["Step", ...]


class Note(msgspec.Struct, frozen=True):
    """Something recorded in between."""

    kind: str


Step = Call | Loop | Note
TOOLS = ("pure", "read", "write", "external", "retried", "probed", "keyed", "outer", "model", "flaky")
calls = st.builds(Call, st.sampled_from(TOOLS), st.integers(0, 1))
# An id stands for one call: the same tool and input each time.
named = st.sampled_from([Call("external", 5, "a"), Call("read", 6, "b"), Call("write", 5, "c")])
notes = st.builds(Note, st.sampled_from(["decision", "fact", "message", "patch"]))
flat = st.one_of(calls, calls, named, notes)
steps = st.recursive(
    flat,
    lambda inner: st.builds(Loop, st.integers(1, 2), st.lists(inner, min_size=1, max_size=2).map(tuple)),
    max_leaves=4,
)
scripts = st.lists(steps, min_size=1, max_size=6).map(tuple)


class Agent:
    """A script, run by one process."""

    def __init__(self, script: tuple[Step, ...], world: World, life: Life, engine: MemoryEngine) -> None:
        self.script, self.world, self.life = script, world, life
        self.session: Session[Any] = found(born(engine, life))
        session = self.session
        session.tool(effect="pure")(_plain("pure", life))
        session.tool(effect="read")(_plain("read", life))
        session.tool(effect="write")(effect(world, life, "write"))
        external = session.tool(effect(world, life, "external"))
        session.tool(uncertain="retry")(effect(world, life, "retried", once=True))
        session.tool(uncertain="probe", probe=self._probe)(effect(world, life, "probed"))
        session.tool(key=lambda n: f"order-{n}")(effect(world, life, "keyed"))
        tries = Counter[str]()

        @session.tool(effect="read")
        def outer(n: int) -> str:
            return f"outer of {external(n)}"

        @session.tool(retry=2, backoff_s=0.0)
        def flaky(n: int) -> str:
            call = wakelog.current_call()
            assert call is not None
            tries[call.key] += 1
            if call.attempt < 2 and tries[call.key] < 2:
                raise wakelog.NotSentError("not yet")
            life.moment()
            answer = world.do("flaky", n, call.key)
            life.moment()
            return answer

    def _probe(self, key: str, n: int) -> wakelog.Found:
        self.life.moment()
        seen = self.world.find(key)
        return wakelog.Found("never_ran") if seen is None else wakelog.Found("succeeded", seen)

    def run(self) -> None:
        # What says that the work is done is written with the turn's end, in one commit. Without it, a script that was
        # killed after that and runs again has simply been told to do it all once more.
        if self.session.data["said"]:
            return
        with self.session.turn(GOAL) as turn:
            turn.data["said"].append("done")
            self._run(turn, self.script)

    def _run(self, turn: Any, script: tuple[Step, ...]) -> None:
        session = self.session
        for step in script:
            if isinstance(step, Loop):
                for _ in range(step.times):
                    self._run(turn, step.steps)
            elif isinstance(step, Note):
                _record(session, step.kind)
            elif step.tool == "model":
                turn.data["said"].append(session.model(_plain("model", self.life), step.n))
            else:
                turn.data["said"].append(session.call(step.tool, {"n": step.n}, id=step.id).unwrap())


def _plain(name: str, life: Life) -> Any:
    def act(n: int) -> str:
        life.moment()
        return f"{name}({n})"

    act.__name__ = name
    return act


def _record(session: Session[Any], kind: str) -> None:
    if kind == "decision":
        session.decide("go on", because="why not")
    elif kind == "fact":
        session.fact("k", 1)
    elif kind == "message":
        session.message("assistant", "working")
    else:
        session.fact("patched", len(session.state().facts))


def _run_once(script: tuple[Step, ...]) -> tuple[World, Agent]:
    world, engine = World(), MemoryEngine()
    agent = Agent(script, world, Life(), engine)
    agent.run()
    return world, agent


def _end(agent: Agent) -> dict[str, Any]:
    """What must not depend on how often the process died."""
    session = agent.session
    state = session.state()
    return {
        "data": session.data,
        "facts": {key: fact.value for key, fact in state.facts.items()},
        "decisions": [d.choice for d in state.decisions_made.values()],
        "messages": [(m.role, m.content) for m in session.messages()],
        "turn": (state.turn.number, state.turn.status),
        "pending": dict(state.pending_actions),
        "status": state.status,
    }


def _survive(script: tuple[Step, ...], deaths: list[int], honest_at_once: bool) -> tuple[World, Agent]:
    """Runs the script until it is through, killed at these moments of its lives."""
    world, engine = World(), MemoryEngine()
    agents = iter([*deaths, *[0] * 50])
    while True:
        life = Life(next(agents))
        try:
            agent = Agent(script, world, life, engine)
            agent.run()
            return world, agent
        except Killed:
            operator = found(born(engine, Life())) if honest_at_once else None
        except NotAllowedError as exc:
            if exc.kind != "uncertain-call":
                raise
            operator = found(born(engine, Life()))
            assert operator.state().turn.status == "interrupted"
        if operator is not None:
            world.reconcile(operator)


@given(scripts, st.lists(st.integers(1, 60), max_size=5), st.booleans())
@example((Call("external", 0), Call("external", 0)), [9, 4], False)
@example((Call("outer", 0), Call("external", 0)), [12], False)
@example((Call("external", 5, "a"), Call("external", 5)), [10], True)
def test_an_agent_that_is_killed_at_any_moments_does_everything_once(
    script: tuple[Step, ...], deaths: list[int], honest_at_once: bool
) -> None:
    expected_world, expected = _run_once(script)
    world, agent = _survive(script, deaths, honest_at_once)
    note(f"{[(e.seq, e.kind, e.body.get('action', '')) for e in agent.session.events()]}")
    assert world.count() == expected_world.count()
    assert _end(agent) == _end(expected)
    assert agent.session.verify().ok


EVERYTHING: tuple[Step, ...] = (
    *(Call(tool, 0) for tool in TOOLS),
    Loop(2, (Call("external", 1), Note("message"))),
    Call("external", 5, "a"),
    Call("external", 5),
    Note("fact"),
)


@pytest.mark.parametrize("rest", some(range(3)))  # each third moment in `make test`, all in `make test-all`
@pytest.mark.parametrize("honest_at_once", [False, True])
def test_an_agent_that_is_killed_at_each_of_its_moments_does_everything_once(honest_at_once: bool, rest: int) -> None:
    expected_world, expected = _run_once(EVERYTHING)
    for last in range(1 + rest, expected.life.moments + 1, 3):
        world, agent = _survive(EVERYTHING, [last], honest_at_once)
        assert world.count() == expected_world.count(), last
        assert _end(agent) == _end(expected), last
        assert agent.session.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("second", range(1, 60, 3))
def test_an_agent_that_is_killed_twice_at_any_two_moments_does_everything_once(second: int) -> None:
    expected_world, expected = _run_once(EVERYTHING)
    for first in range(1, expected.life.moments + 1):
        world, agent = _survive(EVERYTHING, [first, second], False)
        assert world.count() == expected_world.count(), (first, second)
        assert _end(agent) == _end(expected), (first, second)
