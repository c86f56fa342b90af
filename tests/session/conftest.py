"""A store with a clock that ticks one second an event, so that times can be told apart: in memory, behind a
server, on PostgreSQL and on NATS."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import wakelog
from tests.engines.on_nats import ON_NATS, nats_url
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.http.servers import new_space, shared_server
from wakelog.http.server import RunningServer
from wakelog.store import Store

__all__ = ["shared_server"]

START_US = 1_700_000_000_000_000


@pytest.fixture(params=["memory", "http", ON_POSTGRES, ON_NATS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    url, key = "memory:", ""
    if request.param == "http":
        running: RunningServer = request.getfixturevalue("shared_server")
        url, key = new_space(running), running.key
    elif request.param == "postgres":
        url = postgres_url(request, tmp_path)
    elif request.param == "nats":
        url = nats_url(request, tmp_path)
    with wakelog.open(url, clock=lambda: next(ticks), key=key) as opened:
        yield opened
