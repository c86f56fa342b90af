"""A turn with an id is done once: a script that runs to its end can be run again, whenever it was killed."""

from typing import Any

import pytest

import wakelog
from tests.runtime.lives import Desk, Killed, Life, born, effect, found, stopped
from wakelog import InvalidInputError
from wakelog.engines.memory import MemoryEngine
from wakelog.session import Session, Turn


class Script:
    """Two turns with effects, run by one process. It asks nobody whether they were done."""

    def __init__(self, desk: Desk, last: int = 0) -> None:
        self.session, self.life = desk.process(last)
        self.session.tool(effect="read")(self.look)
        self.send = self.session.tool(effect(desk.world, self.life, "send"))
        self.post = self.session.tool(uncertain="retry")(effect(desk.world, self.life, "post", once=True))

    def look(self, n: int) -> str:
        self.life.moment()
        return f"seen {n}"

    def run(self) -> list[str]:
        session = self.session
        with session.turn("collect", id="collect") as turn:
            said = [session.call("look", {"n": 1}).unwrap(), self.send(1), self.send(1)]
            session.fact("collected", said)
            session.decide("go on")
            session.message("assistant", "collected")
            turn.data["said"].append("collected")
        self.life.moment()
        return session.run_turn("report", self.report, "report")

    def report(self, turn: Turn[Any]) -> list[str]:
        self.session.decide("report")
        turn.data["said"].append("reported")
        return [self.send(2), self.post(1), self.send(1)]


EFFECTS = {("send", 1): 3, ("send", 2): 1, ("post", 1): 1}


def _end(session: Session[Any]) -> dict[str, Any]:
    state = session.state()
    return {
        "data": session.data,
        "facts": {key: fact.value for key, fact in state.facts.items()},
        "decisions": [d.choice for d in state.decisions_made.values()],
        "messages": [(m.role, m.content) for m in session.messages()],
        "turn": (state.turn.number, state.turn.status),
        "pending": dict(state.pending_actions),
    }


def test_a_script_that_is_killed_at_any_moment_and_run_again_does_each_turn_once() -> None:
    whole = Desk()
    first = Script(whole)
    said, moments, end = first.run(), first.life.moments, _end(first.session)
    for last in range(1, moments + 1):
        desk = Desk()
        lives = iter([last, 0, 0, 0, 0])
        while True:
            try:
                script = Script(desk, next(lives))
                assert script.run() == said, last
                break
            except Killed:
                pass
            except wakelog.NotAllowedError:
                assert desk.statuses() == ["uncertain"]
                desk.world.reconcile(desk.operator)
        head = desk.operator.head.seq
        assert Script(desk).run() == said
        assert desk.operator.head.seq == head, last
        assert dict(desk.world.count()) == EFFECTS, last
        assert _end(desk.operator) == end, last


def test_a_completed_turn_is_answered_from_the_record_and_writes_nothing(desk: Desk) -> None:
    Script(desk).run()
    session, _ = desk.process()

    @session.tool
    def send(n: int) -> str:
        raise AssertionError("it was sent before")

    head = session.head.seq
    with session.turn("whatever it says now", id="collect") as turn:
        assert turn.is_done
        assert (turn.number, turn.attempt) == (1, 1)
        assert session.call("send", {"n": 1}).reused
        assert send(1) == "send(1) no 2"
        assert session.fact("other", 1) == session.decide("x") == session.message("assistant", "x")
        session.append(wakelog.events.NoteAdded(text="x"))
        session.patch([{"op": "add", "path": "/data/x", "value": 1}])
        turn.data["said"] = []
    assert turn.is_done
    assert session.head.seq == head
    with session.turn("another"):
        session.fact("written", "again")
    assert session.state().facts["written"].value == "again"


def test_a_call_that_is_not_in_the_record_of_a_completed_turn_is_not_run(desk: Desk) -> None:
    Script(desk).run()
    script = Script(desk)
    for tool, n in ((script.send, 3), (script.post, 2)):
        with stopped("turn-done"), script.session.turn(id="collect"):
            tool(n)
    assert dict(desk.world.count()) == EFFECTS


def test_an_error_in_a_completed_turn_changes_nothing(desk: Desk) -> None:
    Script(desk).run()
    session, _ = desk.process()
    with pytest.raises(ZeroDivisionError), session.turn(id="collect"):
        raise ZeroDivisionError
    assert session.state().turn.status == "completed"


def test_a_turn_that_failed_is_gone_on_with_and_what_failed_is_tried_again(desk: Desk) -> None:
    is_down = True

    def script() -> str:
        session, life = desk.process()
        send = session.tool(effect(desk.world, life, "send"))

        @session.tool(effect="external")
        def book(n: int) -> str:
            if is_down:
                raise ValueError("closed")
            return "booked"

        with session.turn("trip", id="trip"):
            return f"{send(1)} {book(1)}"

    for _ in range(2):
        with pytest.raises(ValueError, match="closed"):
            script()
    is_down = False
    assert script() == script() == "send(1) no 1 booked"
    assert len(desk.world.done) == 1
    assert desk.operator.state().turn.number == 1


def test_a_failed_turn_with_others_after_it_is_begun_again_and_repeats_nothing(desk: Desk) -> None:
    def script(fails: bool) -> None:
        session, life = desk.process()
        send = session.tool(effect(desk.world, life, "send"))
        try:
            with session.turn(id="a"):
                send(1)
                if fails:
                    raise ValueError
        except ValueError:
            pass
        with session.turn(id="b"):
            send(2)

    script(True)
    script(False)
    script(False)
    assert dict(desk.world.count()) == {("send", 1): 1, ("send", 2): 1}
    assert desk.operator.state().turn.number == 3
    assert desk.operator.state().turn.status == "completed"


def test_a_turn_that_was_rewound_is_done_again(desk: Desk) -> None:
    Script(desk).run()
    operator = desk.operator
    operator.rewind("@1", why="the report was wrong")
    Script(desk).run()
    assert desk.world.count()["send", 2] == 2
    assert desk.world.count()["send", 1] == 4
    Script(desk).run()
    assert desk.world.count()["send", 2] == 2


def test_a_turn_that_was_tried_again_on_purpose_is_done(desk: Desk) -> None:
    def script() -> None:
        session, life = desk.process()
        send = session.tool(effect(desk.world, life, "send"))
        with session.turn("go", id="a"):
            send(1)

    script()
    session, life = desk.process()
    with session.turn("go", retry=True):
        session.tool(effect(desk.world, life, "send"))(1)
    assert len(desk.world.done) == 2
    script()
    assert len(desk.world.done) == 2


def test_a_turn_without_the_id_does_not_continue_one_that_has_it(desk: Desk) -> None:
    session = desk.operator
    with pytest.raises(KeyboardInterrupt), session.turn("go", id="a"):
        raise KeyboardInterrupt
    with session.turn("go") as turn:
        assert turn.number == 2


def test_a_fork_knows_what_was_done_before_it(desk: Desk) -> None:
    script = Script(desk)
    script.run()
    fork = script.session.fork("@1")
    with fork.turn(id="collect") as turn:
        assert turn.is_done
    with fork.turn(id="report") as turn:
        assert not turn.is_done


def test_an_uncertain_call_in_a_completed_turn_stays_uncertain(desk: Desk) -> None:
    def script() -> str:
        session, _ = desk.process()

        @session.tool
        def send(n: int) -> str:
            desk.world.do("send", n, "")
            raise ConnectionError("lost")

        with session.turn(id="a"):
            return session.call("send", {"n": 1}).status

    assert [script(), script()] == ["uncertain", "uncertain"]
    (action,) = desk.operator.state().pending_actions
    desk.operator.calls.reconcile(action, "succeeded", output="sent")
    assert script() == "succeeded"
    assert len(desk.world.done) == 1


def test_a_result_comes_back_in_the_type_the_function_declares(desk: Desk) -> None:
    def total(turn: Turn[Any]) -> tuple[int, ...]:
        return (1, 2)

    assert desk.operator.run_turn("a", total) == desk.operator.run_turn("a", total) == (1, 2)


def test_an_effect_whose_result_cannot_be_stored_is_not_made_again(desk: Desk) -> None:
    sent: list[str] = []

    def script() -> None:
        session, _ = desk.process()

        @session.tool
        def send(to: str) -> object:
            sent.append(to)
            return object()

        with session.turn("go", id="a"):
            send("ada")

    with pytest.raises(InvalidInputError, match="the result of send cannot be stored"):
        script()
    for _ in range(2):
        with pytest.raises(wakelog.CallFailedError, match="it ran, but") as caught:
            script()
        assert "not run again" in caught.value.hint
    assert sent == ["ada"]


def test_a_result_of_a_turn_that_cannot_be_returned_again_fails_the_turn(desk: Desk) -> None:
    session, _ = desk.process()
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="the result of turn 'a' cannot be stored") as caught:
            session.run_turn("a", lambda turn: object())
        assert caught.value.kind == "not-storable"
    assert session.state().turn.status == "failed"
    assert session.run_turn("a", lambda turn: "fine") == session.run_turn("a", lambda turn: "x") == "fine"


def test_a_coroutine_function_is_not_run_as_a_plain_one(desk: Desk) -> None:
    async def work(turn: Turn[Any]) -> str:
        return "done"

    with pytest.raises(InvalidInputError, match="work is a coroutine function") as caught:
        desk.operator.run_turn("a", work)  # type: ignore[unused-coroutine]
    assert "aio.run_turn" in caught.value.hint
    assert desk.operator.state().turn.number == 0


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_awaited_turn_is_done_once() -> None:
    engine = MemoryEngine()
    ran: list[int] = []

    async def work(turn: Turn[Any]) -> str:
        ran.append(1)
        return "done"

    for is_again in (False, True):
        session = found(born(engine, Life()))
        assert await session.aio.run_turn("a", work) == "done"
        async with session.turn(id="b") as turn:
            assert turn.is_done == is_again
    assert ran == [1]


@pytest.mark.parametrize("how", [{"retry": True}, {"resume": "never"}, {"id": "x" * 300}])
def test_a_turn_with_an_id_that_makes_no_sense_is_refused(desk: Desk, how: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        desk.operator.turn("go", **{"id": "a", **how})
    assert caught.value.kind == "bad-turn-id"
