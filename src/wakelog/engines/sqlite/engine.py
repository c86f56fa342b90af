"""SQLite: one row per commit, one sync for all commits in flight.

**Group commit.** `submit` puts commits in a queue. Whoever first asks for a result and finds no leader becomes the
leader: it writes everything queued in one transaction, syncs once, and all of them have their answer. A lone caller
is its own leader, so there is no thread to hop to; under load, what queues up while one sync runs shares the next.

**Processes.** Any number may open the same file. The write lock is taken before the head is read. News from other
processes shows in `PRAGMA data_version`, which costs microseconds to poll.

**Forking.** A connection must not be used, nor closed, in a forked child: closing would run a checkpoint on locks that
belong to the parent. After `os.fork` the child leaves the old connections alone and opens its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from wakelog.engine import Change, Known, Surgery, head_after, judge
from wakelog.engines.sqlite import tables
from wakelog.engines.sqlite.connection import connect, refuse_network, transaction, translate, translated
from wakelog.engines.sqlite.rows import COLUMNS, from_row
from wakelog.errors import NotFoundError, UnavailableError, WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

GROUP_MAX = 256
PAGE = 128
POLL_S = 0.005

_READ = (
    f"select {COLUMNS}, records, payloads from log where session = ? and last > ? and first <= ? order by last limit ?"
)
_CHANGES = (
    "select s.id, last, log.id from log join session s on s.no = session where log.id > ? order by log.id limit ?"
)
_SNAPSHOT = "select seq, data from snapshot where session = ? and seq <= ? order by seq desc limit 1"

# Connections of a parent process, kept for ever so that they are never closed here.
_abandoned: list[object] = []


class _Pending:
    """An append in the queue, and the caller's way to its answer."""

    __slots__ = ("_engine", "commits", "done", "error", "head")

    def __init__(self, engine: SqliteEngine, commits: tuple[Commit, ...]) -> None:
        self._engine = engine
        self.commits = commits
        self.head: Head | None = None
        self.error: BaseException | None = None
        self.done = False

    def result(self) -> Head:
        while not self.done:
            self._engine.lead(self)
        if self.error is not None:
            raise self.error
        assert self.head is not None
        return self.head


class SqliteEngine:
    """All sessions of one store in one file, with its write-ahead log beside it."""

    durability = "synced"

    def __init__(self, path: str | Path, *, create: bool = True, vfs: str | None = None) -> None:
        self.path = Path(path)
        self._vfs = vfs
        if create:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_network(self.path.parent)
        if not create and not self.path.exists():
            raise NotFoundError(f"there is no store at {self.path}", kind="store-not-found")
        self._writer: apsw.Connection | None
        self._begin()
        self._writer = connect(self.path, create=create, vfs=vfs)  # the schema is made here, not at the first append

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._writer = None
        self._readers: list[apsw.Connection] = []
        self._queue: deque[_Pending] = deque()
        self._leader = threading.Lock()
        self._news = threading.Condition()
        self._numbers: dict[str, int] = {}
        self._heads: dict[int, Head] = {}
        self._version = -1
        self._closed = False

    # Appending

    def submit(self, *commits: Commit) -> _Pending:
        self._check_process()
        pending = _Pending(self, commits)
        self._queue.append(pending)
        return pending

    def lead(self, pending: _Pending) -> None:
        """Writes what is queued, unless another leader has written `pending` meanwhile."""
        with self._leader:
            if pending.done:
                return
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_MAX))]
            try:
                self._write(batch)
            finally:
                for each in batch:
                    if each.head is None and each.error is None:
                        each.error = UnavailableError("the append was interrupted", kind="answer-unknown")
                    each.done = True
        with self._news:
            self._news.notify_all()

    def _write(self, batch: list[_Pending]) -> None:
        try:
            db = self._write_connection()
            with transaction(db):
                for pending in batch:
                    try:
                        pending.head = self._store(db, pending.commits)
                    except WakelogError as exc:
                        pending.error = exc
        except (apsw.Error, WakelogError) as exc:
            self._heads.clear()
            error = translate(exc, str(self.path)) if isinstance(exc, apsw.Error) else exc
            for pending in batch:
                pending.head = None
                pending.error = pending.error or error

    def _store(self, db: apsw.Connection, commits: tuple[Commit, ...]) -> Head:
        """Stores commits that belong together, or raises having stored none of them."""
        if len(commits) == 1:
            return self._store_one(db, commits[0])
        with db:  # a savepoint
            head = None
            for commit in commits:
                head = self._store_one(db, commit)
        assert head is not None, "nothing was submitted"
        return head

    def _store_one(self, db: apsw.Connection, commit: Commit) -> Head:
        number = self._number(db, commit.session)
        head = self._last_head(db, number) if number else None
        answer = judge(commit, head, self._known(db, number, commit, head) if head else None)
        if answer is not None:
            return answer
        if not number:
            number = tables.insert_session(db, commit)
        tables.insert_commit(db, number, commit)
        head = self._heads[number] = head_after(commit)
        return head

    def _last_head(self, db: apsw.Connection, number: int) -> Head:
        """The head as this process wrote it, if no other has written since: `data_version` tells."""
        version = db.pragma("data_version")
        if version != self._version:
            self._heads.clear()
            self._version = version
        head = self._heads.get(number)
        return tables.head_of(db, number) if head is None else head

    @staticmethod
    def _known(db: apsw.Connection, number: int, commit: Commit, head: Head) -> Known | None:
        if commit.fingerprint:
            return tables.commit_by_id(db, number, commit.commit_id)
        # A generated id tells its own place: if it is stored, then where the commit says it goes.
        return tables.commit_at(db, number, commit.last, commit.commit_id) if head.seq >= commit.last else None

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        with self._reading() as db:
            number = self._require(db, session)
        return self._pages(session, number, after, (1 << 62) if upto is None else upto, payloads)

    def _pages(self, session: SessionId, number: int, after: Seq, upto: Seq, payloads: bool) -> Iterator[Commit]:
        # In pages, because an open statement would keep the write-ahead log from being checkpointed.
        while True:
            with self._reading() as db:
                rows: Any = db.execute(_READ, (number, after, upto, PAGE)).fetchall()
            for row in rows:
                yield from_row(session, row, payloads=payloads)
            if len(rows) < PAGE:
                return
            after = int(rows[-1][1])

    def head(self, session: SessionId) -> Head:
        with self._reading() as db:
            return tables.head_of(db, self._require(db, session))

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        with self._reading() as db:
            return tables.commit_by_id(db, self._require(db, session), commit_id)

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        with self._reading() as db:
            return tables.heads(db, "s.id > ? order by s.id limit ?", (after, limit))

    def children(self, session: SessionId) -> Sequence[Head]:
        with self._reading() as db:
            return tables.heads(db, "s.parent = ? order by s.id", (session,))

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[Change]:
        with self._reading() as db:
            rows: Any = db.execute(_CHANGES, (int(cursor or 0), limit)).fetchall()
            return [Change(SessionId(session), seq, str(at)) for session, seq, at in rows]

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        for commit in self.read(session, after=seq - 1, upto=seq, payloads=True):
            for known, content in commit.payloads:
                if known == digest:
                    return content
        raise NotFoundError(f"event {seq} of {session} holds no payload {digest.hex()[:12]}", kind="payload-gone")

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        with self._reading() as db:
            row: Any = db.execute(_SNAPSHOT, (self._require(db, session), upto)).fetchone()
            return Snapshot(*row) if row else None

    # Names, leases

    def claim(self, name: str, session: SessionId) -> SessionId:
        with self._writing() as db:
            db.execute("insert into name (name, session) values (?, ?) on conflict do nothing", (name, session))
            winner: Any = db.execute("select session from name where name = ?", (name,)).get
            return SessionId(winner)

    def find(self, name: str) -> SessionId | None:
        with self._reading() as db:
            found: Any = db.execute("select session from name where name = ?", (name,)).get
            return SessionId(found) if found else None

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        with self._writing() as db:
            row = (self._require(db, session), beat.epoch, beat.holder, beat.at)
            db.execute("insert or replace into heartbeat (session, epoch, holder, at) values (?, ?, ?, ?)", row)

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        with self._reading() as db:
            query = "select epoch, holder, at from heartbeat where session = ?"
            row: Any = db.execute(query, (self._require(db, session),)).fetchone()
            return Heartbeat(*row) if row else None

    # Surgery

    def drop_snapshots(self, session: SessionId) -> None:
        with self._writing() as db:
            db.execute("delete from snapshot where session = ?", (self._require(db, session),))

    def operate(self, surgery: Surgery) -> Head:
        with self._writing() as db:
            head = self._store(db, surgery.commits)
            for commit in surgery.rewritten:
                tables.update_commit(db, self._require(db, commit.session), commit)
            for session, seq in surgery.stale_from.items():
                db.execute("delete from snapshot where session = ? and seq >= ?", (self._require(db, session), seq))
            for session, seq in surgery.pruned_to.items():
                db.execute("delete from snapshot where session = ? and seq < ?", (self._require(db, session), seq))
        self._scrub()
        return head

    def delete(self, commit: Commit) -> Head:
        with self._writing() as db:
            head = self._store_one(db, commit)
            db.execute("delete from name where session = ?", (commit.session,))
            tables.drop_if_unread(db, commit.session)
        self._scrub()
        return head

    def _scrub(self) -> None:
        """Leaves nothing of removed bytes in the files: freed pages are gone, and the write-ahead log is emptied."""
        with self._leader, translated(str(self.path)):
            db = self._write_connection()
            db.execute("vacuum")
            checkpoint: Any = db.execute("pragma wal_checkpoint(truncate)").fetchone()
            if checkpoint[0]:
                raise UnavailableError(
                    f"the removal is done and durable, but other readers keep old bytes in {self.path}-wal",
                    kind="scrub-pending",
                    hint="run it again when they have finished",
                )

    # News

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._reading() as db:
            number = self._require(db, session) if session is not None else 0
            seen = self._newest(db, number)
            version = -1
            while True:
                now = db.pragma("data_version")
                if now != version:
                    version = now
                    newest = self._newest(db, number)
                    if newest > (after if number else seen):
                        return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                with self._news:
                    self._news.wait(min(left, POLL_S))

    @staticmethod
    def _newest(db: apsw.Connection, number: int) -> int:
        query = "select max(last) from log where session = ?" if number else "select max(id) from log"
        newest: Any = db.execute(query, (number,) if number else ()).get
        return newest or 0

    # Connections

    def close(self) -> None:
        if self._pid != os.getpid() or self._closed:
            return
        self._closed = True
        with self._leader:
            for db in (*self._readers, *([self._writer] if self._writer else [])):
                db.close()
            self._readers.clear()
            self._writer = None

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            _abandoned.append((self._writer, self._readers))
            self._begin()
        if self._closed:
            raise UnavailableError(f"the store {self.path} was closed", kind="store-closed", hint="open it again")

    def _write_connection(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = connect(self.path, create=False, vfs=self._vfs)
        return self._writer

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """The write connection inside a transaction of its own."""
        self._check_process()
        with self._leader, translated(str(self.path)):
            db = self._write_connection()
            with transaction(db):
                yield db

    @contextlib.contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A connection nobody else is reading through."""
        self._check_process()
        readers = self._readers
        with translated(str(self.path)):
            try:
                db = readers.pop()
            except IndexError:
                db = connect(self.path, create=False, vfs=self._vfs)
            try:
                yield db
            finally:
                readers.append(db)

    def _number(self, db: apsw.Connection, session: str) -> int:
        """The session's number, or 0. It is remembered only once it is committed."""
        number = self._numbers.get(session)
        if number is None:
            number = tables.number_of(db, session)
            if number and db.get_autocommit():
                self._numbers[session] = number
        return number

    def _require(self, db: apsw.Connection, session: str) -> int:
        return self._number(db, session) or tables.require_number(db, session)

    def settings(self) -> dict[str, Any]:
        """What the database is set to, for people who ask."""
        with self._reading() as db:
            names = ("journal_mode", "synchronous", "page_size", "wal_autocheckpoint", "secure_delete")
            return {name: db.pragma(name) for name in names}
