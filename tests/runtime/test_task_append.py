"""Appends that a task awaits without a thread: answered, refused, cancelled, and left to a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from wakelog import ConflictError, NotAllowedError
from wakelog.engine import Abilities
from wakelog.engines.append_answer import AppendAnswer
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import UnavailableError
from wakelog.model import events as ev
from wakelog.model.records import Commit, Head
from wakelog.runtime import task_append, worker_threads
from wakelog.session import Session
from wakelog.store import Store


class HeldEngine(MemoryEngine):
    """Takes commits from tasks, and answers them in a thread, when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[AppendAnswer] = []
        self.taken = 0

    @property
    def abilities(self) -> Abilities:
        return msgspec.structs.replace(super().abilities, submit_soon=self.submit_soon)

    def submit_soon(self, commit: Commit) -> AppendAnswer:
        self.taken += 1
        self.held.append(AppendAnswer((commit,)))
        return self.held[-1]

    def answer(self, how: Callable[[AppendAnswer], None] | None = None) -> None:
        """Answers everything that is held, in another thread."""
        held, self.held = self.held, []
        thread = threading.Thread(target=lambda: [*map(how or self._store_held, held)])
        thread.start()
        thread.join()

    def _store_held(self, held: AppendAnswer) -> None:
        try:
            held.give(self.submit(*held.commits).result())
        except Exception as exc:
            held.refuse(exc)


@pytest.fixture
def engine() -> HeldEngine:
    return HeldEngine()


@pytest.fixture
def session(engine: HeldEngine) -> Session[Any]:
    session: Session[Any] = Store(engine).session("s")
    session.fact("first", 1)
    return session


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions that were run in worker threads."""
    found: list[Any] = []
    start = worker_threads.WorkerThreads.start

    def counted(self: worker_threads.WorkerThreads, call: Any) -> None:
        found.append(call)
        start(self, call)

    monkeypatch.setattr(worker_threads.WorkerThreads, "start", counted)
    return found


def a(key: str) -> ev.FactRecorded:
    return ev.FactRecorded(key=key, value=1)


async def held(engine: HeldEngine, *work: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    """Starts tasks, and returns when the engine has what they append."""
    tasks = [asyncio.create_task(each) for each in work]
    while len(engine.held) < len(tasks):
        await asyncio.sleep(0)
    return tasks


def facts(session: Session[Any]) -> list[str]:
    return [e.event.key for e in session.log.entries() if isinstance(e.event, ev.FactRecorded)]


def test_verbs_that_append_need_no_thread(engine: HeldEngine, session: Session[Any], threads: list[Any]) -> None:
    async def run() -> None:
        verbs = [
            lambda: session.aio.append(a("a"), a("b")),
            lambda: session.aio.fact("c", 1),
            lambda: session.aio.message("user", "hello"),
            lambda: session.aio.decide("this", because="that"),
            lambda: session.aio.dead_end("that"),
            lambda: session.aio.artefact("report", uri="file:a"),
            lambda: session.aio.set_goal("more"),
            lambda: session.aio.label({"team": "ops"}),
        ]
        for verb in verbs:
            before = session.log.head().seq
            [task] = await held(engine, verb())
            engine.answer()
            answer = await task
            is_head = isinstance(answer, Head)
            assert (answer.seq if is_head else answer) == before + (2 if is_head else 1)
        assert engine.taken == len(verbs)

    asyncio.run(run())
    assert not threads
    assert facts(session) == ["first", "a", "b", "c"]
    session.verify()


def test_the_seq_is_of_the_event_and_not_of_a_redaction_behind_it(engine: HeldEngine, session: Session[Any]) -> None:
    async def run() -> int:
        before = session.log.head().seq
        [task] = await held(engine, session.aio.fact("key", "AKIA" + "IOSFODNN7EXAMPLQ"))
        engine.answer()
        return int(await task) - before

    assert asyncio.run(run()) == 1


def test_tasks_that_are_answered_together_wake_their_loop_once(engine: HeldEngine) -> None:
    store = Store(engine)
    sessions = [store.session(f"s{i}") for i in range(20)]
    for each in sessions:
        each.fact("first", 1)
    wakes: list[Any] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        soon = loop.call_soon_threadsafe

        def counted(call: Any, *args: Any, **how: Any) -> Any:
            wakes.append(call)
            return soon(call, *args, **how)

        tasks = await held(engine, *(each.aio.append(a("a")) for each in sessions))
        loop.call_soon_threadsafe = counted  # type: ignore[assignment]

        async def answer() -> None:  # as an engine does that has a loop
            held, engine.held = engine.held, []
            for each in held:
                engine._store_held(each)

        thread = threading.Thread(target=lambda: asyncio.run(answer()))
        thread.start()
        await asyncio.gather(*tasks)
        thread.join()

    asyncio.run(run())
    assert len(wakes) == 1


def test_an_append_that_another_writer_was_faster_than_follows_it(engine: HeldEngine, session: Session[Any]) -> None:
    async def run() -> Head:
        [task] = await held(engine, session.aio.append(a("mine")))
        Store(engine).resume("s").fact("theirs", 1)
        engine.answer()
        return await task

    assert asyncio.run(run()).seq == session.log.head().seq
    assert facts(session) == ["first", "theirs", "mine"]


def test_an_append_that_expects_an_old_head_is_refused(engine: HeldEngine, session: Session[Any]) -> None:
    seq = session.log.head().seq

    async def run() -> None:
        with pytest.raises(ConflictError) as told:
            await session.aio.append(a("late"), expect=seq - 1)
        assert (told.value.kind, told.value.head_seq) == ("head-moved", seq)
        [task] = await held(engine, session.aio.append(a("mine"), expect=seq))
        Store(engine).resume("s").fact("theirs", 1)
        engine.answer()
        with pytest.raises(ConflictError) as told:
            await task
        assert (told.value.kind, told.value.head_seq) == ("head-moved", seq + 1)

    asyncio.run(run())
    assert facts(session) == ["first", "theirs"]


def test_events_that_are_not_legal_are_refused(engine: HeldEngine, session: Session[Any]) -> None:
    async def run() -> None:
        with pytest.raises(NotAllowedError):
            await session.aio.append(ev.TurnEnded())

    asyncio.run(run())
    assert not engine.taken
    session.fact("next", 1)
    session.verify()


def test_a_lost_answer_is_asked_for_again(engine: HeldEngine, session: Session[Any]) -> None:
    def lose(held: AppendAnswer) -> None:
        engine.submit(*held.commits).result()
        held.refuse(UnavailableError("lost", kind="answer-unknown"))

    async def run() -> Head:
        [task] = await held(engine, session.aio.append(a("a")))
        engine.answer(lose)
        return await task

    assert asyncio.run(run()).seq == session.log.head().seq
    assert facts(session) == ["first", "a"]


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_cancelled_append_is_stored_once_or_not_at_all(
    engine: HeldEngine, session: Session[Any], is_stored: bool
) -> None:
    def refuse(held: AppendAnswer) -> None:
        held.refuse(UnavailableError("away", kind="unreachable"))

    async def run() -> None:
        [task] = await held(engine, session.aio.append(a("a")))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        engine.answer(None if is_stored else refuse)
        while session.log._flight:  # a thread learns the answer
            await asyncio.sleep(0.001)
        [task] = await held(engine, session.aio.append(a("b"))) if is_stored else [asyncio.create_task(_plain())]
        engine.answer()
        await task

    async def _plain() -> None:
        session.fact("b", 1)

    asyncio.run(run())
    assert facts(session) == (["first", "a", "b"] if is_stored else ["first", "b"])
    session.verify()


def test_an_append_whose_loop_has_ended_is_not_believed(engine: HeldEngine, session: Session[Any]) -> None:
    loop = asyncio.new_event_loop()

    async def begin() -> Coroutine[Any, Any, Head]:
        work = session.aio.append(a("a"))
        work.send(None)  # as a task does that is never run again
        return work

    work = loop.run_until_complete(begin())
    loop.close()
    work.close()
    assert engine.taken
    engine.answer()
    Store(engine).resume("s").fact("theirs", 1)
    session.append(a("b"), expect=session.log.head().seq)
    assert facts(session) == ["first", "a", "theirs", "b"]
    session.verify()


def test_what_would_hold_up_the_loop_is_done_in_a_thread(
    engine: HeldEngine, session: Session[Any], threads: list[Any]
) -> None:
    async def run() -> None:
        await session.aio.fact("big", "x" * 100_000)
        await session.aio.append(a("chosen"), commit_id="mine")
        session.log.forget()
        await session.aio.fact("unknown", 1)

    asyncio.run(run())
    assert not engine.taken
    assert len(threads) == 3
    assert facts(session) == ["first", "big", "chosen", "unknown"]


def test_a_lock_that_is_held_does_not_hold_up_the_loop(
    engine: HeldEngine, session: Session[Any], threads: list[Any]
) -> None:
    has_lock, may_release = threading.Event(), threading.Event()

    def hold() -> None:
        with session.log._lock:
            has_lock.set()
            may_release.wait(60)

    async def run() -> None:
        thread = threading.Thread(target=hold)
        thread.start()
        has_lock.wait(60)
        task = asyncio.create_task(session.aio.append(a("a")))
        while not threads:
            await asyncio.sleep(0)
        may_release.set()
        await task
        thread.join()

    asyncio.run(run())
    assert not engine.taken
    assert facts(session) == ["first", "a"]


def test_a_bell_outlives_an_engine_that_ends_before_it_rings(session: Session[Any]) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        bell = task_append.LoopBell(loop)
        lost, last = loop.create_future(), loop.create_future()

        def answer_and_end() -> None:
            other = asyncio.new_event_loop()
            other.call_soon(other.stop)
            other.call_soon(bell.wake, lost)
            other.run_forever()  # ends before what it was to do next
            other.close()
            bell.wake(last)  # as a store that closes

        await asyncio.to_thread(answer_and_end)
        await asyncio.wait_for(asyncio.gather(lost, last), 60)

    asyncio.run(run())
