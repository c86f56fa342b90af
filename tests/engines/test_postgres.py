"""The PostgreSQL engine keeps the contract, on a real server."""

from pathlib import Path
from typing import Any

import pytest

from tests.engines.postgres_server import Server
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine
from wakelog.testing.contract import EngineContract


class TestPostgres(EngineContract):
    server: Server

    @pytest.fixture(autouse=True)
    def _served(self, postgres: Server) -> None:
        self.server = postgres

    def make_engine(self, tmp_path: Path) -> Engine:
        return PostgresEngine(self.server.url, ns=str(tmp_path))


def test_namespaces_of_one_database_do_not_see_each_other(postgres: Server, tmp_path: Path) -> None:
    from wakelog.store import Store

    with (
        Store(PostgresEngine(postgres.url, ns=f"{tmp_path}-a")) as a,
        Store(PostgresEngine(postgres.url, ns=f"{tmp_path}-b")) as b,
    ):
        session: Any = a.session("s")
        assert b.engine.find("s") is None
        assert list(b.sessions()) == []
        assert list(b.engine.changes()) == []
        assert b.session("s").id != session.id
