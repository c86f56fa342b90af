"""Programs beside the test: started on a free port, waited for, and ended."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

WAKELOG = [sys.executable, "-m", "wakelog"]


@contextlib.contextmanager
def listening(command: list[str], port: int, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on a port; what it says is shown if it dies before."""
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as it,
    ):
        try:
            _wait(it, port, said)
            yield it
        finally:
            it.terminate()
            try:
                it.wait(180)
            except subprocess.TimeoutExpired:
                it.kill()


def _wait(process: subprocess.Popen[bytes], port: int, said: object) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if process.poll() is not None:
            said.seek(0)  # type: ignore[attr-defined]
            raise RuntimeError(f"it ended at once: {said.read()[-2000:]!r}")  # type: ignore[attr-defined]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on {port}")
