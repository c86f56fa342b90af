"""The store behind the server: made by the first write, and up to date with what hooks wrote."""

from pathlib import Path

import pytest

import wakelog
from tests.hooks.conversation import CLAUDE, claude, spooled
from wakelog.hooks import spool
from wakelog.hooks.intake import take_in
from wakelog.mcp.lazy_store import LazyStore
from wakelog.store import Store


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    assert str(tmp_path) in str(spool.spool_folder())
    return str(tmp_path / "store")


def test_what_hooks_write_while_the_server_runs_is_in_its_answers(url: str) -> None:
    with wakelog.open(url) as store:
        place = LazyStore(lambda create: store, lambda: take_in(wakelog.open, into=url), every_s=0)
        assert [*place.store.sessions()] == []
        spooled(claude())
        assert [head.name for head in place.store.sessions()] == [f"claude-{CLAUDE[:8]}"]


def test_the_spool_is_not_looked_at_for_every_read() -> None:
    looks: list[int] = []
    place = LazyStore(lambda create: Store(wakelog.open("memory:").engine), lambda: looks.append(1), every_s=3600)
    for _ in range(5):
        assert [*place.store.sessions()] == []
    assert len(looks) == 1


def test_a_read_is_answered_though_nothing_can_be_taken_in() -> None:
    def fails() -> None:
        raise OSError("the disk is full")

    place = LazyStore(lambda create: wakelog.open("memory:"), fails, every_s=0)
    assert [*place.store.sessions()] == []
