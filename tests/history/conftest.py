"""A store in memory with a clock that ticks one second an event, so that times can be told apart."""

from collections.abc import Iterator
from itertools import count

import pytest

import wakelog
from tests.session.conftest import START_US
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    with wakelog.open("memory:", clock=lambda: next(ticks)) as opened:
        yield opened
