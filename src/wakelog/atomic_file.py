"""Writes a file completely or not at all: it gets its name after everything is written and synced."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def atomic_file(path: Path, *, replace: bool = True, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Opens a file for writing. If the process dies or an exception is raised, `path` stays as it was. Without
    `replace`, raises FileExistsError if the file exists."""
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if replace:
            part.replace(path)
        else:
            os.link(part, path)  # unlike a rename, fails if the name is taken
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
