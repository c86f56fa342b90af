"""Appends of tasks to the NATS engine: sent together, without a thread for each."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.nats_server import NatsServer
from tests.engines.test_nats import engine_on
from wakelog.engines import loop_owner
from wakelog.engines.nats import NatsEngine
from wakelog.errors import UnavailableError
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store


@pytest.fixture
def engine(nats: NatsServer, tmp_path: Path) -> Iterator[NatsEngine]:
    engine = engine_on(nats, tmp_path.name)
    yield engine
    engine.close()


def sessions_of(engine: NatsEngine, count: int) -> list[Session[Any]]:
    store = Store(engine)
    made = [store.session(f"s{i}") for i in range(count)]
    for each in made:
        each.fact("first", 1)
    return made


def keys(session: Session[Any]) -> list[str]:
    return [e.event.key for e in session.log.entries() if isinstance(e.event, ev.FactRecorded)]


def count_arrivals(engine: NatsEngine) -> list[int]:
    """How many appends were passed to the engine's loop at a time."""
    found, pass_on, arrivals = list[int](), engine._arrivals.pass_on, engine._arrivals

    def counted() -> None:
        found.append(len(arrivals._arrived))
        pass_on()

    arrivals.pass_on = counted  # type: ignore[method-assign]
    return found


def test_what_tasks_append_that_are_ready_together_goes_together(engine: NatsEngine) -> None:
    sessions = sessions_of(engine, 20)
    counts = count_arrivals(engine)

    async def run() -> None:
        await asyncio.gather(*(session.aio.fact("a", 1) for session in sessions))

    before = threading.active_count()
    asyncio.run(run())
    assert counts == [20]
    assert threading.active_count() == before
    assert all(keys(session) == ["first", "a"] for session in sessions)


def test_many_tasks_do_not_wait_for_the_last_of_them(engine: NatsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_owner, "TOGETHER", 8)
    sessions = sessions_of(engine, 20)
    counts = count_arrivals(engine)

    async def run() -> None:
        await asyncio.gather(*(session.aio.fact("a", 1) for session in sessions))

    asyncio.run(run())
    assert counts[0] == 8
    assert all(keys(session) == ["first", "a"] for session in sessions)


def test_a_plain_append_on_the_loop_sends_what_its_tasks_have_begun(engine: NatsEngine) -> None:
    """It blocks the loop, which would have sent them."""
    [session] = sessions_of(engine, 1)

    async def run() -> None:
        task = asyncio.create_task(session.aio.fact("a", 1))
        await asyncio.sleep(0)  # begun, and not sent
        pending = session.log._flight[0].pending
        assert pending.result().seq == session.fact("b", 1) - 1
        await task

    asyncio.run(run())
    assert keys(session) == ["first", "a", "b"]


def test_tasks_of_several_loops_append_at_once(engine: NatsEngine) -> None:
    sessions = sessions_of(engine, 12)

    async def write(session: Session[Any]) -> None:
        for number in range(20):
            await session.aio.fact(str(number), 1)

    async def run(some: list[Session[Any]]) -> None:
        await asyncio.gather(*map(write, some))

    threads = [threading.Thread(target=lambda n=n: asyncio.run(run(sessions[n::3]))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    for session in sessions:
        assert keys(session) == ["first", *map(str, range(20))]
        session.verify()


def test_tasks_of_one_session_append_in_order(engine: NatsEngine) -> None:
    [session] = sessions_of(engine, 1)

    async def run() -> list[int]:
        return await asyncio.gather(*(session.aio.fact(str(number), 1) for number in range(30)))

    found = asyncio.run(run())
    assert found == list(range(found[0], found[0] + 30))
    assert keys(session) == ["first", *map(str, range(30))]
    session.verify()


def test_a_cancelled_append_is_stored_once_and_the_session_goes_on(engine: NatsEngine) -> None:
    [session] = sessions_of(engine, 1)

    async def run() -> None:
        task = asyncio.create_task(session.aio.fact("a", 1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.aio.fact("b", 1)

    asyncio.run(run())
    assert keys(session) == ["first", "a", "b"]
    session.verify()


def test_two_processes_that_append_in_tasks_lose_nothing(engine: NatsEngine, nats: NatsServer, tmp_path: Path) -> None:
    [session] = sessions_of(engine, 1)
    with Store(engine_on(nats, tmp_path.name)) as other:
        theirs: Session[Any] = other.resume("s0")

        async def run() -> None:
            async def write(who: Session[Any], mark: str) -> None:
                for number in range(15):
                    await who.aio.fact(f"{mark}{number}", 1)

            await asyncio.gather(write(session, "a"), write(theirs, "b"))

        asyncio.run(run())
    found = keys(session)[1:]
    assert [k for k in found if k[0] == "a"] == [f"a{n}" for n in range(15)]
    assert [k for k in found if k[0] == "b"] == [f"b{n}" for n in range(15)]
    assert len(found) == 30
    session.verify()


def test_a_task_of_a_closed_store_is_told(nats: NatsServer, tmp_path: Path) -> None:
    engine = engine_on(nats, tmp_path.name)
    [session] = sessions_of(engine, 1)
    engine.close()

    async def run() -> None:
        with pytest.raises(UnavailableError) as told:
            await session.aio.fact("a", 1)
        assert told.value.kind == "store-closed"
        engine._closed = False  # a caller that checked just before
        with pytest.raises(UnavailableError) as told:
            await asyncio.wait_for(session.aio.fact("a", 1), 60)
        assert told.value.kind == "store-closed"

    asyncio.run(run())
