"""Encrypted stores on a server, on PostgreSQL and on NATS."""

import io
from pathlib import Path

import pytest

import wakelog
from tests.encryption.keys import key_file, use_rings
from tests.engines.nats_server import NatsServer
from tests.engines.postgres_server import Server as Postgres
from tests.engines.test_nats import engine_on
from tests.http.asking import Asker
from tests.residue import residue
from wakelog.encryption.engine import EncryptedEngine
from wakelog.encryption.key_ring import KeyRing, MasterKey
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine
from wakelog.errors import UnsupportedError
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.testing.contract import EngineContract

CANARY = "kingfisher"


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    use_rings(monkeypatch, tmp_path)
    return key_file(tmp_path)


def test_a_server_holds_the_key_and_its_clients_need_none(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakelog.open(tmp_path / "store", encryption_key=key).close()
    monkeypatch.setenv("WAKELOG_ENCRYPTION_KEY", key)
    with serving(Settings(url=str(tmp_path / "store"), rate=0)) as running:
        for space in ("", "/ns/team"):
            with wakelog.open(running.url + space, key=running.key) as store:
                session = store.session("s", goal=CANARY)
                session.message("assistant", f"{CANARY} " * 300)
                assert session.messages()[0].content == f"{CANARY} " * 300
                assert store.index.search(CANARY).rows
                assert session.verify().ok
        with pytest.raises(UnsupportedError, match="server holds the key"):
            wakelog.open(running.url, key=running.key, encryption_key=key)
    assert not residue(tmp_path / "store", CANARY)


def test_a_server_without_the_key_verifies_and_exports_and_reads_nothing(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wakelog.open(tmp_path / "store", encryption_key=key) as store:
        session = store.session("s", goal=CANARY)
        hash = session.head.hash
    with serving(Settings(url=str(tmp_path / "store"), rate=0)) as running:
        with wakelog.open(running.url, key=running.key) as client:
            assert [head.name for head in client.sessions()] == ["s"]
            for ask in (
                lambda: client.resume("s").state(),
                lambda: client.session("new"),
                lambda: client.index.search(CANARY),
            ):
                with pytest.raises(UnsupportedError) as told:
                    ask()
                assert told.value.kind == "content-encrypted"
        asker = Asker(running.url, running.key)
        assert asker.ask("GET", "/v1/sessions/s/verify").json["scope"]["encrypted"] == 1
        assert asker.ask("GET", "/v1/sessions/s/bundle").kind == "content-encrypted"
        bundle = asker.ask("GET", "/v1/sessions/s/bundle", encrypted="true")
        assert CANARY.encode() not in bundle.content
        assert asker.ask("POST", "/v1/sessions/s/fork", body={"name": "f"}).json["name"] == "f"
        assert asker.ask("POST", "/v1/sessions/s/fork", body={"why": CANARY}).kind == "content-encrypted"
    with wakelog.open(tmp_path / "mine", encryption_key=key) as mine:
        assert mine.import_bundle(io.BytesIO(bundle.content)).head.hash == hash
        assert mine.resume("s").state().goal == CANARY


@pytest.mark.slow
def test_nothing_that_was_said_is_in_the_data_of_postgres(tmp_path: Path, key: str) -> None:
    server = Postgres().create().start(fsync="off")
    try:
        url = f"{server.url}?namespace=encrypted"
        with wakelog.open(url, encryption_key=key) as store:
            session = store.session("s", goal=CANARY)
            session.message("assistant", f"{CANARY} " * 300)
            assert store.index.search(CANARY).rows
            assert session.verify().ok
        with wakelog.open(url) as closed:
            assert closed.resume("s").verify().ok
            with pytest.raises(UnsupportedError):
                closed.resume("s").state()
        server.sql("checkpoint")
    finally:
        server.stop()
    assert not residue(server.data, CANARY)


def _encrypted(engine: Engine, folder: Path) -> Engine:
    ring = KeyRing.create(folder / "ring.keys", MasterKey(bytes(range(32))))
    return EncryptedEngine(engine, ring, ring.id)


@pytest.mark.slow
class TestEncryptedPostgres(EngineContract):
    server: Postgres

    @pytest.fixture(autouse=True)
    def _served(self, postgres: Postgres) -> None:
        self.server = postgres

    def make_engine(self, tmp_path: Path) -> Engine:
        return _encrypted(PostgresEngine(self.server.url, ns=str(tmp_path)), tmp_path)


@pytest.mark.slow
class TestEncryptedNats(EngineContract):
    server: NatsServer

    @pytest.fixture(autouse=True)
    def _served(self, nats: NatsServer) -> None:
        self.server = nats

    def make_engine(self, tmp_path: Path) -> Engine:
        return _encrypted(engine_on(self.server, str(tmp_path)), tmp_path)
