"""An index over each engine that is built in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.index import Index

ENGINES: dict[str, Callable[[Path], Engine]] = {
    "memory": lambda folder: MemoryEngine(),
    "sqlite": lambda folder: SqliteEngine(folder / "log.db"),
}


@pytest.fixture(params=[*ENGINES, ON_POSTGRES])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine
    if request.param == "postgres":
        from wakelog.engines.postgres import PostgresEngine

        made = PostgresEngine(postgres_url(request, tmp_path).partition("?")[0], ns=tmp_path.name)
    else:
        made = ENGINES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def index(engine: Engine, tmp_path: Path) -> Iterator[Index]:
    with Index(engine, None if isinstance(engine, MemoryEngine) else tmp_path / "index.db") as made:
        yield made


@pytest.fixture
def cures() -> None:
    """Lets an index make itself anew."""


@pytest.fixture(autouse=True)
def _incurable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that finds itself damaged makes itself anew, which would hide every mistake. Here it may not, unless a
    test is about that."""
    if "cures" not in request.fixturenames:
        monkeypatch.setattr(Index, "_cured", lambda self, work: work())
