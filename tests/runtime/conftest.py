from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from tests.runtime.lives import Desk
from wakelog.session import Session


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[wakelog.Store]:
    url = postgres_url(request, tmp_path) if request.param == "postgres" else tmp_path / "store"
    with wakelog.open(url) as opened:
        yield opened


@pytest.fixture
def session(store: wakelog.Store) -> Session[Any]:
    return store.session("agent")


@pytest.fixture
def desk() -> Desk:
    return Desk()
