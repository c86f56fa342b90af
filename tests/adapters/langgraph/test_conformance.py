"""LangGraph's own suite for checkpointers, on every kind of store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")
from langgraph.checkpoint.conformance import checkpointer_test, validate

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.http.server import serving
from wakelog.http.state import Settings

COUNTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


@pytest.mark.parametrize("kind", ["sqlite", "memory", "http", ON_POSTGRES])
def test_every_capability_conforms(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    places = iter(range(100))

    def report(url: str, **opened: Any) -> Any:
        @checkpointer_test(name=f"wakelog on {kind}")
        async def ours() -> AsyncIterator[WakelogSaver]:
            place = f"{url}/{next(places)}" if kind == "sqlite" else url
            with wakelog.open(place, **opened) as store:
                yield WakelogSaver(store)

        return asyncio.run(validate(ours))

    if kind == "http":
        with serving(Settings(url=str(tmp_path / "store"), rate=0)) as server:
            told = report(server.url, key=server.key)
    elif kind == "postgres":
        told = report(postgres_url(request, tmp_path))
    else:
        told = report("memory:" if kind == "memory" else str(tmp_path))
    assert {name: each.failures for name, each in told.results.items() if each.failures} == {}
    assert {name: each.tests_passed for name, each in told.results.items()} == COUNTS
    assert told.passed_all()
