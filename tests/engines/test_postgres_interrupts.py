"""Appends to PostgreSQL that are interrupted, or whose process forks, while an event loop runs in the same thread."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.engines.postgres_server import Server
from wakelog.engines.postgres import PostgresEngine
from wakelog.session import Session
from wakelog.store import Store

STALLED_S = 20.0
"""Less than a statement may take, and more than anything here needs."""
WAITING = "select count(*) from pg_locks where relation = 'wl_commit'::regclass and not granted"
CUT_OFF = """
select pg_terminate_backend(pid) from pg_stat_activity where query like '%wl_commit%' and pid <> pg_backend_pid()
"""


@contextlib.contextmanager
def stalled(postgres: Server) -> Iterator[threading.Event]:
    """While this is open, no append is answered. The event is set when one waits."""
    waits, over = threading.Event(), threading.Event()
    held = threading.Event()

    async def hold() -> None:
        db = await asyncpg.connect(postgres.url)
        async with db.transaction():
            await db.execute("lock table wl_commit in exclusive mode")
            held.set()
            while not over.is_set():
                if await db.fetchval(WAITING):
                    waits.set()
                await asyncio.sleep(0.01)
        await db.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    assert held.wait(60)
    try:
        yield waits
    finally:
        over.set()
        thread.join(60)


@pytest.fixture(autouse=True)
def _alarm() -> Iterator[None]:
    """An alarm interrupts the main thread, as Ctrl-C does."""

    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupt(waits: threading.Event) -> None:
    assert waits.wait(60)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)


async def append(session: Session, value: int) -> None:
    session.fact("k", value)


def test_an_interrupt_ends_an_append_inside_a_running_loop_at_once(postgres: Server, tmp_path: Path) -> None:
    with Store(PostgresEngine(postgres.url, ns=tmp_path.name)) as store:
        session = store.session("s")
        session.fact("k", 0)
        loop = asyncio.new_event_loop()  # `asyncio.run` would turn the first interrupt into a cancellation
        with stalled(postgres) as waits:
            threading.Thread(target=interrupt, args=(waits,)).start()
            begun = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(append(session, 1))
            assert time.monotonic() - begun < STALLED_S
        loop.run_until_complete(append(session, 2))
        loop.close()
        found = [e.body["value"] for e in session.events(kind="fact")]
        assert found in ([0, 2], [0, 1, 2])
        assert session.verify().ok


@pytest.mark.parametrize("step", ["abort", "close"])
@pytest.mark.parametrize("inside", [False, True], ids=["plain", "inside a loop"])
def test_a_second_interrupt_while_the_connection_is_given_up(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, inside: bool
) -> None:
    engine = PostgresEngine(postgres.url, ns=tmp_path.name)
    with Store(engine) as store:
        session = store.session("s")
        session.fact("k", 0)
        lane: Any = engine._appends

        def struck(*_: Any) -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(lane._loop, step, struck)
        loop = asyncio.new_event_loop()
        with stalled(postgres) as waits:
            threading.Thread(target=interrupt, args=(waits,)).start()
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(append(session, 1)) if inside else session.fact("k", 1)
        session.fact("k", 2)
        loop.run_until_complete(append(session, 3))
        loop.close()
        found = [e.body["value"] for e in session.events(kind="fact")]
        assert found in ([0, 2, 3], [0, 1, 2, 3])
        assert session.verify().ok


def test_a_forked_child_that_drops_the_store_does_not_deafen_its_parent(postgres: Server, tmp_path: Path) -> None:
    """To look up a host's name, the loop needs to be woken by another thread."""
    url = postgres.url.replace("127.0.0.1", "localhost")
    store = Store(PostgresEngine(url, ns=tmp_path.name))
    session = store.session("s")
    session.fact("k", 0)
    child = os.fork()
    if not child:
        try:
            del session, store
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    postgres.sql(CUT_OFF)
    begun = time.monotonic()
    session.fact("k", 1)
    assert time.monotonic() - begun < STALLED_S
    assert [e.body["value"] for e in session.events(kind="fact")] == [0, 1]
    store.close()
