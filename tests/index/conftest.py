"""An index over each engine that is built in, and in each place that it can be kept in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engines.nats_server import NatsServer
from tests.engines.on_nats import ON_NATS, nats_url
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.engines.postgres_server import Server
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.index import Index, Table, sql
from wakelog.index.database import Database
from wakelog.index.dialect import TABLES
from wakelog.index.index import RebuildOnce
from wakelog.index.sharded_index import ShardedIndex
from wakelog.index.shared_index import SharedIndex
from wakelog.store.url import open_engine

ENGINES: dict[str, Callable[[Path], Engine]] = {
    "memory": lambda folder: MemoryEngine(),
    "sqlite": lambda folder: SqliteEngine(folder / "log.db"),
}


class _Viewed(SharedIndex):
    """A shared index whose SQL reads the shared rows, so that tests which look at every row look at those."""

    def query_sql(
        self,
        statement: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        max_rows: int = 1000,
        timeout_s: float = 2.0,
    ) -> Table:
        as_of = self.catch_up()
        moment = self._now()
        if moment != getattr(self, "_seen", None):
            self._seen, self._copy = moment, self._copied()
        return sql.run(self._copy, as_of, statement, params, max_rows, timeout_s)

    def _copied(self) -> Database:
        copy = Database(None)
        with self._database.reading() as shared, copy.writing() as db:
            for table, shape in TABLES.items():
                columns = [column for column in shape.columns if column != "words"]
                rows = shared.execute(f"select {', '.join(columns)} from {table} t").fetchall()
                db.execute(f"delete from {table}")
                db.executemany(f"insert into {table} values ({', '.join('?' * len(columns))})", rows)
        return copy


class Viewed(_Viewed):
    """In the log's own database."""


class ViewedShards(_Viewed, ShardedIndex):
    """In a database beside the log, shard by shard."""


SHARDED = pytest.param("sharded", marks=pytest.mark.slow)


def sharded_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with three shards that nobody has used, and an index in PostgreSQL."""
    server: NatsServer = request.getfixturevalue("nats")
    database: Server = request.getfixturevalue("postgres")
    store = f"sharded-{tmp_path.name}-{uuid.uuid4().hex[:8]}"
    return f"{server.url.replace('/wakelog?', f'/{store}?')}&shards=3&index={database.url}"


@pytest.fixture(params=[*ENGINES, ON_POSTGRES, ON_NATS, SHARDED])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine
    if request.param == "sharded":
        made = open_engine(sharded_url(request, tmp_path), create=True)
    elif request.param == "postgres":
        made = PostgresEngine(postgres_url(request, tmp_path).partition("?")[0], ns=uuid.uuid4().hex)
    elif request.param == "nats":
        made = open_engine(nats_url(request, tmp_path), create=True)
    else:
        made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def index(engine: Engine, tmp_path: Path) -> Iterator[Index]:
    with made_for(engine, tmp_path) as made:
        yield made


def made_for(engine: Engine, folder: Path) -> Index:
    """The index that belongs to an engine."""
    if isinstance(engine, PostgresEngine):
        return Viewed(engine, None)
    if engine.abilities.index is not None:
        return ViewedShards(engine, None)
    return Index(engine, None if isinstance(engine, MemoryEngine) else folder / "index.db")


@pytest.fixture
def cures() -> None:
    """Lets an index make itself anew."""


@pytest.fixture(autouse=True)
def _incurable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that finds itself damaged makes itself anew, which would hide every mistake. Here it may not, unless a
    test is about that."""
    if "cures" not in request.fixturenames:
        monkeypatch.setattr(RebuildOnce, "__exit__", lambda *_: False)
