"""Ports for the servers that tests start: nobody takes one between the choice and the start, or between two starts.

A port that the system chooses is free again as soon as it is known, and the system may give it to any connection of
any program. So these lie below the range it chooses from, and this process locks a file for each until it ends, which
keeps other test processes of the same user away.
"""

import fcntl
import os
import random
import socket
from pathlib import Path

_RANGE = range(20_000, 32_000)
_held: list[int] = []
"""Descriptors and not files: they are open to the very end, which files complain of."""


def free_port() -> int:
    """A port of 127.0.0.1 where nothing listens, and where nothing will but what the caller starts."""
    folder = Path("/tmp") / f"wakelog-ports-{os.getuid()}"  # also of runs whose own files are elsewhere
    folder.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        lock = os.open(folder / str(port), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        _held.append(lock)
        return port
    raise AssertionError(f"no free port in {_RANGE}")
