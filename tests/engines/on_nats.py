"""The same tests on NATS: `ON_NATS` is a parameter for the fixture of a store or an engine. As on PostgreSQL, all of
them run in `make test-all`, and `make test` runs a sample."""

from pathlib import Path

import pytest

from tests.engines.nats_server import NatsServer

ON_NATS = pytest.param("nats", marks=pytest.mark.nats)


def nats_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an unused namespace."""
    server: NatsServer = request.getfixturevalue("nats")
    return f"{server.url}&namespace={tmp_path.name}"
