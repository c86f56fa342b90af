"""A store with a clock that ticks one second an event, so that times can be told apart: in memory, and behind a
server."""

from collections.abc import Iterator
from itertools import count

import pytest

import wakelog
from tests.http.servers import new_space, shared_server
from wakelog.http.serving import Running
from wakelog.store import Store

__all__ = ["shared_server"]

START_US = 1_700_000_000_000_000


@pytest.fixture(params=["memory", "http"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    url, key = "memory:", ""
    if request.param == "http":
        running: Running = request.getfixturevalue("shared_server")
        url, key = new_space(running), running.key
    with wakelog.open(url, clock=lambda: next(ticks), key=key) as opened:
        yield opened
