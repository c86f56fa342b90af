"""When a snapshot is worth taking.

A snapshot is due once the record bytes stored since the last one exceed twice that one's size, with a floor. Then
snapshots never cost more than half of what the records cost, reading the state at any point costs at most the
state and twice its size in records, and there is nothing to tune.
"""

from __future__ import annotations

FLOOR_BYTES = 32 * 1024
FACTOR = 2


def is_due(bytes_since: int, last_size: int) -> bool:
    return bytes_since > max(FACTOR * last_size, FLOOR_BYTES)
