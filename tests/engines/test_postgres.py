"""The PostgreSQL engine keeps the contract, on a real server."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import wakelog
from tests.engines.leaks import open_connections
from tests.engines.postgres_server import Server
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.postgres import statements as sql
from wakelog.store import Store
from wakelog.testing.contract import EngineContract


class TestPostgres(EngineContract):
    server: Server

    @pytest.fixture(autouse=True)
    def _served(self, postgres: Server) -> None:
        self.server = postgres

    def make_engine(self, tmp_path: Path) -> Engine:
        return PostgresEngine(self.server.url, ns=str(tmp_path))


def test_namespaces_of_one_database_do_not_see_each_other(postgres: Server, tmp_path: Path) -> None:
    with (
        Store(PostgresEngine(postgres.url, ns=f"{tmp_path}-a")) as a,
        Store(PostgresEngine(postgres.url, ns=f"{tmp_path}-b")) as b,
    ):
        session: Any = a.session("s")
        assert b.engine.find("s") is None
        assert list(b.sessions()) == []
        assert list(b.engine.changes()) == []
        assert b.session("s").id != session.id


def test_both_sides_of_a_fork_of_the_process_go_on(postgres: Server, tmp_path: Path) -> None:
    with Store(PostgresEngine(postgres.url, ns=tmp_path.name)) as store:
        session = store.session("s")
        for number in range(3):
            child = os.fork()
            if not child:
                code = 1
                try:
                    session.fact("child", number)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
            session.fact("parent", number)
        assert [e.body["key"] for e in session.events(kind="fact")] == ["child", "parent"] * 3
        assert session.verify().ok


def test_an_answer_is_synced_also_for_a_user_who_is_set_not_to_wait_for_it(postgres: Server, tmp_path: Path) -> None:
    postgres.sql("create role hasty login superuser")
    postgres.sql("alter role hasty set synchronous_commit = off")
    engine = PostgresEngine(postgres.url.replace("postgres@", "hasty@"), ns=tmp_path.name)
    [row] = engine._fetch("select current_setting('synchronous_commit') as value")
    assert row["value"] == "on"
    engine.close()


def test_many_who_wait_share_one_listener_and_closing_leaves_nothing_open(postgres: Server, tmp_path: Path) -> None:
    engine = PostgresEngine(postgres.url, ns=tmp_path.name)
    session = Store(engine).session("s")
    connects: list[int] = []
    connect = engine._connections.connect
    together = threading.Barrier(8)

    async def counted(**settings: str) -> Any:
        if not settings:  # the connection for notifications has some
            connects.append(1)
        return await connect(**settings)

    engine._connections.connect = counted  # type: ignore[method-assign]

    def wait() -> None:
        together.wait(180)
        engine.wait(session.id, after=session.head.seq, timeout_s=0.0)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert connects == [1]
    engine.close()
    assert open_connections() == []


def test_what_cannot_be_closed_in_order_does_not_keep_the_rest_open(postgres: Server, tmp_path: Path) -> None:
    engine = PostgresEngine(postgres.url, ns=tmp_path.name)
    session = Store(engine).session("s")
    engine.wait(session.id, after=session.head.seq, timeout_s=0.0)
    assert len(open_connections()) >= 2

    async def fails() -> None:
        raise OSError("the line is dead")

    engine._notifications.stop_sending = fails  # type: ignore[method-assign]
    engine.close()
    assert open_connections() == []


def test_a_lone_append_is_one_statement_sent_by_its_own_thread(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, str]] = []
    engine = PostgresEngine(postgres.url, ns=tmp_path.name)
    with Store(engine) as store:
        session, fork = store.session("s"), store.session("parent").fork(name="fork")
        fork.fact("k", 0)  # its fork point is known from here on
        ask = asyncpg.Connection._do_execute

        async def noted(self: Any, query: Any, *args: Any, **options: Any) -> Any:
            sent.append((threading.get_ident(), query))
            return await ask(self, query, *args, **options)

        monkeypatch.setattr(asyncpg.Connection, "_do_execute", noted)
        for log in (session.log, fork.log):
            sent.clear()
            head = log.append(wakelog.UserMessage("hello"))
            mine = [query for thread, query in sent if thread == threading.get_ident()]
            assert mine == [sql.APPEND_ONE]
            assert not [query for _, query in sent if "wl_" in query and query != sql.APPEND_ONE]
            assert head == log.head()


def test_appends_of_a_thread_that_runs_an_event_loop(postgres: Server, tmp_path: Path) -> None:
    async def append(session: Any) -> None:
        for number in range(3):
            session.fact("k", number)

    with Store(PostgresEngine(postgres.url, ns=tmp_path.name)) as store:
        session = store.session("s")
        asyncio.run(append(session))
        session.fact("k", 3)
        assert [e.body["value"] for e in session.events(kind="fact")] == [0, 1, 2, 3]


def test_an_interrupted_append_gives_up_its_connection_and_the_next_one_goes_on(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(PostgresEngine(postgres.url, ns=tmp_path.name)) as store:
        session = store.session("s")
        session.fact("k", 0)
        before = {id(each) for each in open_connections()}
        selector = store.engine._appends._loop._loop._selector  # type: ignore[attr-defined]
        select = selector.select

        def interrupt(timeout: float | None = None) -> Any:
            if timeout == 0:
                return select(timeout)
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(selector, "select", interrupt)
        with pytest.raises(KeyboardInterrupt):  # the statement was sent, and nobody read its answer
            session.fact("k", 1)
        assert len({id(each) for each in open_connections()} & before) == len(before) - 1
        session.fact("k", 2)
        found = [e.body["value"] for e in session.events(kind="fact")]
        assert found in ([0, 2], [0, 1, 2])
        assert session.verify().ok
