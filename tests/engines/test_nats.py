"""The NATS engine keeps the contract, on a real server."""

from pathlib import Path

import pytest

from tests.engines.nats_server import NatsServer
from wakelog.engine import Engine
from wakelog.engines.nats import NatsEngine
from wakelog.testing.contract import EngineContract


def engine_on(server: NatsServer, ns: str, **more: object) -> NatsEngine:
    return NatsEngine([server.address], ns=ns, replicas=1, vouched=True, **more)  # type: ignore[arg-type]


class TestNats(EngineContract):
    server: NatsServer

    @pytest.fixture(autouse=True)
    def _served(self, nats: NatsServer) -> None:
        self.server = nats

    def make_engine(self, tmp_path: Path) -> Engine:
        return engine_on(self.server, str(tmp_path))
