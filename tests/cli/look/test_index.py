"""A store's index: where it is, and that it goes with the store."""

from pathlib import Path

import pytest

from wakelog.errors import UnavailableError
from wakelog.store import open as open_store


@pytest.mark.parametrize(("name", "index"), [("folder", "folder/index.db"), ("demo.db", "demo.index.db")])
def test_index_lies_beside_the_log(tmp_path: Path, name: str, index: str) -> None:
    with open_store(tmp_path / name) as store:
        store.session("hello")
        assert not (tmp_path / index).exists()
        assert [s.name for s in store.index.sessions()] == ["hello"]
        assert store.index.path == tmp_path / index
        assert store.index is store.index
    assert (tmp_path / index).exists()


def test_index_of_a_store_in_memory_is_in_memory() -> None:
    with open_store("memory:") as store:
        store.session("hello")
        assert [s.name for s in store.index.sessions()] == ["hello"]
        assert store.index.path is None


def test_index_is_closed_with_its_store(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.session("hello")
        index = store.index
        index.sessions()
    with pytest.raises(UnavailableError):
        index.sessions()
