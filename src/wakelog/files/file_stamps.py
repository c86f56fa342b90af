"""When a file's stat proves that it is unchanged.

The kernel's clock for files ticks every few milliseconds, on some file systems every second or two. A file that is read
and then written again within one tick has the same times, and may have the same size. So a stat is trusted only if the
last change was at least a tick before the reading; until then the file is read again. Git does the same.
"""

from __future__ import annotations

import os

Stamp = tuple[int, int, int, int, int]
"""Size, modification time, change time, inode, mode. If one differs, the file may have changed."""

TICK_NS = 50_000_000
COARSE_TICK_NS = 2_100_000_000
_SECOND_NS = 1_000_000_000


def stamp_of(stat: os.stat_result) -> Stamp:
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_mode)


def is_settled(stamp: Stamp, read_at_ns: int) -> bool:
    """Whether any change after the reading will show in the stamp. `read_at_ns` is when the reading began."""
    changed = max(stamp[1], stamp[2])
    tick = COARSE_TICK_NS if stamp[2] % _SECOND_NS == 0 else TICK_NS
    return changed + tick < read_at_ns
