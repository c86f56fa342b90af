"""The same script run again: each call finds the earlier call that it repeats."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import wakelog
from tests.runtime.lives import Desk, Killed, Life, effect, stopped
from wakelog import CallFailedError, ConflictError, InvalidInputError, NotAllowedError
from wakelog.log.removal import erase, prune
from wakelog.runtime.call import Runtime
from wakelog.session import Session
from wakelog.timeline.points import attempts_of

GOAL = "go"
SECRET = "ghp_" + "Zq8KxW3nVb7TtR5mYc2LdJ9pHs6FgA4eUo1N"


def run(desk: Desk, *calls: int, dies: bool = False, goal: str = GOAL, **turn: Any) -> list[str]:
    """A script that sends these numbers; it is killed at its end when told so."""
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    with session.turn(goal, **turn):
        answers = [act(n) for n in calls]
        if dies:
            life.is_dead = True
        life.breathe()
        return answers


def killed(desk: Desk, *calls: int, **turn: Any) -> None:
    with pytest.raises(Killed):
        run(desk, *calls, dies=True, **turn)


def test_calls_that_were_made_are_answered_from_the_log_and_the_rest_is_made(desk: Desk) -> None:
    killed(desk, 1, 2)
    assert run(desk, 1, 2, 3) == ["act(1) no 1", "act(2) no 1", "act(3) no 1"]
    assert [n for _, n, _ in desk.world.done] == [1, 2, 3]
    state = desk.operator.state()
    assert (state.turn.number, state.turn.attempt, state.turn.status) == (1, 2, "completed")


def test_what_is_given_again_is_noted_and_neither_counted_nor_paid_again(desk: Desk) -> None:
    killed(desk, 1)
    run(desk, 1)
    state = desk.operator.state()
    assert state.tools_used["act"].calls == 1
    request, _, outcome, note = desk.operator.events(kind="action")
    assert (note.kind, note.body["reused"], note.header.derived_from) == (
        "action.recorded",
        outcome.seq,
        ((outcome.seq, outcome.seq),),
    )
    assert note.body["action"] == request.body["action"]


@pytest.mark.parametrize("was_made", [True, False])
def test_a_call_that_has_not_begun_when_its_turn_ends_is_not_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, was_made: bool
) -> None:
    if was_made:
        killed(desk, 1)
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    look_up = Runtime._look_up
    arrived, is_over = threading.Event(), threading.Event()

    def wait(runtime: Runtime, running: Any) -> Any:
        arrived.set()
        assert is_over.wait(60)
        return look_up(runtime, running)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(Runtime, "_look_up", wait)
        with pytest.raises(KeyboardInterrupt), session.turn(GOAL):
            late = pool.submit(act, 1)
            assert arrived.wait(60)
            raise KeyboardInterrupt
        head = session.head.seq
        is_over.set()
        with pytest.raises(NotAllowedError) as refused:
            late.result()
        assert refused.value.kind == "turn-ended"
    assert session.head.seq == head
    assert run(desk, 1) == ["act(1) no 1"]
    assert len(desk.world.done) == 1


def test_a_call_whose_turn_ends_while_its_intent_is_written_is_not_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    start = Runtime.record_start
    arrived, is_over = threading.Event(), threading.Event()

    def wait(runtime: Runtime, *args: Any, **more: Any) -> None:
        arrived.set()
        assert is_over.wait(60)
        start(runtime, *args, **more)

    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(Runtime, "record_start", wait)
        with pytest.raises(KeyError), session.turn(GOAL):
            late = pool.submit(act, 1)
            assert arrived.wait(60)
            raise KeyError("another task failed")
        is_over.set()
        with pytest.raises(ConflictError) as refused:
            late.result()
        assert refused.value.kind == "turn-taken-over"
    assert desk.world.done == []
    assert desk.statuses() == []


def test_the_same_call_twice_is_two_calls(desk: Desk) -> None:
    killed(desk, 1)
    killed(desk, 1, 1)
    assert run(desk, 1, 1, 1) == ["act(1) no 1", "act(1) no 2", "act(1) no 3"]
    assert len(desk.world.done) == 3


def test_calls_in_another_order_are_still_the_same_calls(desk: Desk) -> None:
    killed(desk, 1, 2, 3)
    assert run(desk, 3, 1, 2) == ["act(3) no 1", "act(1) no 1", "act(2) no 1"]
    assert len(desk.world.done) == 3


def test_another_input_is_another_call_and_what_was_done_stays_on_record(desk: Desk) -> None:
    killed(desk, 1)
    assert run(desk, 7) == ["act(7) no 1"]
    assert [n for _, n, _ in desk.world.done] == [1, 7]


def test_three_crashes_in_a_row_each_further_on(desk: Desk) -> None:
    killed(desk, 1)
    killed(desk, 1, 2)
    killed(desk, 1)
    killed(desk, 1, 2, 3)
    assert len(run(desk, 1, 2, 3, 4)) == 4
    assert [n for _, n, _ in desk.world.done] == [1, 2, 3, 4]
    assert desk.operator.state().turn.attempt == 5


def test_an_uncertain_call_that_the_agent_shrugs_off_stays_apart_from_the_next_one_like_it(desk: Desk) -> None:
    """An agent's loop catches everything and shows it to the model. The call keeps its place all the same."""

    def script(last: int = 0) -> list[str]:
        session, life = desk.process()
        act = session.tool(effect(desk.world, life, "act"))
        other = session.tool(effect(desk.world, life, "other"))
        life.last = last
        said = []
        with session.turn(GOAL):
            for tool, n in ((act, 1), (act, 1), (other, 1)):
                try:
                    said.append(tool(n))
                except NotAllowedError as exc:
                    said.append(exc.kind)
            life.breathe()
        return said

    with pytest.raises(Killed):
        script(14)
    assert [p.status for p in desk.operator.state().pending_actions.values()] == ["running"]
    assert script() == ["act(1) no 1", "uncertain-call", "other(1) no 1"]
    assert desk.world.count() == {("act", 1): 2, ("other", 1): 1}


def test_parallel_calls_that_were_made_are_not_made_again(desk: Desk) -> None:
    def script(kill: bool) -> list[str]:
        session, life = desk.process()
        gate = threading.Barrier(4)

        @session.tool(effect="read")
        def look(n: int) -> str:
            call = wakelog.current_call()
            assert call is not None
            return desk.world.do("look", n, call.key)

        @session.tool(effect="read")
        def wait(n: int) -> str:
            if kill:
                gate.wait(180)
                life.is_dead = True
                life.breathe()
            return "waited"

        with session.turn(GOAL), ThreadPoolExecutor(8) as pool:
            first = list(pool.map(look, [1, 1, 2, 3]))
            list(pool.map(wait, [1, 2, 3, 4]))
            return first

    with pytest.raises(Killed):
        script(True)
    assert len(desk.world.done) == 4
    assert sorted(script(False)) == ["look(1) no 1", "look(1) no 2", "look(2) no 1", "look(3) no 1"]
    assert len(desk.world.done) == 4


def test_a_call_inside_a_call_is_told_apart_from_one_beside_it(desk: Desk) -> None:
    def script(dies: bool) -> str:
        session, life = desk.process()
        act = session.tool(effect(desk.world, life, "act"))

        @session.tool(effect="read")
        def outer(n: int) -> str:
            return act(n)

        with session.turn(GOAL):
            outer(1)
            if dies:
                life.is_dead = True
            life.breathe()
            return act(1)

    with pytest.raises(Killed):
        script(True)
    assert script(False) == "act(1) no 2"
    assert len(desk.world.done) == 2


def test_a_call_inside_a_call_that_stops_the_turn_does_not_fail_the_outer_one(desk: Desk) -> None:
    def script() -> str:
        session, life = desk.process()
        act = session.tool(approval=True)(effect(desk.world, life, "act"))

        @session.tool(effect="read")
        def outer(n: int) -> str:
            return f"outer {act(n)}"

        with session.turn(GOAL):
            return outer(1)

    with stopped("approval-needed"):
        script()
    operator = desk.operator
    (action,) = operator.state().pending_actions
    operator.calls.approve(action)
    assert script() == "outer act(1) no 1"


def test_files_that_a_call_changed_are_in_view_again_when_it_is_answered_from_the_log(desk: Desk) -> None:
    def script(dies: bool) -> None:
        session, life = desk.process()

        @session.tool(effect="write")
        def edit(path: str) -> None:
            call = wakelog.current_call()
            assert call is not None
            session.files.record(path, "created", action=call.action, after="x" * 3000, added=1)

        with session.turn(GOAL):
            edit("a.txt")
            if dies:
                life.is_dead = True
            life.breathe()

    for _ in range(2):
        with pytest.raises(Killed):
            script(True)
    script(False)
    operator = desk.operator
    assert list(operator.state().files_modified) == ["a.txt"]
    last = list(operator.events(kind="file.changed"))[-1]
    assert operator.log.value(last, last.body["after"]) == "x" * 3000


# Errors


class Odd(Exception):
    """An error whose class a log does not know."""


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (KeyError("x"), KeyError),
        (ConnectionResetError("reset"), ConnectionResetError),
        (Odd("odd"), CallFailedError),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), CallFailedError),
        (ExceptionGroup("all", [ValueError("one")]), CallFailedError),
    ],
)
def test_an_error_is_raised_again_as_what_it_was_where_that_is_possible(
    desk: Desk, error: Exception, again: type[Exception]
) -> None:
    calls = []

    def script(dies: bool) -> None:
        session, life = desk.process()

        @session.tool(effect="read")
        def fail() -> None:
            calls.append(1)
            raise error

        with session.turn(GOAL):
            try:
                fail()
            finally:
                if dies:
                    life.is_dead = True
                life.breathe()

    with pytest.raises(Killed):
        script(True)
    with pytest.raises(again) as caught:
        script(False)
    assert len(calls) == 1
    assert "not run again" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("effect_class", ["read", "pure", "external"])
def test_a_call_that_was_interrupted_is_not_taken_for_one_that_failed(desk: Desk, effect_class: Any) -> None:
    calls: list[str] = []

    def script(uncertain: Any = "ask") -> str:
        session, _ = desk.process()

        @session.tool(effect=effect_class, uncertain=uncertain)
        def act() -> str:
            call = wakelog.current_call()
            assert call is not None
            calls.append(call.key)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return "done"

        with session.turn(GOAL):
            return act()

    how = "retry" if effect_class == "external" else "ask"
    with pytest.raises(KeyboardInterrupt):
        script(how)
    assert desk.operator.state().turn.status == "interrupted"
    assert desk.operator.state().pending_actions == {}
    assert script(how) == "done"
    assert calls[0] == calls[1]


def test_a_result_comes_back_as_its_type_after_a_crash(desk: Desk) -> None:
    class Receipt(msgspec.Struct):
        id: str

    def script(dies: bool) -> Receipt:
        session, life = desk.process()

        def buy() -> Receipt:
            return Receipt("r1")

        buy.__annotations__["return"] = Receipt
        bound = session.tool(buy)
        with session.turn(GOAL):
            receipt = bound()
            if dies:
                life.is_dead = True
            life.breathe()
            return receipt

    with pytest.raises(Killed):
        script(True)
    assert script(False) == Receipt("r1")


# When a turn is continued


def test_another_input_begins_a_new_turn_unless_told_to_continue_always(desk: Desk) -> None:
    killed(desk, 1)
    assert run(desk, 1, goal="go on", resume="always") == ["act(1) no 1"]
    state = desk.operator.state()
    assert (state.turn.number, state.turn.attempt) == (1, 2)
    killed(desk, 2, goal="next")
    assert run(desk, 2, goal="another") == ["act(2) no 2"]
    assert desk.operator.state().turn.number == 3


def test_a_turn_is_not_continued_when_told_never_to(desk: Desk) -> None:
    killed(desk, 1)
    assert run(desk, 1, resume="never") == ["act(1) no 2"]
    assert desk.operator.state().turn.number == 2


@pytest.mark.parametrize("value", [f"the token is {SECRET}", {"a": [1, 2.0, None]}, None, "x" * 9000])
def test_the_same_input_is_recognised_in_any_form(desk: Desk, value: Any) -> None:
    killed(desk, 1, goal=value)
    assert run(desk, 1, goal=value) == ["act(1) no 1"]


def test_the_redacted_input_of_that_test_is_not_what_was_given(desk: Desk) -> None:
    killed(desk, 1, goal=f"the token is {SECRET}")
    (started,) = desk.operator.events(kind="turn.started")
    assert SECRET not in str(started.body)


def test_a_rewind_by_a_person_in_between_stops_the_continuing(desk: Desk) -> None:
    run(desk, 0, goal="before")
    killed(desk, 1)
    desk.operator.rewind("@1", why="let us try something else")
    assert run(desk, 1) == ["act(1) no 2"]
    assert desk.operator.state().turn.number == 3


def test_a_retry_calls_everything_anew_under_new_keys(desk: Desk) -> None:
    run(desk, 1, 2)
    assert run(desk, 1, retry=True) == ["act(1) no 2"]
    state = desk.operator.state()
    assert (state.turn.number, state.turn.attempt) == (1, 2)
    assert len({key for _, _, key in desk.world.done}) == 3


def test_a_cut_retry_is_continued_from_itself_and_not_from_the_attempt_before(desk: Desk) -> None:
    killed(desk, 1, 2)
    killed(desk, 1, retry=True)
    assert run(desk, 1, 2) == ["act(1) no 2", "act(2) no 2"]
    assert len(desk.world.done) == 4


def test_a_failed_turn_is_over_and_running_it_again_is_a_new_one(desk: Desk) -> None:
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    with pytest.raises(ValueError, match="no"), session.turn(GOAL):
        act(1)
        raise ValueError("no")
    assert run(desk, 1) == ["act(1) no 2"]
    assert desk.operator.state().turn.number == 2


def test_a_turn_whose_draft_was_in_conflict_is_continued_without_repeating_its_calls(desk: Desk) -> None:
    def script(disturbed: bool) -> None:
        session, life = desk.process()
        act = session.tool(effect(desk.world, life, "act"))
        with session.turn(GOAL) as turn:
            turn.data["said"].append(act(1))
            if disturbed:
                desk.operator.patch([{"op": "add", "path": "/data/other", "value": 1}])

    with pytest.raises(wakelog.ConflictError, match="draft"):
        script(True)
    script(False)
    assert desk.operator.data == {"said": ["act(1) no 1"], "other": 1}
    assert len(desk.world.done) == 1


def test_a_draft_that_does_not_fit_ends_the_turn_and_is_not_left_dangling(desk: Desk) -> None:
    session, _ = desk.process()
    with pytest.raises(InvalidInputError), session.turn(GOAL) as turn:
        turn.data["said"] = float("nan")
    assert desk.operator.state().turn.status == "failed"


# Keys and ids


def keyed(session: Session[Any], desk: Desk, life: Life) -> Any:
    return session.tool(key=lambda n: f"order-{n}")(effect(desk.world, life, "charge"))


def test_a_key_is_the_same_call_in_any_turn_fork_or_rewound_session(desk: Desk) -> None:
    session, life = desk.process()
    charge = keyed(session, desk, life)
    for goal in ("one", "two"):
        with session.turn(goal):
            assert charge(7) == "charge(7) no 1"
    session.rewind(1)
    assert charge(7) == "charge(7) no 1"
    fork = session.fork()
    assert keyed(fork, desk, life)(7) == "charge(7) no 1"
    assert len(desk.world.done) == 1


def test_a_read_that_was_cut_under_a_key_is_made_again_in_a_later_turn(desk: Desk) -> None:
    session, life = desk.process()
    look = session.tool(effect="read", key=lambda n: str(n))(effect(desk.world, life, "look"))
    with pytest.raises(Killed), session.turn("one"):
        life.last = life.moments + 3
        look(1)
    session, life = desk.process()
    look = session.tool(effect="read", key=lambda n: str(n))(effect(desk.world, life, "look"))
    with session.turn("two"):
        assert look(1) == "look(1) no 1"


def test_a_key_whose_call_never_ran_may_be_asked_for_again_any_number_of_times(desk: Desk) -> None:
    for n in range(3):
        session, life = desk.process()
        charge = keyed(session, desk, life)
        with pytest.raises(Killed), session.turn(f"turn {n}"):
            life.last = life.moments + 3
            charge(7)
        desk.world.reconcile(desk.operator)
    session, life = desk.process()
    assert keyed(session, desk, life)(7) == "charge(7) no 1"


def test_a_key_is_kept_when_its_history_is_pruned_and_what_is_gone_is_said_to_be(desk: Desk) -> None:
    session, life = desk.process()
    charge = keyed(session, desk, life)
    charge(7)
    session.note("later")
    prune(session.log, session.head.seq)
    with pytest.raises(wakelog.NotFoundError) as caught:
        charge(7)
    assert caught.value.kind == "result-gone"
    assert len(desk.world.done) == 1


def test_an_erased_result_is_not_given_and_its_call_not_repeated(desk: Desk) -> None:
    session, life = desk.process()
    charge = keyed(session, desk, life)
    charge(7)
    erase(session.log, [session.head.seq])
    with pytest.raises(wakelog.NotFoundError) as caught:
        charge(7)
    assert caught.value.kind == "result-gone"
    assert len(desk.world.done) == 1


def test_an_id_stands_for_one_tool_and_one_input(desk: Desk) -> None:
    session, life = desk.process()
    session.tool(effect(desk.world, life, "act"))
    session.tool(effect(desk.world, life, "other"))
    session.call("act", {"n": 1}, id="call_0")
    assert session.call("act", {"n": 1}, id="call_0").reused
    for tool, n in (("act", 2), ("other", 1)):
        with pytest.raises(InvalidInputError) as caught:
            session.call(tool, {"n": n}, id="call_0")
        assert caught.value.kind == "call-id-reused"
    assert len(desk.world.done) == 1


def test_a_call_with_an_id_and_one_without_are_never_taken_for_each_other(desk: Desk) -> None:
    def script(dies: bool) -> list[str]:
        session, life = desk.process()
        session.tool(effect(desk.world, life, "act"))
        with session.turn(GOAL):
            said = [session.call("act", {"n": 1}, id="one").result]
            if dies:
                life.is_dead = True
            life.breathe()
            return [*said, session.call("act", {"n": 1}).result]

    with pytest.raises(Killed):
        script(True)
    assert script(False) == ["act(1) no 1", "act(1) no 2"]


# Forks


def test_a_fork_in_the_middle_of_a_turn_continues_it_and_repeats_nothing(desk: Desk) -> None:
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    with session.turn(GOAL):
        act(1)
        fork = session.fork()
        act(2)
    again = fork.tool(effect(desk.world, life, "act"))
    with fork.turn(GOAL) as turn:
        assert (turn.number, turn.attempt) == (1, 2)
        assert again(1) == "act(1) no 1"
        assert again(2) == "act(2) no 2"
    assert len({key for _, _, key in desk.world.done}) == 3


def test_a_call_open_at_the_fork_point_is_the_parents(desk: Desk) -> None:
    session, life = desk.process()
    act = session.tool(effect(desk.world, life, "act"))
    with pytest.raises(Killed), session.turn(GOAL):
        life.last = life.moments + 3
        act(1)
    parent = desk.operator
    fork = parent.fork()
    assert fork.state().pending_actions == {}
    bound = fork.tool(effect(desk.world, Life(), "act"))
    with fork.turn(GOAL):
        assert bound(1) == "act(1) no 1"
    assert [p.status for p in parent.state().pending_actions.values()] == ["running"]


def test_the_attempts_of_a_continued_turn_say_which_they_continue(desk: Desk) -> None:
    killed(desk, 1)
    killed(desk, 1)
    killed(desk, 1, retry=True)
    run(desk, 1)
    started = list(desk.operator.events(kind="turn.started"))
    assert [e.body.get("resumes", 0) for e in started] == [0, 1, 0, 3]
    assert [s.outcome for s in attempts_of(desk.operator.log, 1)] == ["interrupted"] * 3 + ["completed"]
