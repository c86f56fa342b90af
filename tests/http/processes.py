"""A server in its own process, which tests can stop or kill."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

import wakelog
from tests.http.asking import Asker
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(wakelog.__file__).resolve().parents[1]
PATIENCE_S = 60.0


class ServerProcess:
    """`wakelog serve` on a store. After a restart it has the same address."""

    def __init__(self, store: Path | str, *options: str) -> None:
        self._store, self._options = store, options
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None
        self._answers: Callable[[], bool] = self._is_ready
        self.key = ""
        """The launch key of the last start."""

    def started_by(self, answers: Callable[[], bool]) -> "ServerProcess":
        """Sets another way to find out whether it answers."""
        self._answers = answers
        return self

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return Asker(self.url).get("/readyz").status == 200
        return False

    def start(self) -> None:
        """Returns when it answers."""
        command = [sys.executable, "-m", "wakelog", "serve", "--store", str(self._store), "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--json", "--rate", "0", *self._options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        output = ""
        while not output.endswith("\n}\n"):
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            assert line, f"the server ended early: {output}"
            output += line
        self.key = json.loads(output)["data"]["key"]
        while not self._answers():
            time.sleep(0.01)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def peak_bytes(self) -> int:
        """Its peak memory, as the system counts it."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            pytest.skip("this system does not report it")
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def _end(self, number: int) -> int:
        process = self._process
        if process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        code = process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()
        self._process = None
        return code

    def __enter__(self) -> "ServerProcess":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
