"""Retrying a turn, its attempts, and adopting a fork's result."""

import asyncio

import pytest

from wakelog import ConflictError, InvalidInputError, NotFoundError, events
from wakelog.errors import NotAllowedError
from wakelog.runtime.outcome import STOPS
from wakelog.store import Store


def test_each_try_is_an_attempt_of_its_own_and_the_first_that_ends_well_ends_the_loop(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    tries = []
    for attempt in session.attempts(5, on=TimeoutError, user="go"):
        with attempt as turn:
            tries.append((turn.number, turn.attempt))
            session.fact("tries", len(tries))
            turn.data["n"] += 1
            if len(tries) < 3:
                raise TimeoutError("no answer")
    assert tries == [(1, 1), (1, 2), (1, 3)]
    assert [(a.attempt, a.outcome, a.in_view) for a in session.history.attempts(1)] == [
        (1, "failed", False),
        (2, "failed", False),
        (3, "completed", True),
    ]
    assert session.data == {"n": 1}
    assert session.state().facts["tries"].value == 3
    assert [m.text for m in session.messages()] == ["go"]


def test_the_last_failure_is_raised(store: Store) -> None:
    session = store.session("s")
    tried = 0
    with pytest.raises(TimeoutError, match="try 2"):
        for attempt in session.attempts(2, on=TimeoutError):
            with attempt:
                tried += 1
                raise TimeoutError(f"try {tried}")
    assert tried == 2
    assert [a.outcome for a in session.history.attempts(1)] == ["failed", "failed"]


def test_another_error_is_raised_at_once(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(ZeroDivisionError):
        for attempt in session.attempts(3, on=(TimeoutError, ConnectionError)):
            with attempt:
                raise ZeroDivisionError
    assert len(session.history.attempts(1)) == 1


def test_an_interrupt_is_not_a_failure_to_try_again(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(KeyboardInterrupt):
        for attempt in session.attempts(3):
            with attempt:
                raise KeyboardInterrupt
    assert [a.outcome for a in session.history.attempts(1)] == ["interrupted"]


def test_what_the_runtime_stopped_is_not_tried_again(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(NotAllowedError):
        for attempt in session.attempts(3, on=Exception):
            with attempt:
                raise NotAllowedError("wait for somebody", kind=sorted(STOPS)[0])
    assert [a.outcome for a in session.history.attempts(1)] == ["interrupted"]


def test_a_draft_that_another_writer_crossed_can_be_tried_again(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    other = store.resume("s")
    for attempt in session.attempts(2, on=ConflictError):
        with attempt as turn:
            turn.data["n"] += 1
            if turn.attempt == 1:
                other.patch([{"op": "replace", "path": "/data/n", "value": 10}])
    first, second = session.history.attempts(1)
    assert first.outcome != "completed"
    assert second.outcome == "completed"
    assert session.data == {"n": 1}  # the retry went back to before the other's patch, which stays in the log


def test_async_attempts(store: Store) -> None:
    session = store.session("s")

    async def work() -> int:
        tries = 0
        for attempt in session.attempts(3, on=TimeoutError, user="go"):
            async with attempt as turn:
                tries = turn.attempt
                await asyncio.sleep(0)
                if tries < 2:
                    raise TimeoutError
        return tries

    assert asyncio.run(work()) == 2
    assert [a.outcome for a in session.history.attempts(1)] == ["failed", "completed"]


def test_a_loop_that_is_left_leaves_what_was_tried(store: Store) -> None:
    session = store.session("s")
    for attempt in session.attempts(3):
        with attempt:
            session.fact("k", 1)
        break
    assert [a.outcome for a in session.history.attempts(1)] == ["completed"]
    with pytest.raises(InvalidInputError, match="at least once"):
        session.attempts(0)


def test_attempts_are_summed_up_one_by_one(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2):
        with session.turn(user="go", retry=n > 1):
            cost = events.Cost(tokens_in=10 * n, usd_micros=n)
            session.append(events.ActionRecorded(action=f"a{n}", tool="t", cost=cost))
            session.append(events.BudgetSpent(cost=events.Cost(usd_micros=100)))
            session.files.record(f"{n}.py")
    one, two = session.history.attempts(1)
    assert (one.cost.usd_micros, two.cost.usd_micros) == (101, 102)
    assert (one.files, two.files) == (("1.py",), ("2.py",))
    assert (one.calls, len(one.steps)) == (1, 4)
    assert two.first > one.last
    with pytest.raises(NotFoundError):
        session.history.attempts(2)


def test_a_fork_that_left_before_a_turn_is_another_attempt_of_it(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="one"):
        pass
    left, right = (session.fork(name=name) for name in ("left", "right"))
    for fork in (left, right):
        with fork.turn(user="two"):
            fork.decide(fork.name)
        with fork.turn(user="three"):
            pass
    assert [a.name for a in session.history.attempts(2, forks=True)] == ["left@2", "right@2"]
    with session.turn(user="two"):
        pass
    late = session.fork(name="late")
    with late.turn(user="three"):
        pass
    assert [a.name for a in session.history.attempts(2, forks=True)] == ["s@2", "left@2", "right@2"]
    assert [a.name for a in session.history.attempts(2)] == ["s@2"]
    assert [a.name for a in session.history.attempts(forks=True)] == ["late@3"]
    again = session.fork(name="again")
    with again.turn(user="two", retry=True):
        pass
    assert [a.name for a in session.history.attempts(2, forks=True)][-1] == "again@2.2"
    assert len(session.history.attempts(2, forks=True)) == 4


def test_the_best_attempt_is_the_one_in_view(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2):
        with session.turn(user="go", retry=n > 1):
            session.fact("n", n)
    assert session.seq("@1.best") == session.seq("@1.2")
    session.rewind("@1.1")
    assert session.state().facts["n"].value == 1
    assert session.seq("@1.best") == session.seq("@1.1")
    assert session.history.compare("@1", "@1.2").courses[0].name == "s@1.1"


# Adopting


def test_adopting_is_undone_and_redone_in_one_go(store: Store) -> None:
    session = store.session("s", data={"n": 1})
    with session.turn(user="one"):
        session.fact("who", "parent")
    fork = session.fork(name="f")
    with fork.turn(user="two") as turn:
        fork.fact("who", "fork")
        turn.data["n"] = 2
    session.adopt(fork, why="it is better")
    assert (session.data, session.state().facts["who"].value) == ({"n": 2}, "fork")
    assert [m.text for m in session.messages()] == ["one", "two"]
    undone = session.undo()
    assert session.log.entry(undone.operation).body["mode"] == "adopt"
    assert (session.data, session.state().facts["who"].value) == ({"n": 1}, "parent")
    assert [m.text for m in session.messages()] == ["one"]
    with session.turn(user="three") as turn:
        assert turn.number == 2


def test_a_fork_is_adopted_as_it_was_at_a_place_of_its_own(store: Store) -> None:
    session = store.session("s")
    fork = session.fork(name="f")
    for n in (1, 2):
        with fork.turn(user=str(n)):
            fork.fact("n", n)
    session.adopt(fork, "@1")
    assert session.state().facts["n"].value == 1


def test_an_adoption_is_a_step_and_what_came_with_it_are_steps_too(store: Store) -> None:
    session = store.session("s")
    fork = session.fork(name="f")
    fork.message("assistant", "found it")
    before = session.head.seq
    session.adopt(fork)
    pair = session.history.compare(f"e{before + 1}..e{session.head.seq}", "e2..e3", other=fork).pairs[0]
    assert [step.kind for step in pair.a.steps] == ["adoption", "message"]
    assert [row.verdict for row in pair.rows] == ["only a", "same"]
