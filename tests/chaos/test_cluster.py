"""Three servers under load, with what happens to servers: nothing acknowledged is lost, nothing is stored twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults import FAULTS, settle
from tests.chaos.load import Load, judge_store
from tests.engines.nats_server import NatsCluster
from wakelog.maintenance.shards import create_store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    cluster = NatsCluster().start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("what", FAULTS)
def test_nothing_is_lost_and_nothing_is_stored_twice(cluster: NatsCluster, tmp_path: Path, what: str) -> None:
    space = "".join(c if c.isalnum() else "-" for c in what)
    urls = [f"{cluster.url_from(i).replace('/wakelog?', f'/{space}?')}" for i in range(3)]
    create_store(urls[0], shards=2)
    load = Load(urls, tmp_path)
    try:
        load.go_on(10)
        FAULTS[what](_Named(cluster, space), load)  # type: ignore[arg-type]
        load.go_on(10)
        history = load.finish()
    finally:
        load.kill()
    settle(_Named(cluster, space))  # type: ignore[arg-type]
    verdict = judge_store(urls[0], history)
    assert verdict.faults == []
    assert verdict.appends > 60


class _Named:
    """The cluster, with the URL of one store."""

    def __init__(self, cluster: NatsCluster, store: str) -> None:
        self.servers, self.named = cluster.servers, cluster.named
        self.url = cluster.url.replace("/wakelog?", f"/{store}?")
