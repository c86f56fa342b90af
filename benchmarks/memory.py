"""How much memory a process has taken. A file of its own, because it is loaded into processes that load little else."""

from __future__ import annotations

import resource
import sys


def peak_mb() -> float:
    """The most this process has had, in MB."""
    try:
        # Unlike getrusage, this forgets what the parent had when it started us.
        with open("/proc/self/status", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if sys.platform != "darwin" else 1) / 1e6
