"""When a snapshot is worth taking.

A snapshot is due once the record bytes stored since the last one exceed that one's size, with a floor. Then the bytes
spent on snapshots never exceed the bytes spent on records, and reading the state at any point costs at most about
twice the state. There is nothing to tune.
"""

from __future__ import annotations

FLOOR_BYTES = 16 * 1024


def is_due(bytes_since: int, last_size: int) -> bool:
    return bytes_since > max(last_size, FLOOR_BYTES)
