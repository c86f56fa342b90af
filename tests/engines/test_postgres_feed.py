"""The feed of a PostgreSQL store misses nothing and repeats nothing, whatever transactions are running."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.engines.postgres_server import Server
from wakelog.engine import FeedChange
from wakelog.engines.postgres import PostgresEngine, feed
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.rows import to_row
from wakelog.model.ids import root_of
from wakelog.testing.builders import CommitWriter, fact


@pytest.fixture
def engine(postgres: Server, tmp_path: Path) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres.url, ns=tmp_path.name)
    yield made
    made.close()


def follow(engine: PostgresEngine, cursor: str = "", limit: int = 100) -> tuple[list[FeedChange], str]:
    """All changes after the cursor, and the next cursor."""
    found: list[FeedChange] = []
    while page := engine.changes(cursor, limit):
        found += page
        cursor = page[-1].cursor
    return found, cursor


def opened(engine: PostgresEngine) -> CommitWriter:
    writer = CommitWriter()
    engine.submit(writer.open()).result()
    return writer


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_a_busy_session_is_told_to_its_end(engine: PostgresEngine, limit: int) -> None:
    hot, quiet = opened(engine), opened(engine)
    for number in range(300):
        engine.submit(hot.seal(fact(str(number)))).result()
    found, cursor = follow(engine, limit=limit)
    assert [c.seq for c in found if c.session == hot.session] == list(range(1, 302))
    engine.submit(quiet.seal(fact("late"))).result()
    more, _ = follow(engine, cursor, limit)
    assert [(c.session, c.seq) for c in more] == [(quiet.session, 2)]


def test_a_cursor_is_short_however_many_sessions_are_busy(engine: PostgresEngine) -> None:
    writers = [opened(engine) for _ in range(100)]
    for _ in range(2):
        for pending in [engine.submit(w.seal(fact("x"))) for w in writers]:
            pending.result()
    found, _ = follow(engine)
    assert len(found) == 300
    assert max(len(change.cursor) for change in found) < 1000
    assert len(engine.end_of_feed()) < 1000


@pytest.mark.parametrize("slack_us", [feed.SLACK_US, 0])
def test_what_becomes_visible_behind_what_was_told_is_told_too(
    engine: PostgresEngine, postgres: Server, slack_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the append took longer than the feed looks back where it is not told."""
    monkeypatch.setattr(feed, "SLACK_US", slack_us)
    slow, quick = opened(engine), opened(engine)
    _, cursor = follow(engine)
    commit = slow.seal(fact("began first"))

    async def play() -> None:
        nonlocal cursor
        db = await asyncpg.connect(postgres.url)
        transaction = db.transaction()
        await transaction.start()
        key = engine.ns, root_of(commit.session), commit.session
        await db.execute(sql.INSERT, *key, *to_row(commit), 0)
        for number in range(3):
            await asyncio.to_thread(engine.submit(quick.seal(fact(str(number)))).result)
            found, cursor = await asyncio.to_thread(follow, engine, cursor)
            assert [c.session for c in found] == [quick.session]
        end = await asyncio.to_thread(engine.end_of_feed)
        await transaction.commit()
        await db.close()
        for place in (cursor, end):
            found, _ = await asyncio.to_thread(follow, engine, place)
            assert [(c.session, c.seq) for c in found] == [(slow.session, 2)]

    asyncio.run(play())


def test_times_do_not_go_back_when_the_clock_of_the_next_server_is_behind(
    engine: PostgresEngine, postgres: Server
) -> None:
    writer, other = opened(engine), opened(engine)
    hour = 3_600_000_000
    engine._execute(f"update wl_commit set stored_at = stored_at + {hour} where ns = '{engine.ns}'")
    found, cursor = follow(engine)
    assert len(found) == 2
    later = PostgresEngine(postgres.url, ns=engine.ns)  # as after a failover: connections are new
    for number in range(3):
        later.submit(writer.seal(fact(str(number)))).result()
        later.submit(other.seal(fact(str(number)))).result()
        found, cursor = follow(later, cursor)
        assert {(c.session, c.seq) for c in found} == {(w.session, number + 2) for w in (writer, other)}
    later.close()


def test_where_the_work_of_others_is_hidden_the_horizon_lies_back(engine: PostgresEngine, postgres: Server) -> None:
    opened(engine)

    async def ask(url: str, *, work: str = "") -> float:
        """How far back the horizon is, in multiples of the slack, while another transaction runs."""
        db, other = await asyncpg.connect(url), await asyncpg.connect(postgres.url)
        try:
            async with other.transaction():
                await other.fetch(work or "select 1")
                before = int(await db.fetchval(f"select {sql.NOW}"))
                return (before - await feed._horizon(db)) / feed.SLACK_US
        finally:
            await db.close()
            await other.close()

    stores = "update wl_commit set last = last where false"
    assert asyncio.run(ask(postgres.url, work=stores)) < 0.5
    engine._execute("create role nobody_else login")
    stranger = postgres.url.replace("postgres@", "nobody_else@")
    assert asyncio.run(ask(stranger, work=stores)) > 0.5
    assert asyncio.run(ask(stranger)) < 0.5, "one that stores nothing hides nothing"


@pytest.mark.parametrize("hold", ["select count(*) from wl_commit", "create table other_work (a int)"])
def test_who_stores_nothing_does_not_hold_the_horizon_back(engine: PostgresEngine, postgres: Server, hold: str) -> None:
    async def play() -> None:
        db, other = await asyncpg.connect(postgres.url), await asyncpg.connect(postgres.url)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(hold)
        now = int(await db.fetchval(f"select {sql.NOW}"))
        assert await feed._horizon(db) > now
        await transaction.rollback()
        await db.close()
        await other.close()

    asyncio.run(play())


def test_many_writers_and_readers_at_once(engine: PostgresEngine, postgres: Server) -> None:
    count, writers = 40, 6
    told: list[list[FeedChange]] = []
    names: list[Any] = [opened(engine) for _ in range(writers)]
    stop = threading.Event()

    def write(writer: CommitWriter) -> None:
        own = PostgresEngine(postgres.url, ns=engine.ns)
        for number in range(count):
            own.submit(writer.seal(fact(str(number)))).result()
        own.close()

    def read(limit: int) -> None:
        own = PostgresEngine(postgres.url, ns=engine.ns)
        found, cursor = follow(own, "", limit)
        while True:
            is_last = stop.is_set()
            more, cursor = follow(own, cursor, limit)
            found += more
            if is_last:
                break
        told.append(found)
        own.close()

    readers = [threading.Thread(target=read, args=(limit,)) for limit in (1, 3, 100)]
    threads = [threading.Thread(target=write, args=(writer,)) for writer in names]
    for thread in (*readers, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert len(told) == len(readers)
    for found in told:
        for writer in names:
            assert [c.seq for c in found if c.session == writer.session] == list(range(1, count + 2))
