"""The memory engine keeps the contract."""

from pathlib import Path

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.testing.contract import EngineContract


class TestMemory(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return MemoryEngine()

    def another(self, engine: Engine, tmp_path: Path) -> Engine:
        return engine

    def reopen(self, engine: Engine, tmp_path: Path) -> Engine:
        return engine
