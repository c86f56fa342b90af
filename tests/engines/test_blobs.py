"""Payloads in a blob store: the contract holds, and removed content is removed there too."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.ports import free_port
from wakelog.engine import Engine
from wakelog.engines.blobs import BlobEngine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import CorruptLogError, UnavailableError
from wakelog.log.removal import erase
from wakelog.store import Store
from wakelog.testing.contract import EngineContract

LIMIT = 64


class TestBlobs(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return BlobEngine(SqliteEngine(tmp_path / "log.db"), str(tmp_path / "blobs"), limit=LIMIT)


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def test_big_payloads_are_there_and_small_ones_are_not(tmp_path: Path) -> None:
    with Store(BlobEngine(SqliteEngine(tmp_path / "log.db"), str(tmp_path / "blobs"))) as store:
        session = store.session("s")
        session.message("assistant", "small " * 100)
        assert files(tmp_path / "blobs") == []
        big = "big " * 100_000
        session.message("assistant", big)
        (blob,) = files(tmp_path / "blobs")
        assert blob.stat().st_size == len(big)
        assert (tmp_path / "log.db").stat().st_size < 200_000
        assert session.messages()[1].content == big
        assert session.verify().ok


def test_a_store_is_opened_with_its_blobs_and_without_them_the_reader_is_told(tmp_path: Path) -> None:
    big = "big " * 100_000
    with wakelog.open(tmp_path / "store", blobs=str(tmp_path / "blobs")) as store:
        store.session("s").message("assistant", big)
    with wakelog.open(tmp_path / "store", blobs=str(tmp_path / "blobs")) as store:
        assert store.resume("s").messages()[0].content == big
    with wakelog.open(tmp_path / "store") as store, pytest.raises(CorruptLogError):
        store.resume("s").messages()


def test_erasing_and_deleting_remove_the_blobs(tmp_path: Path) -> None:
    with Store(BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)) as store:
        session = store.session("s")
        first = session.message("assistant", "the secret " * 200)
        session.message("assistant", "kept " * 200)
        fork = session.fork(name="f")
        fork.message("assistant", "of the fork " * 200)
        assert len(files(tmp_path / "blobs")) == 3
        erase(session.log, [first], why="asked for", by="ada")
        assert not any("secret" in p.read_text() for p in files(tmp_path / "blobs"))
        assert len(files(tmp_path / "blobs")) == 2
        store.delete(session)
        assert fork.messages()[-1].content.startswith("of the fork")
        assert len(files(tmp_path / "blobs")) == 2, "a fork still reads through its parent"
        store.delete(fork)
        assert files(tmp_path / "blobs") == []


def test_a_blob_whose_commit_never_came_is_swept(tmp_path: Path) -> None:
    engine = BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)
    with Store(engine) as store:
        session = store.session("s")
        session.message("assistant", "kept " * 200)
        engine.objects.put(f"{session.id}/{session.id}/3/abc", b"lost")
        assert [f.can_tidy for f in engine.inspect()] == [], "it may be on its way"
        assert engine.sweep() == 1
        assert engine.sweep() == 0
        assert store.resume("s").verify().ok


def test_blobs_of_another_store_in_the_same_place_are_left_alone(tmp_path: Path) -> None:
    mine = BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)
    with Store(mine) as store, Store(BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)) as other:
        store.session("s").message("assistant", "mine " * 200)
        other.session("s").message("assistant", "theirs " * 200)
        assert mine.sweep() == 0
        assert other.resume("s").verify().ok


def test_a_lost_blob_is_damage_and_is_told(tmp_path: Path) -> None:
    with Store(BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)) as store:
        session = store.session("s")
        session.message("assistant", "x" * 5000)
        shutil.rmtree(tmp_path / "blobs")
        with pytest.raises(CorruptLogError) as caught:
            session.messages()
        assert caught.value.kind == "blob-missing"


def test_where_the_blob_store_fails_nothing_is_appended(tmp_path: Path) -> None:
    with Store(BlobEngine(MemoryEngine(), str(tmp_path / "blobs"), limit=LIMIT)) as store:
        session = store.session("s")
        before = session.head
        shutil.rmtree(tmp_path / "blobs")
        (tmp_path / "blobs").write_text("in the way")
        with pytest.raises(UnavailableError):
            session.message("assistant", "x" * 5000)
        assert session.head == before


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real S3 server on loopback."""
    scripts = str(Path(sys.executable).parent)
    weed = shutil.which("weed", path=f"{scripts}{os.pathsep}{os.environ['PATH']}")
    if weed is None:
        pytest.skip("the S3 server is not here; `make test-all` installs it")
    folder = tmp_path_factory.mktemp("weed")
    ports = {name: free_port() for name in ("master.port", "volume.port", "filer.port", "s3.port")}
    grpc = {f"{n}.grpc": free_port() for n in ports}
    # Unused catalogs listen on fixed ports, so a second server on the same machine would exit.
    unused = {"s3.port.iceberg": 0, "s3.port.lance": 0, "master.telemetry": "false"}
    options = {**ports, **grpc, **unused}
    command = [weed, "server", "-s3", f"-dir={folder}", "-ip=127.0.0.1", "-master.volumeSizeLimitMB=64"]
    server = subprocess.Popen(
        [*command, *(f"-{k}={v}" for k, v in options.items())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        endpoint = f"http://127.0.0.1:{ports['s3.port']}"
        deadline = time.monotonic() + 90
        while True:
            with contextlib.suppress(OSError):
                request = urllib.request.Request(f"{endpoint}/wakelog", method="PUT")
                urllib.request.urlopen(request, timeout=5).close()
                break
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield endpoint
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_the_same_on_a_real_s3_server(s3: str, tmp_path: Path) -> None:
    options = {
        "config": {"endpoint": s3, "region": "us-east-1", "skip_signature": True},
        "client_options": {"allow_http": True},
    }
    engine = BlobEngine(SqliteEngine(tmp_path / "log.db"), "s3://wakelog/store", limit=LIMIT, options=options)
    with Store(engine) as store:
        session = store.session("s")
        seq = session.message("assistant", "on s3 " * 1000)
        session.message("assistant", "also " * 1000)
        assert session.messages()[0].content == "on s3 " * 1000
        assert session.verify().ok
        erase(session.log, [seq], why="asked for", by="ada")
        assert session.verify().ok
        assert engine.sweep() == 0
        store.delete(session)
