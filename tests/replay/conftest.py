"""A store, a session, and a world without network."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.session import Session


@pytest.fixture
def store(tmp_path: Path) -> Iterator[wakelog.Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def session(store: wakelog.Store) -> Session[Any]:
    return store.session("agent")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
