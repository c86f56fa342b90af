"""What is done to a cluster while clients load it. Each leaves it whole again."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

from tests.chaos.load import Load
from tests.chaos.network import SpreadCluster
from tests.engines.nats_server import NatsCluster, NatsServer
from wakelog.engines.nats import NatsEngine
from wakelog.store.nats_url import open_nats

PAUSE_S = 7.0
"""How long a server is stopped: longer than it takes the others to elect another leader."""

AWAY_S = 3.5
"""How long both followers are stopped: longer than an append waits before it asks again."""


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


def pause_followers(cluster: NatsCluster, load: Load) -> None:
    """The leader is left with what it was sent, and stores it when they return, or never. Shorter than an election."""
    leader = _leader(cluster)
    followers = [s for s in cluster.servers if s is not leader]
    for _ in range(3):
        for server in followers:
            server.send(signal.SIGSTOP)
        try:
            time.sleep(AWAY_S)
        finally:
            for server in followers:
                server.send(signal.SIGCONT)
        load.go_on(5)


def restart_in_turn(cluster: NatsCluster, load: Load) -> None:
    for server in cluster.servers:
        server.halt()
        server.start().wait()
        settle(cluster)


def replace_by_empty(cluster: NatsCluster, load: Load) -> None:
    server = _leader(cluster)
    server.kill()
    server.lose_data()
    server.start()
    load.go_on(5)
    server.wait()


def slow_leader(cluster: NatsCluster, load: Load) -> None:
    """A server that gets a fifth of the time: it follows, and is late with everything."""
    server = _leader(cluster)
    stop = threading.Event()

    def hold_up() -> None:
        while not stop.is_set():
            server.send(signal.SIGSTOP)
            time.sleep(0.2)
            server.send(signal.SIGCONT)
            time.sleep(0.05)

    thread = threading.Thread(target=hold_up)
    thread.start()
    try:
        load.go_on(10)
    finally:
        stop.set()
        thread.join()


def jump_clocks(cluster: NatsCluster, load: Load) -> None:
    """The clocks of two clients jump, one ahead and one back. The servers' cannot be moved by themselves: they ask the
    kernel, which has one clock for all."""
    load.set_clock(0, 86_400)
    load.set_clock(1, -86_400)
    load.go_on(10)
    load.set_clock(0, 0)
    load.set_clock(1, 3600)
    load.go_on(10)
    load.set_clock(1, 0)


def cut_off_leader(cluster: SpreadCluster, load: Load) -> None:
    """The leader and the others do not reach each other; clients reach all of them."""
    server = cluster.named(_leader(cluster).name)
    cluster.cut_off(server)
    try:
        load.go_on(10)
    finally:
        cluster.join(server)


def fill_disk(cluster: SpreadCluster, load: Load) -> None:
    server = cluster.named(_leader(cluster).name)
    cluster.fill_disk(server)
    try:
        load.go_on(10)
    finally:
        cluster.free_disk(server)
    server.halt()  # a server that found its disk full does not use it again before it is started anew
    server.start().wait()


FAULTS: dict[str, Callable[[NatsCluster, Load], None]] = {
    "kill the leader": kill_leader,
    "kill a follower": kill_follower,
    "kill all three": kill_all,
    "pause the leader": pause_leader,
    "pause both followers": pause_followers,
    "restart one after the other": restart_in_turn,
    "replace a server by an empty one": replace_by_empty,
    "slow the leader down": slow_leader,
    "let clients' clocks jump": jump_clocks,
}
SPREAD_FAULTS: dict[str, Callable[[SpreadCluster, Load], None]] = {
    "cut the leader off from the others": cut_off_leader,
    "fill the leader's disk": fill_disk,
}
"""For servers with a network and a disk of their own."""
