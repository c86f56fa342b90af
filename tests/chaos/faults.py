"""What is done to a cluster while clients load it. Each leaves it whole again."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable

from tests.chaos.load import Load
from tests.engines.nats_server import NatsCluster, NatsServer
from wakelog.engines.nats import NatsEngine
from wakelog.store.nats_url import open_nats

PAUSE_S = 7.0
"""How long a server is stopped: longer than it takes the others to elect another leader."""


def _leader(cluster: NatsCluster) -> NatsServer:
    engine = _engine(cluster)
    try:
        deadline = time.monotonic() + 60
        while not (name := engine.placement()[0].leader):
            assert time.monotonic() < deadline, "no leader was elected"
            time.sleep(0.1)
        return cluster.named(name)
    finally:
        engine.close()


def _engine(cluster: NatsCluster) -> NatsEngine:
    return open_nats(f"{cluster.url}&sync=always", False)


def settle(cluster: NatsCluster) -> None:
    """Waits until every replica of every shard follows."""
    engine = _engine(cluster)
    try:
        deadline = time.monotonic() + 120
        while not all(p.leader and not p.away for p in engine.placement()):
            assert time.monotonic() < deadline, f"the replicas do not follow: {engine.placement()}"
            time.sleep(0.2)
    finally:
        engine.close()


def kill_leader(cluster: NatsCluster, load: Load) -> None:
    server = _leader(cluster)
    server.kill()
    load.go_on(5)  # without it
    server.start().wait()


def kill_follower(cluster: NatsCluster, load: Load) -> None:
    leader = _leader(cluster)
    server = next(s for s in cluster.servers if s is not leader)
    server.kill()
    load.go_on(5)
    server.start().wait()


def kill_all(cluster: NatsCluster, load: Load) -> None:
    for server in cluster.servers:
        server.kill()
    for server in cluster.servers:
        server.start()
    for server in cluster.servers:
        server.wait()


def pause_leader(cluster: NatsCluster, load: Load) -> None:
    server = _leader(cluster)
    server.send(signal.SIGSTOP)
    try:
        time.sleep(PAUSE_S)
    finally:
        server.send(signal.SIGCONT)


def restart_in_turn(cluster: NatsCluster, load: Load) -> None:
    for server in cluster.servers:
        server.halt()
        server.start().wait()
        settle(cluster)


def replace_by_empty(cluster: NatsCluster, load: Load) -> None:
    server = _leader(cluster)
    server.kill()
    shutil.rmtree(server.data)
    server.start()
    load.go_on(5)
    server.wait()


FAULTS: dict[str, Callable[[NatsCluster, Load], None]] = {
    "kill the leader": kill_leader,
    "kill a follower": kill_follower,
    "kill all three": kill_all,
    "pause the leader": pause_leader,
    "restart one after the other": restart_in_turn,
    "replace a server by an empty one": replace_by_empty,
}
