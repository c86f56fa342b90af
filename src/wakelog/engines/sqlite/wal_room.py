"""Room in the write-ahead log, made before it is needed.

To sync a file that has grown, a file system also writes where its new blocks are, and the commit waits for that too.
SQLite makes its log longer with every commit until the first checkpoint, and only then writes over it. So this writes
zeros behind the log's end, as much again as is in use but not much at once, up to the length at which it is
checkpointed. SQLite takes zeros for the end of the log. Nothing that exists is overwritten: a commit of another process
that comes in between lands in front of the zeros or on them.
"""

from __future__ import annotations

import contextlib
import os

import apsw

CHECKPOINT_FRAMES = 2000
"""The log is copied into the database when it has this many pages."""
_FIRST_FRAMES = 64
"""A process that writes less makes no room."""
_STEP_FRAMES = 256
"""A megabyte: the commit that syncs it takes a few milliseconds longer."""
_HEADER, _FRAME_HEADER = 32, 24


class WalRoom:
    """Called by SQLite after each commit of a connection, in place of its own checkpoints."""

    def __init__(self, db: apsw.Connection) -> None:
        self._path = db.filename_wal
        self._frame = db.pragma("page_size") + _FRAME_HEADER
        self._room = _FIRST_FRAMES

    def __call__(self, db: apsw.Connection, schema: str, frames: int) -> int:
        if frames >= CHECKPOINT_FRAMES:
            with contextlib.suppress(apsw.Error):  # the next commit tries again, as with SQLite's own
                db.wal_checkpoint()
        elif frames >= self._room:
            while self._room <= frames:
                self._room += min(self._room, _STEP_FRAMES)
            with contextlib.suppress(OSError):  # then the log grows by itself, or the commit says that the disk is full
                _lengthen(self._path, _HEADER + self._room * self._frame)
        return apsw.SQLITE_OK


def _lengthen(path: str, size: int) -> None:
    log = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        missing = size - os.fstat(log).st_size
        if missing > 0:
            os.write(log, bytes(missing))
    finally:
        os.close(log)
