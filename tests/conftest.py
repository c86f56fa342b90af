"""Settings and servers that all tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.engines.postgres_server import Server

# No deadline: a machine under load is not a bug. The blob brings a failure back on another machine.
settings.register_profile(
    "wakelog", deadline=None, print_blob=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wakelog")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL server, started when the first test asks for it."""
    server = Server().create().start(fsync="off")
    yield server
    server.stop()
