"""A minority's damaged disk is found, although every reader is given the right bytes."""

import os
import time
from collections.abc import Iterator

import pytest

import wakelog
from tests.chaos.faults import settle
from tests.engines.nats_server import NatsCluster, NatsServer
from wakelog.cli.app import run
from wakelog.errors import UnsupportedError
from wakelog.maintenance.scrub import scrub
from wakelog.maintenance.shards import create_store, placement

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    cluster = NatsCluster().start()
    try:
        yield cluster
    finally:
        cluster.stop()


def _write(store: wakelog.Store) -> None:
    for i in range(12):
        session = store.session(f"s{i}")
        for _ in range(10):
            session.fact("k", os.urandom(150).hex())


def _flip(server: NatsServer) -> None:
    """Flips one bit in the middle of what a server that is stopped keeps of the first shard."""
    [*files] = [path for path in server.data.rglob("*.blk") if path.parent.name == "msgs" and "-0" in path.parts[-3]]
    path = max(files, key=lambda each: each.stat().st_size)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        [byte] = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x10]))


def test_a_flipped_bit_on_one_server_is_found_and_mended(
    cluster: NatsCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_store(cluster.url, shards=2)
    with wakelog.open(cluster.url) as store:
        _write(store)
        leader = placement(store)[0].leader
        sound = scrub(store, all_replicas=True)
        assert (sound.findings, sound.copies) == ((), 6)
    server = next(each for each in cluster.servers if each.name != leader)
    server.halt()
    _flip(server)
    server.start().wait()
    settle(cluster)
    with wakelog.open(cluster.url) as store:
        assert scrub(store, anew=True).findings == ()  # readers are given the right bytes
        damaged = scrub(store, anew=True, all_replicas=True)
        assert damaged.damage
        assert all(f"the server {server.name} " in finding.what for finding in damaged.findings)
    capsys.readouterr()
    assert run(["--store", cluster.url, "store", "scrub", "--all-replicas"]) == 4
    assert "empty its store_dir" in capsys.readouterr().out
    server.empty()
    settle(cluster)
    with wakelog.open(cluster.url) as store:
        assert scrub(store, anew=True, all_replicas=True).findings == ()


def test_a_server_that_is_away_is_not_passed_over_in_silence(
    cluster: NatsCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_store(cluster.url)
    with wakelog.open(cluster.url) as store:
        _write(store)
        leader = placement(store)[0].leader
        away = next(each for each in cluster.servers if each.name != leader)
        away.kill()
        while not placement(store)[0].away:
            pass
        done = scrub(store, all_replicas=True)
        [told] = done.findings
        assert away.name in told.what
        assert (told.is_damage, done.copies, done.unread) == (False, 2, 1)
    capsys.readouterr()
    assert run(["--store", cluster.url, "store", "scrub", "--all-replicas"]) == 7
    assert "1 replica could not be read" in capsys.readouterr().out


def test_more_replicas_than_there_are_servers_are_refused_soon(cluster: NatsCluster) -> None:
    before = time.monotonic()
    with pytest.raises(UnsupportedError) as told:
        create_store(f"{cluster.url.partition('&patience')[0]}&patience=600", replicas=5)
    assert told.value.kind == "too-few-servers"
    assert "it has 3 servers" in told.value.message
    assert time.monotonic() - before < 300  # the patience is twice as long


def test_a_store_without_replicas_has_nothing_to_compare(tmp_path: os.PathLike[str]) -> None:
    with wakelog.open(tmp_path) as store, pytest.raises(UnsupportedError):
        scrub(store, all_replicas=True)
