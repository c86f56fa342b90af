"""A cluster whose servers have a network and a disk of their own, so that either can be taken away.

Each server runs in a network namespace, connected by a bridge that the clients see too. Its data is in a small file
system in memory. Both need root; `not_permitted` says why they cannot be had."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

from tests.engines.nats_server import NatsCluster, NatsServer

DISK = "160m"
_NUMBERS = itertools.count()


def not_permitted() -> str:
    """Why namespaces and mounts cannot be made here; empty when they can."""
    if os.geteuid() != 0:
        return "network namespaces and mounts need root"
    name = f"wlp{os.getpid()}"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "exec", name, "true")
        _run("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
    except (OSError, subprocess.CalledProcessError) as exc:
        told = getattr(exc, "stderr", b"") or str(exc).encode()
        return f"network namespaces or mounts are not permitted: {told.decode().strip()}"
    finally:
        if shutil.which("ip"):
            _try("ip", "netns", "del", name)
    return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _try(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


class SpreadCluster(NatsCluster):
    """Three servers with a network and a disk each."""

    def __init__(self, size: int = 3) -> None:
        # Another one each time: a namespace that was deleted takes its ends of the network away a moment later.
        self._tag = (os.getpid() * 8 + next(_NUMBERS)) % 30_000
        self._bridge = f"wlb{self._tag}"
        self._net = f"10.{100 + self._tag // 250 % 150}.{self._tag % 250}"
        super().__init__(size, [f"{self._net}.{i + 1}" for i in range(size)])
        for server in self.servers:
            server.prefix = ("ip", "netns", "exec", self._space(server))

    def _space(self, server: NatsServer) -> str:
        return f"wl{self._tag}-{server.name}"

    def _end(self, server: NatsServer) -> str:
        """Our end of its cable."""
        return f"wl{self._tag}{server.name}"

    def start(self) -> SpreadCluster:
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self._net}.254/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")
        for server in self.servers:
            space, end = self._space(server), self._end(server)
            _run("ip", "netns", "add", space)
            _run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", space)
            _run("ip", "link", "set", end, "master", self._bridge)
            _run("ip", "link", "set", end, "up")
            _run("ip", "-n", space, "addr", "add", f"{server.host}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _run("ip", "-n", space, "link", "set", device, "up")
            server.data.mkdir()
            _run("mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(server.data))
        super().start()
        return self

    def stop(self) -> None:
        mounted = Path("/proc/mounts").read_text()
        for server in self.servers:
            if server.is_running:
                server.kill()
            if str(server.data) in mounted:
                _run("umount", "-l", str(server.data))
            _try("ip", "link", "del", self._end(server))
            _try("ip", "netns", "del", self._space(server))
        _try("ip", "link", "del", self._bridge)
        super().stop()

    # What is taken away

    def cut_off(self, server: NatsServer) -> None:
        """Servers no longer reach it, nor does it reach them; clients still reach all."""
        for one, other in self._ways(server):
            _run("ip", "-n", self._space(one), "route", "add", "blackhole", f"{other.host}/32")

    def join(self, server: NatsServer) -> None:
        for one, other in self._ways(server):
            _run("ip", "-n", self._space(one), "route", "del", "blackhole", f"{other.host}/32")

    def _ways(self, server: NatsServer) -> list[tuple[NatsServer, NatsServer]]:
        others = [each for each in self.servers if each is not server]
        return [(server, each) for each in others] + [(each, server) for each in others]

    def fill_disk(self, server: NatsServer) -> None:
        with (server.data / "fill").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                return

    def free_disk(self, server: NatsServer) -> None:
        (server.data / "fill").unlink()
