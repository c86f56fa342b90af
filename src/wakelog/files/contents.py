"""A cache of file contents by hash, kept while a call runs, so that what it overwrites is still known.

A shell command does not say what it will change, so the contents of all captured files must be cached before it starts.
Each file is read once, and again only when it changed. The cache is in memory, compressed, and ends with the process,
so nothing that was redacted or erased from the log stays behind in it. With hooks, each call is a separate process;
then the cache is a file that only its owner can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection
from pathlib import Path

import apsw
import zstandard

from wakelog.errors import UnavailableError

_TABLES = """
create table if not exists content (hash text primary key, size integer not null, data blob not null) without rowid;
create table if not exists kept (key text primary key, data blob not null) without rowid;
"""
_FORM = 1
_LEVEL = 1


class Contents:
    """Contents by their SHA-256, up to `max_bytes` as stored. Not for several threads at once."""

    def __init__(self, path: Path | None = None, *, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._packer = zstandard.ZstdCompressor(level=_LEVEL)
        self._unpacker = zstandard.ZstdDecompressor()
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        try:
            self._db = _connect(self.path)
        except (apsw.NotADBError, apsw.CorruptError):
            assert self.path is not None
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    Path(f"{self.path}{suffix}").unlink()
            self._db = _connect(self.path)  # a damaged cache is deleted and rebuilt
        except apsw.Error as exc:
            raise UnavailableError(
                f"the contents of files cannot be kept at {self.path}: {exc}",
                kind="cache-not-writable",
                hint="name another place, or none to keep them in memory",
            ) from exc
        rows = list(self._db.execute("select hash, length(data) from content"))
        self._sizes: dict[str, int] = dict(rows)
        self.size_bytes = sum(self._sizes.values())

    def _connection(self) -> apsw.Connection:
        if self.path is not None and self._pid != os.getpid():
            self._open()  # a connection does not survive a fork
        return self._db

    def __contains__(self, digest: str) -> bool:
        return digest in self._sizes

    def put(self, digest: str, content: bytes) -> bool:
        """Keeps a content; False if that would exceed `max_bytes`."""
        if digest in self._sizes:
            return True
        data = self._packer.compress(content)
        if self.size_bytes + len(data) > self.max_bytes:
            return False
        self._connection().execute(
            "insert into content values (?, ?, ?) on conflict do nothing", (digest, len(content), data)
        )
        self._sizes[digest] = len(data)
        self.size_bytes += len(data)
        return True

    def get(self, digest: str) -> bytes | None:
        """A content; None if it is not there or damaged."""
        row = self._connection().execute("select size, data from content where hash = ?", (digest,)).fetchone()
        if row is None:
            return None
        try:
            content = self._unpacker.decompress(row[1], max_output_size=row[0])
        except zstandard.ZstdError:
            return None
        return content if hashlib.sha256(content).hexdigest() == digest else None

    def drop_except(self, wanted: Collection[str]) -> None:
        gone = [(digest,) for digest in self._sizes if digest not in wanted]
        with self.at_once():
            self._connection().executemany("delete from content where hash = ?", gone)
        for (digest,) in gone:
            self.size_bytes -= self._sizes.pop(digest)

    def at_once(self) -> contextlib.AbstractContextManager[object]:
        """Makes several changes in one transaction."""
        return self._connection()

    # Pictures, for another process

    def save(self, key: str, data: bytes) -> None:
        packed = self._packer.compress(data)
        self._connection().execute("insert or replace into kept values (?, ?)", (key, packed))

    def load(self, key: str) -> bytes | None:
        row = self._connection().execute("select data from kept where key = ?", (key,)).fetchone()
        try:
            return None if row is None else self._unpacker.decompress(row[0])
        except zstandard.ZstdError:
            return None

    def forget(self, key: str) -> None:
        self._connection().execute("delete from kept where key = ?", (key,))

    def kept_keys(self) -> list[str]:
        return [key for (key,) in self._connection().execute("select key from kept order by key")]

    def close(self) -> None:
        if self._pid == os.getpid():
            self._db.close()


def _connect(path: Path | None) -> apsw.Connection:
    if path is None:
        db = apsw.Connection(":memory:")
    else:
        # Created here rather than by SQLite, so that other users cannot read it even for a moment.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = apsw.Connection(str(path))
        db.set_busy_timeout(60_000)  # another process may be reading a large tree for the first time
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "normal")
        db.pragma("secure_delete", "on")
        if db.pragma("user_version") not in (0, _FORM):
            db.execute("drop table if exists content; drop table if exists kept;")
    db.execute(_TABLES)
    db.pragma("user_version", _FORM)
    return db
