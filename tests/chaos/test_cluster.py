"""Three servers under load, with what happens to servers: nothing acknowledged is lost, nothing is stored twice."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.chaos.faults import FAULTS, SPREAD_FAULTS, settle
from tests.chaos.load import EFFECTS_MORE, Load, impatient, judge_store
from tests.chaos.network import SpreadCluster, not_permitted
from tests.engines.nats_server import NatsCluster
from wakelog.errors import UnsupportedError
from wakelog.maintenance.shards import create_store, placement

SAMPLE = "kill the leader"
"""The fault that `make test` tries; `make test-all` tries all."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsCluster]:
    cluster = NatsCluster().start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("what", [w if w == SAMPLE else pytest.param(w, marks=pytest.mark.slow) for w in FAULTS])
def test_nothing_is_lost_and_nothing_is_stored_twice(cluster: NatsCluster, tmp_path: Path, what: str) -> None:
    _try(cluster, tmp_path, what, FAULTS[what])


@pytest.mark.slow
@pytest.mark.parametrize("what", SPREAD_FAULTS)
def test_the_same_without_a_network_or_a_disk(tmp_path: Path, what: str) -> None:
    if why := not_permitted():
        pytest.skip(why)
    cluster = SpreadCluster()
    try:
        cluster.start()
        _try(cluster, tmp_path, what, SPREAD_FAULTS[what])
    finally:
        cluster.stop()


def _try(cluster: NatsCluster, tmp_path: Path, what: str, do: Callable[[Any, Load], None]) -> None:
    space = "".join(c if c.isalnum() else "-" for c in what)
    urls = impatient([f"{cluster.url_from(i).replace('/wakelog?', f'/{space}?')}" for i in range(3)])
    create_store(urls[0], shards=2)
    load = Load(urls, tmp_path, tasks=64)
    try:
        load.go_on(10)
        do(_Named(cluster, space), load)
        load.go_on(10)
        history = load.finish()
    finally:
        load.kill()
    settle(_Named(cluster, space))  # type: ignore[arg-type]
    verdict = judge_store(urls[0], history, load.effects)
    assert verdict.faults == []
    assert verdict.appends > 60
    assert verdict.effects >= 2 * EFFECTS_MORE


@pytest.mark.slow
def test_a_store_is_opened_and_made_use_of_while_a_server_is_down(cluster: NatsCluster) -> None:
    url = cluster.url.replace("/wakelog?", "/one-down?")
    create_store(url, shards=2)
    down = cluster.servers[2]
    down.kill()
    try:
        with wakelog.open(url, create=False) as store:
            session = store.session("s")
            session.fact("k", 1)
            assert store.resume("s").verify().ok
            [away] = {name for each in placement(store) for name in each.away}
            assert away == down.name
        unseen = url.replace(f"127.0.0.1:{cluster.servers[1].monitor}", "127.0.0.1:1")
        with pytest.raises(UnsupportedError) as told:  # one that is there has to tell
            wakelog.open(unseen, create=False)
        assert told.value.kind == "sync-unseen"
        assert cluster.servers[1].name in told.value.message
    finally:
        down.start().wait()


class _Named:
    """The cluster, with the URL of one store."""

    def __init__(self, cluster: NatsCluster, store: str) -> None:
        self._cluster = cluster
        self.url = cluster.url.replace("/wakelog?", f"/{store}?")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)
