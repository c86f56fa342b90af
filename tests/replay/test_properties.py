"""An agent that does the same again replays as the same; one that differs in one step is caught at that step."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.seeds import examples
from wakelog.errors import DivergenceError
from wakelog.session import Session

ran: list[str] = []


@wakelog.tool(effect="read")
def look(x: Any) -> Any:
    ran.append("look")
    return {"seen": x, "n": len(ran)}


@wakelog.tool
def act(x: Any, loud: bool = False) -> str:
    ran.append("act")
    return f"done {x} {len(ran)}"


@wakelog.tool(effect="pure")
def draw() -> int:
    ran.append("draw")
    return len(ran)


@wakelog.tool(effect="read")
def fail(x: Any) -> None:
    ran.append("fail")
    raise LookupError(f"no {x}")


def think(messages: list[Any], temperature: float = 0.0) -> dict[str, Any]:
    ran.append("think")
    return {"text": f"thought {len(ran)}"}


values = st.one_of(st.integers(-5, 5), st.text(max_size=4), st.none(), st.lists(st.integers(0, 3), max_size=2))
# (what to call, with what, and whether to pass on what the call before gave)
steps = st.tuples(st.sampled_from(["look", "act", "draw", "fail", "think", "fact"]), values, st.booleans())
programs = st.lists(st.lists(steps, max_size=6), min_size=1, max_size=3)
Program = list[list[tuple[str, Any, bool]]]


def agent(session: Session[Any], program: Program, made: list[Any] | None = None) -> list[Any]:
    """Runs the program. The calls are added to `made`, their results are returned."""
    said: list[Any] = []
    for number, turn in enumerate(program):
        with session.turn(user=f"turn {number}") as here:
            last: Any = None
            for what, value, passes in turn:
                given = [value, last] if passes else value
                if made is not None and what != "fact":
                    made.append((number, what, None if what == "draw" else given))
                last = call(session, here, what, given)
                said.append(last)
    return said


def call(session: Session[Any], here: Any, what: str, given: Any) -> Any:
    if what == "look":
        return look(given)
    if what == "act":
        return act(given)
    if what == "draw":
        return draw()
    if what == "think":
        return here.model(think, [given])
    if what == "fact":
        return session.fact("f", given)
    try:
        fail(given)
    except LookupError as exc:
        return str(exc)


@given(program=programs)
def test_a_deterministic_agent_replays_as_the_same(program: Program) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("agent")
        first = agent(session, program)
        ran.clear()
        with session.replay() as replay:
            assert agent(replay.session, program) == first
        assert ran == []
        assert replay.report.ok
        assert replay.session.log.state_hash() == session.log.state_hash()
        assert replay.session.head.seq == session.head.seq


@settings(max_examples=examples(100))
@given(program=programs, data=st.data())
def test_one_step_that_is_different_is_named(program: Program, data: st.DataObject) -> None:
    places = [(t, s) for t, turn in enumerate(program) for s in range(len(turn))]
    changed: Program = [list(turn) for turn in program]
    t, s = data.draw(st.sampled_from(places or [(0, 0)]))
    how = data.draw(st.sampled_from(["argument", "extra", "missing", "moved"] if places else ["extra"]))
    turn = changed[t]
    if how == "argument":
        turn[s] = (turn[s][0], data.draw(values), turn[s][2])
    elif how == "extra":
        turn.insert(s, data.draw(steps))
    elif how == "missing":
        del turn[s]
    else:
        turn.insert(data.draw(st.integers(0, len(turn) - 1)), turn.pop(s))
    with wakelog.open("memory:") as store:
        session = store.session("agent")
        made: list[Any] = []
        agent(session, program, made)
        ran.clear()
        again: list[Any] = []
        diverged: DivergenceError | None = None
        try:
            with session.replay() as replay:
                agent(replay.session, changed, again)
        except DivergenceError as error:
            diverged = error
        assert ran == []
        if diverged is None:
            assert again == made
        else:
            assert diverged.step == _first_difference(made, again)


def _first_difference(made: list[Any], again: list[Any]) -> int:
    """The replay follows the program up to the first call that is not the recorded one."""
    for number, (a, b) in enumerate(zip(made, again, strict=False), 1):
        if a != b:
            return number
    return min(len(made), len(again)) + 1


@pytest.mark.parametrize("count", [1, 3])
def test_the_same_agent_in_parallel_sessions(count: int) -> None:
    """Replays of several sessions at once do not see each other."""
    from concurrent.futures import ThreadPoolExecutor

    program: Program = [[("look", n, False), ("draw", None, False), ("act", n, True)] for n in range(3)]
    with wakelog.open("memory:") as store:
        first = {n: agent(store.session(f"agent {n}"), program) for n in range(count)}
        ran.clear()

        def again(n: int) -> bool:
            with store.resume(f"agent {n}").replay() as replay:
                return agent(replay.session, program) == first[n]

        with ThreadPoolExecutor(count) as pool:
            assert all(pool.map(again, range(count)))
        assert ran == []
