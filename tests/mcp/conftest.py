from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[wakelog.Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened
