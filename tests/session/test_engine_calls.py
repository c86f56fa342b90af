"""How often the library calls its engine: each call can be a round trip."""

from typing import Any

import pytest

from wakelog import Store
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.model import events as ev
from wakelog.session import Session


class CountingEngine:
    """An engine that notes what it is asked."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if callable(found):
            self.calls.append(name)
        return found


@pytest.fixture(scope="module")
def asked() -> tuple[Session[Any], CountingEngine]:
    engine = CountingEngine(MemoryEngine())
    session = Store(engine).session("fifty turns")
    for number in range(50):
        with session.turn(f"say {number}"):
            session.append(ev.FactRecorded(key=str(number), value=number))
    return session, engine


@pytest.mark.parametrize(
    ("places", "most"), [(("@2",), 8), (("@49",), 8), ((None,), 8), (("e8",), 5), (("@2..@5",), 12), (("@2", "@5"), 12)]
)
def test_a_diff_asks_its_engine_a_handful_of_times(
    asked: tuple[Session[Any], CountingEngine], places: tuple[str | None, ...], most: int
) -> None:
    session, engine = asked
    engine.calls.clear()
    assert session.diff(*places)
    assert len(engine.calls) <= most, engine.calls


def test_a_session_is_opened_with_as_few_questions_as_it_takes() -> None:
    engine = CountingEngine(MemoryEngine())
    store = Store(engine)
    store.session("new")
    assert engine.calls == ["find", "claim", "submit"]
    engine.calls.clear()
    store.resume("new")
    assert engine.calls == ["find", "head"]


@pytest.mark.parametrize("question", ["brief", "insight"])
def test_what_a_turn_called_is_read_together(question: str) -> None:
    """The questions do not become more with the calls."""

    def asked(calls: int) -> int:
        engine = CountingEngine(MemoryEngine())
        session: Session[Any] = Store(engine).session("s")
        tool = session.tool(effect="read")(lambda n: f"{n} was found")
        with session.turn("look"):
            for number in range(calls):
                session.call(tool, {"n": number})
        engine.calls.clear()
        assert getattr(session, question)()
        return len(engine.calls)

    assert asked(20) == asked(2)


@pytest.fixture(scope="module")
def long() -> tuple[Session[Any], CountingEngine]:
    """Turns of very different lengths."""
    engine = CountingEngine(MemoryEngine())
    session = Store(engine).session("many turns")
    for number in range(400):
        with session.turn(f"say {number}"):
            session.append(*(ev.FactRecorded(key=f"{k}", value=k) for k in range(1 if number < 300 else 40)))
    return session, engine


@pytest.mark.parametrize("turn", [1, 2, 150, 299, 300, 301, 340, 399, 400])
def test_a_turn_is_found_in_a_few_reads_wherever_it_is(long: tuple[Session[Any], CountingEngine], turn: int) -> None:
    session, engine = long
    engine.calls.clear()
    found = session.seq(f"@{turn}")
    assert engine.calls.count("read") <= 10, engine.calls
    assert (session.log.entry(found).kind, session.log.entry(found).header.turn) == ("turn.ended", turn)


def test_the_neighbours_of_a_long_session_are_compared_in_a_handful_of_calls() -> None:
    engine = CountingEngine(MemoryEngine())
    session = Store(engine).session("even turns")
    for number in range(600):
        with session.turn(f"say {number}"):
            session.append(ev.FactRecorded(key=str(number % 7), value=number))
    engine.calls.clear()
    assert session.diff("@599", "@600")
    assert len(engine.calls) <= 14, engine.calls
