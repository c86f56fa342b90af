from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.runtime.lives import Desk
from wakelog.session import Session


@pytest.fixture
def store(tmp_path: Path) -> Iterator[wakelog.Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def session(store: wakelog.Store) -> Session[Any]:
    return store.session("agent")


@pytest.fixture
def desk() -> Desk:
    return Desk()
