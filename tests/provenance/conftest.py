"""A store in memory with a clock that ticks one second an event, so that times can be told apart."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.session.conftest import START_US
from wakelog.store import Store


@pytest.fixture(params=["memory", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    url = postgres_url(request, tmp_path) if request.param == "postgres" else "memory:"
    with wakelog.open(url, clock=lambda: next(ticks)) as opened:
        yield opened
