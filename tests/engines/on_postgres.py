"""The same tests on PostgreSQL: `ON_POSTGRES` is a parameter for the fixture of a store or an engine.

All of them run in `make test-all`. `make test` runs a sample of about one in `SHARES`, chosen by a hash of the test's
name, so that the choice stays the same when a test is added (tests/conftest.py).
"""

import zlib
from pathlib import Path

import pytest

from tests.engines.postgres_server import Server

ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
SHARES = 16


def postgres_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an unused namespace."""
    server: Server = request.getfixturevalue("postgres")
    return f"{server.url}?namespace={tmp_path.name}"


def is_sampled(name: str) -> bool:
    return zlib.crc32(name.encode()) % SHARES == 0
