"""Async tools under asyncio and trio: cancelled at any moment, timed out, in parallel."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

import wakelog
from wakelog import NotAllowedError
from wakelog.session import Session
from wakelog.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kinds(session: Session[Any]) -> list[str]:
    return [e.kind for e in session.events(kind="action")]


def statuses(session: Session[Any]) -> list[str]:
    return [p.status for p in session.state().pending_actions.values()]


class Gate:
    """Holds the n-th commit of a session back until the test has seen it, and lets it go on."""

    def __init__(self, session: Session[Any], nth: int) -> None:
        self._engine = session.log.engine
        self._left = nth
        self.came, self.go_on = threading.Event(), threading.Event()
        session.log.engine = self

    def submit(self, *commits: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.came.set()
            assert self.go_on.wait(180)
        return self._engine.submit(*commits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def cancelled_at(came: threading.Event, go_on: threading.Event, work: Callable[[], Any]) -> None:
    """Runs some work, and cancels it when it has come to a point; then lets it go on from there."""
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await anyio.to_thread.run_sync(came.wait, 60)
        assert came.is_set()
        group.cancel_scope.cancel()
        threading.Timer(0.05, go_on.set).start()


# Cancelled


@pytest.mark.parametrize("effect", ["external", "read"])
async def test_a_call_cancelled_while_its_intent_was_written_never_ran_and_that_is_known(
    session: Session[Any], effect: Any
) -> None:
    ran: list[int] = []

    @session.tool(effect=effect)
    async def act(n: int) -> str:
        ran.append(n)
        return "done"

    async def work() -> str:
        async with session.turn("go"):
            return await act(1)

    gate = Gate(session, 2)  # the first commit opens the turn
    await cancelled_at(gate.came, gate.go_on, work)
    assert ran == []
    assert session.state().turn.status == "interrupted"
    assert kinds(session) == ["action.requested", "action.started", "action.failed"]
    assert statuses(session) == ["requested"]
    assert await work() == "done"
    assert ran == [1]
    assert statuses(session) == []


async def test_a_call_outside_a_turn_that_was_cancelled_before_it_ran_leaves_nothing_open(
    session: Session[Any],
) -> None:
    @session.tool
    async def act() -> None: ...

    gate = Gate(session, 1)
    await cancelled_at(gate.came, gate.go_on, act)
    assert kinds(session) == ["action.requested", "action.started", "action.failed"]
    assert statuses(session) == []


async def test_an_effect_cancelled_inside_is_uncertain_and_is_not_made_again(session: Session[Any]) -> None:
    came, never = threading.Event(), anyio.Event()
    ran: list[int] = []

    @session.tool
    async def act(n: int) -> None:
        ran.append(n)
        came.set()
        await never.wait()

    async def work() -> None:
        async with session.turn("go"):
            await act(1)

    await cancelled_at(came, threading.Event(), work)
    assert kinds(session) == ["action.requested", "action.started", "action.uncertain"]
    assert session.state().turn.status == "interrupted"
    with pytest.raises(NotAllowedError) as caught:
        await work()
    assert caught.value.kind == "uncertain-call"
    assert ran == [1]


async def test_a_read_cancelled_inside_is_made_again(session: Session[Any]) -> None:
    came, never = threading.Event(), anyio.Event()
    ran: list[int] = []

    @session.tool(effect="read")
    async def look() -> str:
        ran.append(1)
        if len(ran) == 1:
            came.set()
            await never.wait()
        return "seen"

    async def work() -> str:
        async with session.turn("go"):
            return await look()

    await cancelled_at(came, threading.Event(), work)
    assert statuses(session) == []
    assert await work() == "seen"
    assert len(ran) == 2


async def test_a_call_cancelled_while_its_outcome_was_written_has_it_on_record(session: Session[Any]) -> None:
    ran: list[int] = []

    @session.tool
    async def act(n: int) -> str:
        ran.append(n)
        return "done"

    async def work() -> str:
        async with session.turn("go"):
            return await act(1)

    gate = Gate(session, 3)
    await cancelled_at(gate.came, gate.go_on, work)
    assert kinds(session) == ["action.requested", "action.started", "action.succeeded"]
    assert session.state().turn.status == "interrupted"
    assert await work() == "done"
    assert ran == [1]


async def test_a_turn_cancelled_while_it_ended_is_ended(session: Session[Any]) -> None:
    async def work() -> None:
        async with session.turn("go"):
            pass

    gate = Gate(session, 2)
    await cancelled_at(gate.came, gate.go_on, work)
    assert session.state().turn.status == "completed"


async def test_a_turn_cancelled_while_it_began_is_not_left_open(session: Session[Any]) -> None:
    async def work() -> None:
        async with session.turn("go"):
            raise AssertionError("it was cancelled before")

    gate = Gate(session, 1)
    await cancelled_at(gate.came, gate.go_on, work)
    assert session.state().turn.status == "interrupted"


async def test_a_plain_function_that_was_cancelled_ends_later_and_what_it_says_counts(session: Session[Any]) -> None:
    came, go_on = threading.Event(), threading.Event()

    @session.tool
    def act() -> str:
        came.set()
        go_on.wait(180)
        return "done after all"

    async with anyio.create_task_group() as group:
        group.start_soon(session.aio.call, "act")
        await anyio.to_thread.run_sync(came.wait, 60)
        group.cancel_scope.cancel()
    assert statuses(session) == ["uncertain"]
    follow = session.follow(after=session.head.seq, timeout_s=60)
    go_on.set()
    entry = await anyio.to_thread.run_sync(next, follow, None)
    assert entry is not None
    assert (entry.kind, entry.body["output"]) == ("action.succeeded", "done after all")
    assert statuses(session) == []


async def test_a_wait_for_approval_can_be_cancelled_and_the_call_keeps_waiting(session: Session[Any]) -> None:
    session._runtime.approval_wait_s = 600
    asked = threading.Event()
    session._runtime.approver = lambda call, arguments: asked.set()

    @session.tool(approval=True)
    async def act() -> str:
        return "done"

    async def work() -> str:
        async with session.turn("go"):
            return await act()

    with anyio.fail_after(180):
        await cancelled_at(asked, threading.Event(), work)
    (action,) = session.state().pending_actions
    assert statuses(session) == ["waiting"]
    session.calls.approve(action)
    assert await work() == "done"


async def test_cancelled_twice_is_recorded_all_the_same(session: Session[Any]) -> None:
    """A task can be cancelled again while it cleans up."""
    started, never = threading.Event(), anyio.Event()

    @session.tool
    async def act() -> None:
        started.set()
        await never.wait()

    async def work() -> None:
        async with session.turn("go"):
            await act()

    gate = Gate(session, 3)

    async with anyio.create_task_group() as outer:

        async def inner() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                await anyio.to_thread.run_sync(started.wait, 60)
                group.cancel_scope.cancel()

        outer.start_soon(inner)
        await anyio.to_thread.run_sync(gate.came.wait, 60)
        outer.cancel_scope.cancel()
        threading.Timer(0.05, gate.go_on.set).start()
    assert statuses(session) == ["uncertain"]
    assert session.state().turn.status == "interrupted"


# Timed out


@pytest.mark.parametrize(("effect", "left", "kind"), [("external", 1, "uncertain"), ("read", 0, "timed_out")])
async def test_a_coroutine_that_takes_too_long_is_stopped(
    session: Session[Any], effect: Any, left: int, kind: str
) -> None:
    stopped: list[int] = []

    @session.tool(effect=effect, timeout_s=0.02)
    async def slow() -> None:
        try:
            await anyio.sleep(60)
        finally:
            stopped.append(1)

    outcome = await session.aio.call("slow")
    assert outcome.status == kind
    assert stopped == [1]
    assert len(statuses(session)) == left
    with pytest.raises(TimeoutError):
        outcome.unwrap()


async def test_a_plain_function_that_takes_too_long_is_not_waited_for(session: Session[Any]) -> None:
    go_on = threading.Event()

    @session.tool(timeout_s=0.02)
    def slow() -> str:
        go_on.wait(180)
        return "late"

    outcome = await session.aio.call("slow")
    assert outcome.status == "uncertain", "it was waited for"
    follow = session.follow(after=session.head.seq, timeout_s=60)
    go_on.set()
    entry = await anyio.to_thread.run_sync(next, follow, None)
    assert entry is not None
    assert (entry.kind, entry.body["output"]) == ("action.succeeded", "late")


async def test_a_timeout_around_a_call_is_the_callers_own(session: Session[Any]) -> None:
    @session.tool
    async def slow() -> None:
        scope.deadline = anyio.current_time()  # the time is up now that it runs, however long it took to come here
        await anyio.sleep(600)

    with pytest.raises(TimeoutError):
        with anyio.fail_after(600) as scope:
            await slow()
    assert statuses(session) == ["uncertain"]


async def test_a_timeout_error_of_the_tool_itself_is_not_the_runtimes(session: Session[Any]) -> None:
    @session.tool(timeout_s=60)
    async def odd() -> None:
        raise TimeoutError("upstream")

    outcome = await session.aio.call("odd")
    assert (outcome.status, outcome.error and outcome.error.message) == ("uncertain", "upstream")


async def test_retries_wait_without_blocking(session: Session[Any]) -> None:
    tries: list[int] = []

    @session.tool(retry=2, backoff_s=0.01)
    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise wakelog.NotSentError("not yet")
        return "done"

    assert await flaky() == "done"
    assert len(tries) == 3


async def test_a_call_cancelled_between_two_tries_is_not_left_running(session: Session[Any]) -> None:
    tried = threading.Event()

    @session.tool(retry=2, backoff_s=60)
    async def flaky() -> None:
        tried.set()
        raise wakelog.NotSentError("not yet")

    await cancelled_at(tried, threading.Event(), flaky)
    assert statuses(session) == []
    assert kinds(session)[-1] == "action.failed"


# In parallel


async def test_parallel_calls_all_land_and_each_knows_itself(session: Session[Any]) -> None:
    seen: dict[int, str] = {}

    @session.tool(effect="read")
    async def look(n: int) -> int:
        before = wakelog.current_call()
        await anyio.sleep(0.001 * (n % 3))
        call = wakelog.current_call()
        assert call is not None
        assert call is before
        assert wakelog.current() is session
        seen[n] = call.action
        return n * n

    answers: dict[int, int] = {}

    async def one(n: int) -> None:
        answers[n] = await look(n)

    async with session.turn("go"), anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(one, n)
    assert answers == {n: n * n for n in range(20)}
    assert len(set(seen.values())) == 20
    assert session.state().tools_used["look"].calls == 20
    assert session.verify().ok


async def test_when_one_of_several_fails_the_others_are_recorded_as_cut(session: Session[Any]) -> None:
    began: list[int] = []

    @session.tool
    async def act(n: int) -> None:
        began.append(n)
        if n == 0:
            while len(began) < 3:
                await anyio.sleep(0.001)
            raise ValueError("no")
        await anyio.sleep(60)

    with pytest.raises(ExceptionGroup) as caught:
        async with session.turn("go"), anyio.create_task_group() as group:
            for n in range(3):
                group.start_soon(act, n)
    assert [str(e) for e in caught.value.exceptions] == ["no"]
    assert statuses(session) == ["uncertain", "uncertain"]
    assert session.state().turn.status == "failed"


async def test_what_is_read_as_untrusted_is_marked_in_its_own_task_only(session: Session[Any]) -> None:
    async def record(key: str, source: str) -> None:
        if not source:
            session.fact(key, 1)
            return
        with wakelog.untrusted(source):
            await anyio.sleep(0.001)
            await session.aio.fact(key, 1)

    async with session.turn("go"), anyio.create_task_group() as group:
        group.start_soon(record, "a", "web:x")
        group.start_soon(record, "b", "")
    marks = {e.body["key"]: (e.header.trust, e.header.source) for e in session.events(kind="fact")}
    assert marks == {"a": ("untrusted", "web:x"), "b": ("trusted", "")}


# Exceptions, and plain functions


async def test_an_exception_goes_on_unchanged(session: Session[Any]) -> None:
    class Odd(Exception):
        pass

    error = Odd("x")

    @session.tool
    async def fail() -> None:
        raise error

    with pytest.raises(Odd) as caught:
        await fail()
    assert caught.value is error


async def test_a_plain_function_runs_beside_the_loop_with_what_is_around_it(session: Session[Any]) -> None:
    here = threading.get_ident()

    @session.tool(effect="read")
    def look() -> tuple[bool, bool, str]:
        call = wakelog.current_call()
        assert call is not None
        return threading.get_ident() != here, wakelog.current() is session, call.tool

    async with session.turn("go"):
        outcome = await session.aio.call("look")
    assert outcome.result == (True, True, "look")


async def test_a_module_level_tool_is_awaited_as_before(session: Session[Any]) -> None:
    @wakelog.tool(effect="read")
    async def look(n: int) -> int:
        return n

    assert await look(1) == 1
    async with session.turn("go"):
        assert await look(2) == 2
    assert kinds(session) == ["action.requested", "action.started", "action.succeeded"]


async def test_a_coroutine_function_is_not_called_without_waiting(session: Session[Any]) -> None:
    @session.tool
    async def act() -> None: ...

    with pytest.raises(wakelog.InvalidInputError) as caught:
        session.call("act")
    assert caught.value.kind == "async-tool"

    def hidden() -> Any:
        return act()

    with pytest.raises(wakelog.InvalidInputError) as caught:
        session.tool(hidden)()
    assert caught.value.kind == "async-tool"
    assert statuses(session) == []


def test_a_generator_is_refused_when_it_is_decorated(session: Session[Any]) -> None:
    def stream() -> Any:
        yield 1

    async def astream() -> Any:
        yield 1

    for function in (stream, astream):
        with pytest.raises(wakelog.InvalidInputError) as caught:
            session.tool(function)
        assert caught.value.kind == "generator-tool"


# Blocking: Ctrl-C


@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_ctrl_c_inside_an_effect_leaves_it_uncertain(session: Session[Any], timeout_s: float | None) -> None:
    @session.tool(timeout_s=timeout_s)
    def act() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), session.turn("go"):
        act()
    assert statuses(session) == ["uncertain"]
    assert session.state().turn.status == "interrupted"


@pytest.mark.parametrize(("nth", "left"), [(2, ["requested"]), (3, ["uncertain"])])
def test_ctrl_c_while_something_was_written_leaves_no_call_running(
    session: Session[Any], nth: int, left: list[str]
) -> None:
    """At the intent it is known that the call did not run; at the outcome, that its result may be lost."""
    engine = session.log.engine

    class Interrupted:
        left = nth

        def submit(self, *commits: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                if nth == 2:
                    engine.submit(*commits).result()
                raise KeyboardInterrupt
            return engine.submit(*commits)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    ran: list[int] = []

    @session.tool
    def act() -> None:
        ran.append(1)

    session.log.engine = Interrupted()
    with pytest.raises(KeyboardInterrupt), session.turn("go"):
        act()
    assert statuses(session) == left
    assert len(ran) == nth - 2


def test_a_loop_that_is_shut_down_leaves_the_outcome_on_record(store: Store) -> None:
    """asyncio cancels what is left when its main task ends."""
    session = store.session("left")

    @session.tool
    async def act() -> str:
        return "done"

    gate = Gate(session, 2)

    async def main() -> None:
        task = asyncio.create_task(act())
        await asyncio.to_thread(gate.came.wait, 60)
        threading.Timer(0.05, gate.go_on.set).start()
        assert not task.done()

    asyncio.run(main())
    assert kinds(session) == ["action.requested", "action.started", "action.succeeded"]
