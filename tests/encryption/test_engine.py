"""The encrypting engine keeps the contract of every engine, on top of each of them."""

from pathlib import Path

import pytest

from wakelog.encryption.engine import EncryptedEngine
from wakelog.encryption.key_ring import KeyRing, MasterKey
from wakelog.engine import Engine
from wakelog.engines.blobs import BlobEngine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.testing.contract import EngineContract

MASTER = MasterKey(bytes(range(32)))


def encrypted(engine: Engine, folder: Path) -> EncryptedEngine:
    ring = KeyRing.create(folder / "keys" / "ring.keys", MASTER)
    return EncryptedEngine(engine, ring, ring.id)


class TestEncryptedMemory(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return encrypted(MemoryEngine(), tmp_path)

    def another(self, engine: Engine, tmp_path: Path) -> Engine:
        return engine

    def reopen(self, engine: Engine, tmp_path: Path) -> Engine:
        return engine


class TestEncryptedSqlite(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return encrypted(SqliteEngine(tmp_path / "log.db"), tmp_path)


@pytest.mark.slow
class TestEncryptedBlobs(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return encrypted(BlobEngine(SqliteEngine(tmp_path / "log.db"), str(tmp_path / "blobs"), limit=64), tmp_path)
