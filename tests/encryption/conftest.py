"""An encrypted store, and the file with its key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.encryption.keys import key_file, use_rings
from wakelog.store import Store


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    use_rings(monkeypatch, tmp_path)
    return key_file(tmp_path)


@pytest.fixture
def store(tmp_path: Path, key: str) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store", encryption_key=key) as store:
        yield store
