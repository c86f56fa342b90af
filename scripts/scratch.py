"""Prints the folder for the files of a test run: in memory where there is room, else the system's own.

Tests make thousands of small stores, and each of their commits waits for the disk. What a store holds and what a kill
leaves behind is the same in memory; only a power cut is not, which no test makes. `make test-all` stays on the disk.
"""

import os
import sys
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""A run needs a quarter of it, and leaves the rest to its processes."""


def folder() -> str:
    if "TMPDIR" not in os.environ and _serves(MEMORY):
        return str(MEMORY)
    return tempfile.gettempdir()


def _serves(place: Path) -> bool:
    """There is room, files can be written, and scripts among them can be run, which many containers forbid there."""
    try:
        system = os.statvfs(place)
        free = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) << 10
    except (OSError, IndexError, ValueError):
        return False
    may_run = not system.f_flag & os.ST_NOEXEC
    return os.access(place, os.W_OK) and may_run and min(free, system.f_bavail * system.f_frsize) >= ROOM


if __name__ == "__main__":
    sys.stdout.write(folder())
