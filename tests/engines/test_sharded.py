"""A store on a sharded PostgreSQL. No such server can be had for tests, so the sharded way is taken on a plain one with
a stand-in for the extension, and every statement that is sent is parsed and judged by what a sharded server accepts."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import asyncpg
import msgspec
import pglast
import pytest
from pglast import parse_sql

import wakelog
import wakelog.engines.postgres as postgres_package
from tests.engines.postgres_server import Server
from tests.engines.routing_rules import Fault, Verdict
from tests.engines.sharded_stand_in import SQL
from tests.index.conftest import Viewed
from tests.index.play import Player
from tests.index.test_shared import answers
from wakelog import errors
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine, distribution, feed, inspection, migrations, rewrite, statements
from wakelog.engines.postgres.engine import READ_CONNECTIONS
from wakelog.engines.postgres.notes import Notes
from wakelog.index import dialect
from wakelog.index.questions import IndexQuestion
from wakelog.index.shard_book import ShardedDatabase
from wakelog.index.shared_index import SharedDatabase
from wakelog.log.removal import erase, prune
from wakelog.maintenance.info import info
from wakelog.maintenance.shards import create_store
from wakelog.patterns.cohorts import Cohort
from wakelog.store import Store
from wakelog.store.remote import ALL_QUESTIONS
from wakelog.testing.builders import fact, new_session
from wakelog.testing.contract import EngineContract
from wakelog.testing.contract.base import opened

ASKS_ALL = {
    " ".join(text.split())
    for text in (
        *(statements.CHANGES, statements.NEWEST, statements.NEWEST_TIME, statements.NEXT_SPACE, statements.SESSIONS),
        *(
            statements.HEARD,
            inspection._EMPTY,
            *inspection._ORPHANS.values(),
            inspection._LOST_IDS,
            inspection._FORGOTTEN,
        ),
        *(inspection._NAMES, inspection._TITLES, inspection._STATUSES, *inspection._TIDY, *inspection._SESSION_BYTES),
    )
}
"""What is plainly about all sessions of a namespace. Anything else goes to one worker."""


class Recorded(asyncpg.Connection):  # type: ignore[misc] # asyncpg has no types
    """A connection that records what it sends."""

    sent: set[str] = set()  # noqa: RUF012 - of all connections

    async def execute(self, query: str, *args: Any, **more: Any) -> Any:
        self.sent.add(query)
        return await super().execute(query, *args, **more)

    async def executemany(self, query: str, *args: Any, **more: Any) -> Any:
        self.sent.add(query)
        return await super().executemany(query, *args, **more)

    async def fetch(self, query: str, *args: Any, **more: Any) -> Any:
        self.sent.add(query)
        return await super().fetch(query, *args, **more)

    async def fetchrow(self, query: str, *args: Any, **more: Any) -> Any:
        self.sent.add(query)
        return await super().fetchrow(query, *args, **more)

    async def fetchval(self, query: str, *args: Any, **more: Any) -> Any:
        self.sent.add(query)
        return await super().fetchval(query, *args, **more)


class Judge:
    """The database's catalog of tables and functions, and verdicts based on it."""

    def __init__(self, server: Server, url: str) -> None:
        self._server, self._url = server, url
        self._volatility: dict[str, str] = {}
        self._known: dict[str, Verdict] = {}
        named = "select string_agg({}, E'\\n') from {}"
        rows = server.ask_in(
            url,
            named.format("logicalrelid || ' ' || coalesce(partkey, '-') || ' ' || colocationid", "pg_dist_partition"),
        )
        self.places = {
            table: (None if column == "-" else column, int(group))
            for table, column, group in (row.split() for row in rows.splitlines())
        }
        rows = server.ask_in(
            url,
            named.format("attrelid::regclass || ' ' || attname", "pg_attribute join pg_class c on c.oid = attrelid")
            + " where relname ~ '^w[il]_' and attnum > 0",
        )
        self.columns: dict[str, set[str]] = {}
        for row in rows.splitlines():
            table, column = row.split()
            self.columns.setdefault(table, set()).add(column)

    def __call__(self, statement: str) -> Verdict:
        if statement not in self._known:
            self._known[statement] = Verdict(statement, self.places, self.columns, self._worst_volatility)
        return self._known[statement]

    def _worst_volatility(self, name: str) -> str:
        if name not in self._volatility:
            asked = f"select coalesce(max(provolatile::text), 'i') from pg_proc where proname = '{name}'"
            self._volatility[name] = self._server.ask_in(self._url, asked)
        return self._volatility[name]


@pytest.fixture(scope="module")
def sharded(postgres: Server) -> Iterator[str]:
    """The URL of a database where a distributed store was created, and its index."""
    with postgres.database() as url:
        postgres.sql_in(url, SQL)
        create_store(url, distributed=True)
        SharedDatabase(url, "default").close()
        yield url


@pytest.fixture(scope="module")
def judge(postgres: Server, sharded: str) -> Judge:
    return Judge(postgres, sharded)


@pytest.fixture
def sent(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The statements that the test has sent; all are judged at its end."""
    connect = asyncpg.connect
    monkeypatch.setattr(
        asyncpg, "connect", lambda *args, **more: connect(*args, **more | {"connection_class": Recorded})
    )
    Recorded.sent = set()
    yield Recorded.sent
    assert Recorded.sent
    for statement in Recorded.sent:
        if judge(statement).reach == "all":
            assert " ".join(statement.split()) in ASKS_ALL, statement


@pytest.fixture
def store(sharded: str, sent: set[str], tmp_path: Path) -> Iterator[Store]:
    with Store(PostgresEngine(sharded, ns=tmp_path.name)) as store:
        yield store


@pytest.mark.postgres
class TestSharded(EngineContract):
    url: str

    @pytest.fixture(autouse=True)
    def _served(self, sharded: str, sent: set[str]) -> None:
        self.url = sharded

    def make_engine(self, tmp_path: Path) -> Engine:
        engine = PostgresEngine(self.url, ns=str(tmp_path))
        assert engine.is_distributed
        return engine


# Distribution


def test_every_table_has_a_place(judge: Judge) -> None:
    log = {name: column for name, (column, _) in judge.places.items() if name.startswith("wl_")}
    assert log == {
        **dict.fromkeys(distribution.BY_ROOT, "root"),
        **{"wl_name": "name", "wl_version": None, "wl_migration": None, "wl_mark": None, "wl_note": None},
    }
    index = {name: column for name, (column, _) in judge.places.items() if name.startswith("wi_")}
    assert index == {**{dialect.table_name(name): "ns" for name in dialect.TABLES}, "wi_version": None}
    together = [
        {judge.places[name][1] for name in names} for names in (distribution.BY_ROOT, index.keys() - {"wi_version"})
    ]
    assert all(len(groups) == 1 for groups in together)
    assert len({*together[0], *together[1], judge.places["wl_name"][1]}) == 3


def test_tables_that_a_migration_or_a_rebuilt_index_made_are_distributed(postgres: Server, sharded: str) -> None:
    asked = "select string_agg(logicalrelid::text, ' ' order by logicalrelid::text) from pg_dist_partition"
    with postgres.database() as url:
        postgres.sql_in(url, SQL)
        create_store(url, distributed=True)
        with Store(PostgresEngine(url)) as store:
            store.session("s").fact("k", 1)
            assert len(store.index.sessions().rows) == 1
        everything = postgres.ask_in(url, asked)
        forget = "delete from pg_dist_partition where logicalrelid = any(array[{}]::regclass[]); drop table {}"
        postgres.sql_in(url, forget.format("'wl_mark', 'wl_note'", "wl_mark, wl_note"))
        postgres.sql_in(url, "delete from wl_migration")
        postgres.sql_in(
            url, "delete from pg_dist_partition where logicalrelid::text like 'wi%'; update wi_version set version = 1"
        )
        with Store(PostgresEngine(url)) as store:
            assert [step.version for step in store.engine.abilities.migrations.migrate()] == [2]  # type: ignore[union-attr]
            assert len(store.index.sessions().rows) == 1
        assert postgres.ask_in(url, asked) == everything


def test_the_extension_is_demanded(postgres: Server) -> None:
    with postgres.database() as url:
        with pytest.raises(errors.UnsupportedError, match="no Citus extension") as caught:
            create_store(url, distributed=True)
        assert "create extension citus" in caught.value.hint
        assert postgres.ask_in(url, "select count(*) from pg_class where relname like 'wl%'") == "0"
        create_store(url)
        with Store(PostgresEngine(url)) as store:
            assert not store.engine.is_distributed  # type: ignore[attr-defined]


def test_the_first_table_has_as_many_shards_as_were_asked_for(postgres: Server) -> None:
    with postgres.database() as url:
        postgres.sql_in(url, SQL)
        create_store(url, distributed=True, shards=64)
        asked = "select string_agg(logicalrelid || ' ' || shards, ',') from pg_dist_partition where partkey = 'root'"
        assert postgres.ask_in(url, asked) == "wl_session 64"


def test_workers_that_acknowledge_before_they_sync_are_refused(postgres: Server) -> None:
    with postgres.database() as url:
        postgres.sql_in(url, SQL)
        create_store(url, distributed=True)
        PostgresEngine(url, create=False).close()
        postgres.sql_in(url, "update worker_setting set synchronous_commit = 'off'")
        with pytest.raises(errors.UnsupportedError, match="w1:5432, w2:5432") as told:
            PostgresEngine(url, create=False)
        assert told.value.kind == "not-synced"


# Statements


def test_a_statement_that_is_not_for_one_worker_is_found_out(judge: Judge) -> None:
    for bad in (
        statements.APPEND,  # sessions of many shards at once, and a volatile function
        "select 1 from wl_name n join wl_session s on s.session = n.session and s.ns = n.ns where n.ns = $1::text",
        "select 1 from wl_commit c join wl_session s on s.session = c.session where c.ns = $1::text",
        "select 1 from wl_commit c join wl_session s on s.root = $1::text where c.root = $2::text",
        "update wl_session set root = $1::text where root = $2::text",
        "update wl_session set parent = null where ns = $1::text",
        "insert into wl_mark_2 select 1; select 2",
        "select clock_timestamp() from wl_commit where root = $1::text",
        "select 1 from wl_session where root = $1::text for update",
        "with recursive a as (select 1) select * from a",
        "insert into wl_title (ns, root, session, name) select $1::text, lower($2::text), $3::text, $4::text",
        "insert into wl_title (ns, root, session, name) values ($1::text, $2::text, $3::text, $4::text)"
        " on conflict (ns, session) do nothing",
        "create table wl_other (a text primary key)",
        "create table wl_title (ns text, root text, session text primary key)",
        "create table wl_title (root text primary key references wl_session (root))",
        "create table wl_title (root text primary key, n bigserial)",
        "create unique index x on wl_title (ns, session)",
        "set plan_cache_mode = force_generic_plan",
        "savepoint here",
        "create temporary table x (a text)",
        "select pg_total_relation_size('wl_commit'::regclass)",
        "select 1 from wl_mark m left join wl_session s on s.root = m.name where s.root = $1::text",
        "select row_number() over (order by s.session) from wl_session s where s.ns = $1::text",
        "select name from wl_title where root = $1",
        "update wl_heartbeat set until = extract(epoch from to_timestamp(until)) where root = $1::text",
    ):
        with pytest.raises((Fault, ValueError)):
            judge(bad)
    routed = "select 1 from wl_commit c join wl_session s on s.root = c.root and s.ns = c.ns where s.root = $1::text"
    assert judge(routed).reach == "one"
    assert judge(routed.replace("s.root = $1::text", "s.ns = $1::text")).reach == "all"
    assert judge("select version from wl_version").reach == "none"


PLAIN_ONLY = {statements.APPEND, statements.APPEND_ONE, statements.INSERT, inspection._TABLE_BYTES, rewrite._TABLES}
"""What only a server without workers is sent."""
_VERBS = re.compile(r"\s*(select|insert|update|delete|with|create|drop|alter|set|vacuum|analyze)\s", re.IGNORECASE)


def _statements_in(module: ModuleType) -> Iterator[str]:
    """The statements in a module's values and, as far as they are plain text, in its functions."""
    source = ast.walk(ast.parse(inspect.getsource(module)))
    inside = [node.value for node in source if isinstance(node, ast.Constant)]
    values: list[Any] = [value for name, value in vars(module).items() if not name.startswith("__")]
    for value in (*values, *inside):
        several = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else (value,)
        for text in several:
            if isinstance(text, str) and _VERBS.match(text) and not {"{", "…"} & set(text):
                with contextlib.suppress(pglast.parser.ParseError):  # a part of a statement, or prose
                    parse_sql(text)
                    yield text


def test_every_statement_is_judged_sent_or_not(judge: Judge) -> None:
    packages = [
        importlib.import_module(f"{postgres_package.__name__}.{m.name}")
        for m in iter_modules(postgres_package.__path__)
    ]
    found = {text for module in packages for text in _statements_in(module)}
    found |= {*statements.schema(), *dialect.schema()}
    found |= {text for step in migrations.STEPS for text in step.statements}
    parts = {inspection._OF_SESSION, statements._HEADS}  # of other statements
    assert len(found) > 100
    for statement in found - PLAIN_ONLY - parts:
        if judge(statement).reach == "all":
            assert " ".join(statement.split()) in ASKS_ALL, statement
    for statement in PLAIN_ONLY:
        with pytest.raises(Fault):
            judge(statement)


def test_an_append_is_sent_on_as_it_is(judge: Judge) -> None:
    """What a planner requires of an insert from a select: one table, no limit, and the shard key as a plain column."""
    verdict = judge(statements.ROUTED_APPEND)
    assert verdict.reach == "one"
    select = verdict.node.selectStmt
    assert [each.relname for each in select.fromClause] == ["wl_commit"]
    assert (select.limitCount, select.sortClause, select.withClause) == (None, None, None)
    place = [each.name for each in verdict.node.cols].index("root")
    assert [field.sval for field in select.targetList[place].val.fields] == ["p", "root"]
    assert judge(statements.ROUTED_APPEND_WHOLE).reach == "one"
    assert judge(statements.ROUTED_INSERT).reach == "one"
    for name in ("HEAD", "READ", "AT", "BY_ID", "SNAPSHOT", "CHILDREN", "TITLE", "BEAT", "TOUCH", "CLAIM", "FIND"):
        assert judge(getattr(statements, name)).reach == "one", name
    # These do not depend on a planner that follows the root from one table to another.
    for name in ("SNAPSHOT", "READ", "BY_ID", "ROUTED_APPEND", "ROUTED_APPEND_WHOLE"):
        text = getattr(statements, name)
        assert "lateral" not in text, name


def test_an_append_goes_on_in_one_statement(store: Store, sent: set[str]) -> None:
    session = store.session("s")
    session.fact("a", 1)
    sent.clear()
    session.fact("b", 2)
    about_the_log = {statement for statement in sent if "wl_" in statement}
    assert about_the_log == {statements.ROUTED_APPEND}
    session.append(wakelog.events.FactRecorded(key="c", value=3), commit_id="mine")
    assert statements.ROUTED_APPEND_WHOLE in sent
    assert session.append(wakelog.events.FactRecorded(key="c", value=3), commit_id="mine").seq == 4
    assert statements.APPEND not in sent
    assert session.verify().ok


def test_plans_are_made_for_the_values(store: Store) -> None:
    engine: Any = store.engine
    [row] = engine._fetch("select current_setting('plan_cache_mode') as mode")
    assert row["mode"] == "auto"


def test_care_of_a_store(store: Store, tmp_path: Path) -> None:
    engine: Any = store.engine
    session = store.session("s", goal="go")
    with session.turn("go"):
        session.fact("k", "secret")
    fork = session.fork(name="f")
    fork.fact("x", 1)
    erase(session.log, [3], why="asked")
    prune(fork.log, fork.head.seq, why="old")
    assert engine.table_bytes()["wl_commit"] > 0
    assert info(store, RetentionPolicy()).workers == {"w1:5432": 16, "w2:5432": 16}
    assert engine.session_bytes()[session.id] > 0
    assert list(engine.inspect()) == []
    engine.claim("never", new_session())
    assert [finding.what for finding in engine.inspect()] == [
        "the name 'never' was claimed for a session that was never opened"
    ]
    assert engine.rewrite()
    store.delete(fork)
    store.delete(session)
    assert [h.name for h in store.sessions()] == []
    engine.tidy()


def test_what_servers_share_is_on_every_worker(store: Store, tmp_path: Path) -> None:
    engine: Any = store.engine
    store.session("s")
    notes = Notes(engine)
    assert notes.add("key", str(tmp_path), b"a")
    assert notes.change("key", str(tmp_path), b"b", b"a")
    assert notes.of("key")[str(tmp_path)] == b"b"
    assert tmp_path.name in notes.namespaces()
    assert notes.drop("key", str(tmp_path), b"b")
    cursor = engine.end_of_feed()
    store.resume("s").fact("k", 1)
    assert [change.seq for change in engine.changes(cursor)] == [2]
    assert engine.wait(None, after=0, timeout_s=0.0) is False


def test_the_index_is_asked_on_one_worker(sharded: str, sent: set[str], judge: Judge) -> None:
    engine = PostgresEngine(sharded, ns=uuid.uuid4().hex)
    with Viewed(engine, None) as index:
        player = Player(engine, 7)
        player.play(60)
        ids = [log.id for log in player.logs]
        assert answers(index, ids[:1])
        for kind, _ in ALL_QUESTIONS.values():
            with contextlib.suppress(errors.NotFoundError):  # no pattern has such an id
                index.ask(_question(kind, ids[0]))
        player.play(10)
        index.scrub()
        index.rebuild()
    engine.close()
    asked = [each for each in sent if re.search(r"\b(from|into|update) wi_(?!version)", each)]
    assert len(asked) > 100
    assert {judge(each).reach for each in asked} == {"one"}


def test_projectors_do_not_share_an_index_on_workers(sharded: str) -> None:
    with pytest.raises(errors.UnsupportedError) as told:
        ShardedDatabase(sharded, "nats team default")
    assert told.value.kind == "index-distributed"
    assert "another database" in told.value.hint


def _question(kind: type[IndexQuestion], session: str) -> IndexQuestion:
    """A question with a value in each required field."""
    values = {str: session, tuple[str, ...]: (session,), Cohort: Cohort()}
    required = [field for field in msgspec.structs.fields(kind) if field.required]
    return kind(**{field.name: values[field.type] for field in required})


# Lost workers


def test_a_lost_worker_is_asked_again_and_an_append_is_stored_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = store.session("s")
    session.fact("a", 1)
    lost = iter([True, True])
    fetchrow = Recorded.fetchrow

    async def cut(self: Any, query: str, *args: Any, **more: Any) -> Any:
        done = await fetchrow(self, query, *args, **more)
        if query == statements.ROUTED_APPEND and next(lost, False):
            raise asyncpg.InternalServerError("server closed the connection unexpectedly")
        return done

    monkeypatch.setattr(Recorded, "fetchrow", cut)
    session.fact("b", 2)
    assert [e.body["value"] for e in session.events(kind="fact.recorded")] == [1, 2]
    assert session.verify().ok


@pytest.mark.parametrize(
    "refusal",
    [
        asyncpg.InternalServerError("could not create distributed plan"),
        asyncpg.FeatureNotSupportedError("cannot perform distributed planning on this query"),
    ],
)
def test_an_append_that_the_planner_refuses_takes_the_careful_way(
    store: Store, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    session = store.session("s")
    fetchrow, tries = Recorded.fetchrow, list[str]()

    async def refuse(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query == statements.ROUTED_APPEND_WHOLE:
            tries.append(query)
            raise refusal
        return await fetchrow(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetchrow", refuse)
    assert session.append(wakelog.events.FactRecorded(key="c", value=3), commit_id="mine").seq == 2
    assert len(tries) == 1
    assert session.verify().ok


def test_a_note_whose_answer_was_lost_is_ours(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that was just made must not be told as one that somebody else has."""
    lost, fetch = iter([True]), Recorded.fetch

    async def cut(self: Any, query: str, *args: Any, **more: Any) -> Any:
        done = await fetch(self, query, *args, **more)
        if query == statements.ADD_NOTE and next(lost, False):
            raise asyncpg.InternalServerError("server closed the connection unexpectedly")
        return done

    monkeypatch.setattr(Recorded, "fetch", cut)
    engine: Any = store.engine
    notes, name = Notes(engine), uuid.uuid4().hex
    assert notes.add("key", name, b"mine")
    assert not notes.add("key", name, b"another")


def test_beyond_patience_an_append_to_a_lost_worker_is_unknown(
    sharded: str, sent: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(PostgresEngine(sharded, ns=tmp_path.name, patience_s=0.0)) as store:
        session = store.session("s")
        session.fact("a", 1)

        async def cut(*_: Any, **__: Any) -> Any:
            raise asyncpg.InternalServerError("server closed the connection unexpectedly")

        with monkeypatch.context() as patch:
            patch.setattr(Recorded, "fetchrow", cut)
            with pytest.raises(errors.UnavailableError) as caught:
                session.fact("b", 2)
            assert caught.value.kind == "answer-unknown"
            patch.setattr(Recorded, "fetch", cut)
            with pytest.raises(errors.UnavailableError, match="worker") as caught:
                store.engine.head(session.id)
            assert caught.value.kind == "unreachable"
        session.fact("c", 3)


def test_a_worker_that_hangs_holds_up_its_own_sessions_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = store.engine
    sessions = [store.session(f"s{number}") for number in range(60)]
    for session in sessions:
        session.fact("a", 1)
    workers = {session.id: engine._appends.limits.workers[session.id] for session in sessions}
    assert set(workers.values()) == {"w1:5432", "w2:5432"}
    goes_on = asyncio.Event()
    fetchrow = Recorded.fetchrow

    async def hang(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query == statements.ROUTED_APPEND and workers[args[2]] == "w1:5432":
            await goes_on.wait()
        return await fetchrow(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetchrow", hang)
    stalled = [session for session in sessions if workers[session.id] == "w1:5432"]
    assert len(stalled) > 20
    threads = [threading.Thread(target=session.fact, args=("b", 2)) for session in stalled]
    for thread in threads:
        thread.start()
    for session in sessions:
        if session not in stalled:
            assert session.fact("b", 2) == 3
    assert all(thread.is_alive() for thread in threads)
    engine._loop.soon(goes_on.set)
    for thread in threads:
        thread.join(180)
    assert [session.head.seq for session in stalled] == [3] * len(stalled)


def test_a_store_that_is_closed_does_not_wait_for_a_worker_that_hangs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = store.engine
    writer = opened(engine)
    engine.submit(writer.seal(fact("a"))).result()
    has_begun, fetchrow = threading.Event(), Recorded.fetchrow

    async def hang(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query == statements.ROUTED_APPEND:
            has_begun.set()
            await asyncio.Event().wait()
        return await fetchrow(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetchrow", hang)
    pending = [engine.submit(writer.seal(fact("b"))) for _ in range(3)]
    assert has_begun.wait(30)
    engine._appends.connections.patience_s = -4.9
    told: list[str] = []

    def close_and_ask() -> None:
        engine.close()
        for each in pending:
            with pytest.raises(errors.UnavailableError) as failed:
                each.result()
            told.append(failed.value.kind)

    thread = threading.Thread(target=close_and_ask, daemon=True)
    thread.start()
    thread.join(60)
    assert told == ["answer-unknown", "store-closed", "store-closed"]


def test_the_feed_waits_for_an_append_on_a_worker_that_hangs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It got its time when it began, and is seen when it ends: longer than the feed looks back."""
    engine: Any = store.engine
    slow, quick = store.session("slow"), store.session("quick")
    monkeypatch.setattr(feed, "SLACK_US", 0)
    cursor = engine.end_of_feed()
    has_begun, goes_on = threading.Event(), asyncio.Event()
    fetchrow = Recorded.fetchrow

    async def hang(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query != statements.ROUTED_APPEND or args[2] != slow.id:
            return await fetchrow(self, query, *args, **more)
        async with self.transaction():
            done = await fetchrow(self, query, *args, **more)
            has_begun.set()
            await goes_on.wait()
        return done

    monkeypatch.setattr(Recorded, "fetchrow", hang)
    thread = threading.Thread(target=slow.fact, args=("a", 1))
    thread.start()
    assert has_begun.wait(60)
    quick.fact("a", 1)
    [seen] = engine.changes(cursor)
    assert seen.session == quick.id
    engine._loop.soon(goes_on.set)
    thread.join(60)
    assert [change.session for change in engine.changes(seen.cursor)] == [slow.id]


def test_a_worker_that_could_not_be_asked_for_is_asked_for_again(sharded: str, sent: set[str], tmp_path: Path) -> None:
    with Store(PostgresEngine(sharded, ns=tmp_path.name)) as store:
        engine: Any = store.engine
        session = store.session("s")
        limits = engine._limits
        limits.workers.clear()
        connections, limits._connections = limits._connections, _Unreachable()
        assert engine._loop.run(limits.of(session.id)) is limits._limit("")
        assert limits.workers == {}
        limits._connections = connections
        assert engine._loop.run(limits.of(session.id)) is limits._limit(limits.workers[session.id])
        assert limits.workers[session.id] in ("w1:5432", "w2:5432")


class _Unreachable:
    async def ask(self, work: Any) -> Any:
        raise errors.UnavailableError("the server does not answer", kind="unreachable")


def test_reads_on_a_worker_that_hangs_leave_connections_for_the_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = store.engine
    sessions = [store.session(f"s{number}") for number in range(60)]
    workers = {session.id: engine._limits.workers[session.id] for session in sessions}
    assert set(workers.values()) == {"w1:5432", "w2:5432"}
    goes_on = asyncio.Event()
    fetch = Recorded.fetch

    async def hang(self: Any, query: str, *args: Any, **more: Any) -> Any:
        of_all = query == statements.SESSIONS
        if of_all or (query == statements.HEAD and workers[args[2]] == "w1:5432"):
            await goes_on.wait()
        return await fetch(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetch", hang)
    stalled = [session for session in sessions if workers[session.id] == "w1:5432"]
    assert len(stalled) > READ_CONNECTIONS
    heads: list[int] = []
    reads = [threading.Thread(target=lambda s=session: heads.append(engine.head(s.id).seq)) for session in stalled]
    lists = [threading.Thread(target=engine.sessions) for _ in range(READ_CONNECTIONS)]
    for thread in (*reads, *lists):
        thread.start()
    for session in sessions:
        if session not in stalled:
            assert engine.head(session.id).seq == 1
    assert all(thread.is_alive() for thread in (*reads, *lists))
    engine._loop.soon(goes_on.set)
    for thread in (*reads, *lists):
        thread.join(180)
    assert heads == [1] * len(stalled)


def test_a_store_opens_without_one_of_its_workers(
    store: Store, sharded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session("s").fact("a", 1)
    fetchval = Recorded.fetchval

    async def cut(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query == statements.NEWEST_TIME:
            raise asyncpg.InternalServerError("connection to the remote node failed")
        return await fetchval(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetchval", cut)
    with Store(PostgresEngine(sharded, ns=tmp_path.name, patience_s=0.0)) as there:
        assert there.resume("s").fact("b", 2) == 3


def test_what_a_planner_refuses_is_stored_the_careful_way(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = store.session("s")
    fetchrow = Recorded.fetchrow

    async def refuse(self: Any, query: str, *args: Any, **more: Any) -> Any:
        if query == statements.ROUTED_APPEND:
            raise asyncpg.FeatureNotSupportedError("complex joins are only supported when…")
        return await fetchrow(self, query, *args, **more)

    monkeypatch.setattr(Recorded, "fetchrow", refuse)
    assert session.fact("a", 1) == 2


def test_both_sides_of_a_race_between_a_fork_and_the_deletion_of_its_parent_see_each_other(store: Store) -> None:
    for number in range(10):
        session = store.session(f"s{number}")
        session.fact("a", 1)
        together = threading.Barrier(2)
        thread = threading.Thread(target=_fork_at_once, args=(session, f"f{number}", together))
        thread.start()
        together.wait(60)
        with contextlib.suppress(errors.WakelogError):
            store.delete(session)
        thread.join(60)
    for head in store.sessions():
        assert store.resume(head.session).verify().ok


def _fork_at_once(session: Any, name: str, together: threading.Barrier) -> None:
    together.wait(60)
    with contextlib.suppress(errors.WakelogError):
        session.fork(name=name)
