"""A store of each kind for the adapters: a folder, PostgreSQL, a server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.on_postgres import postgres_url
from wakelog.http.server import serving
from wakelog.http.state import Settings


@pytest.fixture(params=["sqlite", "postgres", "http"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The url of a store that nobody has used."""
    if request.param == "sqlite":
        yield str(tmp_path / "store")
    elif request.param == "postgres":
        yield postgres_url(request, tmp_path)
    else:
        with serving(Settings(url=str(tmp_path / "served"), rate=0)) as running:
            monkeypatch.setenv("WAKELOG_KEY", running.key)
            yield running.url
