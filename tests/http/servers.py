"""A server that all tests of a run share; each test gets its own namespace."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

_numbers = count(1)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A real server on a real port, on SQLite."""
    folder: Path = tmp_path_factory.mktemp("served")
    with serving(Settings(url=str(folder), rate=0)) as running:
        yield running


def new_space(running: RunningServer) -> str:
    """The address of an unused namespace."""
    return f"{running.url}/ns/test-{next(_numbers)}"
