"""The remote engine keeps the contract through a real server, whatever is behind it."""

from pathlib import Path
from typing import ClassVar

import pytest

from wakelog.engine import Engine
from wakelog.engines.remote import RemoteEngine
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings
from wakelog.testing.contract import EngineContract


class TestRemote(EngineContract):
    """Every test has its own namespace on one server."""

    server: ClassVar[RunningServer]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, tmp_path_factory: pytest.TempPathFactory):
        folder = tmp_path_factory.mktemp("served")
        with serving(Settings(url=str(folder), rate=0)) as running:
            cls.server = running
            yield

    def make_engine(self, tmp_path: Path) -> Engine:
        space = tmp_path.name.lower().replace("_", "-")[:40].strip("-.")
        return RemoteEngine(f"{self.server.url}/ns/{space}", self.server.key)
