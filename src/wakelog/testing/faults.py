"""Fault injection: lost answers, processes that die at named points, and a disk that fills up, fails, or loses power.

**Lost answers.** A `LossyEngine` stores a commit, but its caller gets an error instead of the answer.

**Dying.** A `DyingEngine` is a SqliteEngine that kills its own process, like `kill -9`, when it reaches a named point
of an append for the nth time. Run it in a child process.

**The disk.** A `FaultyDisk` is an SQLite VFS: pass its `name` to an engine as `vfs`. Files are where they always are;
reading, locking and shared memory are SQLite's own. The disk also records, for every file, what is durable and what has
been written since. Before each operation it calls `before`, if that is set. A hook may raise an apsw error, which
SQLite sees as the operation's failure (`full_after`, `failing`), or kill the process (`dying_at`), or cut the power.

**Power cut.** `power_cut` writes a state that a machine could find after losing power at that moment into another
folder, while the workload continues. So one run can be cut many times. The model:

- A sync makes all writes to that file durable, and its size. The first sync of a journal or write-ahead log also syncs
its folder, as SQLite does; until then, names created and deleted there are not durable. - Everything since is
uncertain. Each sector of 512 bytes has any of the contents that it had since the last sync, independent of its
neighbours: writes are dropped, reordered and torn. The size is any that the file had since, and each name refers to any
of the files that it referred to. What was never written reads as zeros. - A sync that fails loses its writes
permanently, as on Linux: the system considers them clean, and a later successful sync does not write them. They may
still be on the disk, or not. - With `lies`, a sync succeeds but does nothing. With it, a test shows that it would
notice.

Like SQLite, the model assumes that writing some bytes of a sector does not damage the others. A disk tracks only the
writes of its own process.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec

from wakelog.engine import Engine, Pending
from wakelog.engines.group_commit import GroupedAppend
from wakelog.engines.sqlite import SqliteEngine
from wakelog.engines.sqlite.rows import PackedCommit
from wakelog.errors import UnavailableError
from wakelog.model.records import Commit, Head

SECTOR = 512
POINTS = ("before-write", "after-insert", "after-commit", "before-scrub", "after-scrub")
"""Where a DyingEngine can die: nothing written; inserted but not committed; durable but not answered; content removed
but old bytes still in the files; old bytes removed too, but not answered."""


def die() -> None:
    """Kills this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingEngine(SqliteEngine):
    """Dies when it reaches `point` for the `times`-th time."""

    def __init__(self, path: str | Path, *, point: str, times: int = 1) -> None:
        assert point in POINTS, point
        super().__init__(path)
        self._point, self._times = point, times

    def _reached(self, point: str) -> None:
        if point == self._point:
            self._times -= 1
            if self._times == 0:
                die()

    def _write(self, batch: list[GroupedAppend[PackedCommit]]) -> None:
        self._reached("before-write")
        super()._write(batch)
        self._reached("after-commit")

    def _store(self, db: apsw.Connection, commits: tuple[PackedCommit, ...]) -> Head:
        head = super()._store(db, commits)
        self._reached("after-insert")
        return head

    def _scrub(self) -> None:
        self._reached("before-scrub")
        super()._scrub()
        self._reached("after-scrub")


class _LostAnswer:
    def __init__(self, inner: Pending) -> None:
        self._inner = inner

    def result(self) -> Head:
        self._inner.result()
        raise UnavailableError("the answer was lost on purpose", kind="answer-unknown")


class LossyEngine:
    """Passes everything to another engine, and loses the answers to the next `lose` appends."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.durability = inner.durability
        self.lose = 0
        self.submitted: list[tuple[Commit, ...]] = []

    def submit(self, *commits: Commit) -> Pending:
        self.submitted.append(commits)
        pending = self.inner.submit(*commits)
        if self.lose:
            self.lose -= 1
            return _LostAnswer(pending)
        return pending

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Operation(msgspec.Struct, frozen=True):
    """The `number`-th operation of a disk, before it runs."""

    number: int
    kind: Literal["write", "truncate", "sync", "delete"]
    file: str
    """The file's name, without its folder."""
    grows: int = 0
    """By how many bytes a write extends the file."""


Hook = Callable[[Operation], None]


def full_after(size: int) -> Hook:
    """A disk with space for `size` more bytes."""
    left = size

    def check(operation: Operation) -> None:
        nonlocal left
        if operation.grows > left:
            raise apsw.FullError("the disk is full on purpose")
        left -= operation.grows

    return check


def failing(kind: str, file_ends: str = "", *, times: int = 1, after: int = 0) -> Hook:
    """Lets `times` operations of a kind, on files with an ending, fail in a row, after the first `after` of them."""
    numbers = itertools.count()

    def check(operation: Operation) -> None:
        if operation.kind == kind and operation.file.endswith(file_ends) and after <= next(numbers) < after + times:
            raise apsw.IOError(f"{kind} of {operation.file} fails on purpose")

    return check


def dying_at(number: int) -> Hook:
    """Dies just before the disk's `number`-th operation."""

    def check(operation: Operation) -> None:
        if operation.number == number:
            die()

    return check


class _Inode:
    """A file's content: as the system sees it, what is durable, and every state in between."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytes(content)
        self.sizes: list[int] = []
        self.versions: dict[int, list[bytes]] = {}
        self.lost: set[int] = set()
        """Sectors whose last sync failed. The system thinks they are clean."""
        self.syncs_folder = False

    def write(self, data: bytes, offset: int) -> None:
        self._resize(max(len(self.content), offset + len(data)))
        self.content[offset : offset + len(data)] = data
        self._changed(offset, offset + len(data))

    def truncate(self, size: int) -> None:
        old = len(self.content)
        self._resize(size)
        self._changed(min(old, size), max(old, size))

    def _resize(self, size: int) -> None:
        if size != len(self.content):
            self.content[size:] = bytes(max(0, size - len(self.content)))
            self.sizes.append(size)

    def _changed(self, start: int, end: int) -> None:
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            self.versions.setdefault(sector, []).append(_sector(self.content, sector))
            self.lost.discard(sector)

    def sync(self) -> None:
        kept = bytearray(self.content)
        for sector in self.lost:
            kept[sector * SECTOR : (sector + 1) * SECTOR] = _sector(self.durable, sector)
        self.durable = bytes(kept[: len(self.content)])
        self.versions = {sector: self.versions[sector] for sector in self.lost}
        self.sizes = []

    def fail_sync(self) -> None:
        self.lost.update(self.versions)

    def after_cut(self, rng: random.Random) -> bytes:
        image = bytearray(self.durable)
        for sector, versions in self.versions.items():
            chosen = rng.choice([_sector(self.durable, sector), *versions])
            end = (sector + 1) * SECTOR
            image.extend(bytes(max(0, end - len(image))))
            image[end - SECTOR : end] = chosen
        size = rng.choice([len(self.durable), *self.sizes])
        return bytes(image[:size]).ljust(size, b"\0")


def _sector(content: bytes | bytearray, sector: int) -> bytes:
    return bytes(content[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")


class FaultyDisk(apsw.VFS):
    """A disk that records what is durable on it."""

    def __init__(self, name: str = "faulty", *, before: Hook | None = None, lies: bool = False) -> None:
        self.name = name
        self.before = before
        self.lies = lies
        self.operations = 0
        self.lock = threading.RLock()
        self._files: dict[str, list[_Inode | None]] = {}
        """Name → the files it has referred to since its folder was last synced, the current one last. None: no file."""
        super().__init__(name, "")

    def power_cut(self, folder: Path, image: Path, seed: int) -> None:
        """Writes into the folder `image` what the files in `folder` could be if the power failed now. The same seed at
        the same moment always gives the same."""
        rng = random.Random(seed)
        image.mkdir(parents=True, exist_ok=True)
        with self.lock:
            for name in sorted(self._files):
                inode = rng.choice(self._files[name])
                if inode is not None and Path(name).parent == folder:
                    (image / Path(name).name).write_bytes(inode.after_cut(rng))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile("", name, flags)  # a temporary file: gone with the process
        path = name if isinstance(name, str) else name.filename()
        with self.lock:
            existed = os.path.exists(path)
            asked_for = flags[0]
            file = _File(self, path, name, flags)
            if path not in self._files or self._files[path][-1] is None or not existed:
                inode = _Inode(Path(path).read_bytes() if existed else b"")
                inode.syncs_folder = not existed and bool(asked_for & _SYNCS_FOLDER)
                self._files.setdefault(path, [] if existed else [None]).append(inode)
            file.inode = self._present(path)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.lock:
            self.about_to("delete", filename)
            super().xDelete(filename, syncdir)
            if filename in self._files:
                self._files[filename].append(None)
            if syncdir:
                self.sync_folder(filename)

    def about_to(self, kind: Literal["write", "truncate", "sync", "delete"], path: str, grows: int = 0) -> None:
        self.operations += 1
        if self.before is not None:
            self.before(Operation(self.operations, kind, os.path.basename(path), max(0, grows)))

    def sync_folder(self, path: str) -> None:
        if not self.lies:
            for name, history in self._files.items():
                if os.path.dirname(name) == os.path.dirname(path):
                    del history[:-1]

    def _present(self, path: str) -> _Inode:
        inode = self._files[path][-1]
        assert inode is not None
        return inode


_SYNCS_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL


class _File(apsw.VFSFile):
    """An open file of a FaultyDisk. Several of them may share an inode."""

    inode: _Inode

    def __init__(self, disk: FaultyDisk, path: str, name: str | apsw.URIFilename, flags: list[int]) -> None:
        self._disk, self._path = disk, path
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        with self._disk.lock:
            self._disk.about_to("write", self._path, offset + len(data) - len(self.inode.content))
            super().xWrite(data, offset)
            self.inode.write(bytes(data), offset)

    def xTruncate(self, newsize: int) -> None:
        with self._disk.lock:
            self._disk.about_to("truncate", self._path)
            super().xTruncate(newsize)
            self.inode.truncate(newsize)

    def xSync(self, flags: int) -> None:
        # The real file is not synced, because the model decides which bytes survive.
        with self._disk.lock:
            try:
                self._disk.about_to("sync", self._path)
            except apsw.Error:
                self.inode.fail_sync()
                raise
            if self._disk.lies:
                return
            self.inode.sync()
            if self.inode.syncs_folder:
                self.inode.syncs_folder = False
                self._disk.sync_folder(self._path)
