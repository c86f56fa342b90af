"""A store, a session, and a world without network."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.session import Session


@pytest.fixture(params=["sqlite", ON_POSTGRES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return postgres_url(request, tmp_path) if request.param == "postgres" else str(tmp_path / "store")


@pytest.fixture
def store(url: str) -> Iterator[wakelog.Store]:
    with wakelog.open(url) as opened:
        yield opened


@pytest.fixture
def session(store: wakelog.Store) -> Session[Any]:
    return store.session("agent")


@pytest.fixture
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a connection fails, except to the store's own database."""
    database = request.getfixturevalue("postgres").port if "postgres" in request.node.name else None
    connect = socket.socket.connect

    def refuse(*args: Any, **kwargs: Any) -> None:
        if database is not None and args[-1] == ("127.0.0.1", database):
            return connect(*args, **kwargs)
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
