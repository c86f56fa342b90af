"""Logs in memory, over SQLite, on PostgreSQL and, in the long run, behind a server, with a clock that ticks."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.engines.on_nats import ON_NATS, nats_url
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.http.servers import new_space, shared_server
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.remote import RemoteEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.http.server import RunningServer
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.store.url import open_engine
from wakelog.testing.builders import START_US, new_session

__all__ = ["shared_server"]

NewLog = Callable[..., Log]


@pytest.fixture(params=["memory", "sqlite", pytest.param("http", marks=pytest.mark.slow), ON_POSTGRES, ON_NATS])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine: Engine = MemoryEngine()
    if request.param == "sqlite":
        engine = SqliteEngine(tmp_path / "store" / "log.db")
    elif request.param == "http":
        running: RunningServer = request.getfixturevalue("shared_server")
        engine = RemoteEngine(new_space(running), running.key)
    elif request.param == "postgres":
        from wakelog.engines.postgres import PostgresEngine

        engine = PostgresEngine(postgres_url(request, tmp_path).partition("?")[0], ns=tmp_path.name)
    elif request.param == "nats":
        engine = open_engine(nats_url(request, tmp_path), create=True)
    yield engine
    engine.close()


@pytest.fixture
def new_log(engine: Engine) -> NewLog:
    ticks = count(START_US, 1000)

    def make(*events: ev.Event, on: Engine | None = None, **opened: Any) -> Log:
        """A new session with these events, one commit each."""
        log = Log.create(on or engine, new_session(), ev.SessionOpened(**opened), clock=lambda: next(ticks))
        for event in events:
            log.append(event)
        return log

    return make


@pytest.fixture
def log(new_log: NewLog) -> Log:
    return new_log()
