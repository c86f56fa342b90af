"""What a run ran on: versions and cores, nothing that names the machine or its folders."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path

import apsw

import wakelog
from wakelog.native import IN_USE

_LIBRARIES = ("apsw", "msgspec", "zstandard")


def describe() -> dict[str, str]:
    return {
        "processor": f"{_processor()}, {_cores()} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": f"{apsw.sqlite_lib_version()} in apsw, {sqlite3.sqlite_version} in sqlite3",
        "libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "wakelog": f"{wakelog.__version__}, {IN_USE}",
    }


def _cores() -> int:
    # What this process may use, which in a container is less than what is there.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
