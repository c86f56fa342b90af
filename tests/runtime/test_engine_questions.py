"""How often a turn and its calls use the engine: each use can be a round trip."""

import pytest

from tests.session.test_engine_calls import CountingEngine
from wakelog import Store
from wakelog.engines.memory import MemoryEngine
from wakelog.model import events as ev


@pytest.mark.parametrize(("effect", "commits"), [("pure", 6), ("external", 10)])
def test_a_turn_of_four_calls_asks_once_before_it_and_once_before_each_call(effect: ev.Effect, commits: int) -> None:
    engine = CountingEngine(MemoryEngine())
    session = Store(engine).session("steps")

    @session.tool(effect=effect)
    def step(number: int) -> int:
        return number

    def work(turn: object) -> int:
        return sum(map(step, range(4)))

    session.run_turn("first", work)
    engine.calls.clear()
    assert session.run_turn("second", work) == 6
    questions = [call for call in engine.calls if call != "submit"]
    assert len(engine.calls) - len(questions) == commits
    assert sorted(questions) == ["head"] * 5 + ["known"]
