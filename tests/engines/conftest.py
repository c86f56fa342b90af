from collections.abc import Iterator

import pytest

from tests.engines.postgres_server import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    server = Server().create().start(fsync="off")
    yield server
    server.stop()
