"""Where runs write: beside this package, not in the system's temp folder, which is often memory and syncs for free."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contenders import sync_file

FOLDER = Path(__file__).with_name(".cache")
_SIZE = 8192


@contextlib.contextmanager
def empty_folder(parent: Path) -> Iterator[Path]:
    """A new folder, gone afterwards."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def time_sync(parent: Path, data: list[bytes]) -> float:
    """Seconds to append one of `data` to a file and sync it, the median over all."""
    times = []
    with empty_folder(parent) as folder:
        file = os.open(folder / "sync", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for each in data:
            start = time.perf_counter()
            os.write(file, each)
            sync_file(file)
            times.append(time.perf_counter() - start)
        os.close(file)
    return statistics.median(times)


def time_plain_sync(parent: Path, count: int = 100) -> float:
    """The same for 8 KB, about what a turn weighs."""
    return time_sync(parent, [os.urandom(_SIZE)] * count)
