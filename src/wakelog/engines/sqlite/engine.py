"""SQLite: one row per commit, one sync for all commits in flight.

**Group commit.** `submit` queues commits. The first thread that asks for a result and finds no leader becomes the
leader: it writes the whole queue in one transaction and syncs once, for all of them (group_commit.py).

**Processes.** Any number may open the same file. The write lock is taken before the head is read. The connection's data
version shows whether another process has written since; it also counts the connection's own commits.

**Forking.** Before `os.fork` all connections are closed, and after it both sides open new ones (fork_safety.py).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from wakelog.engine import (
    Abilities,
    FeedChange,
    Known,
    MigrationStep,
    StoreFinding,
    Surgery,
    head_after,
    judge,
    payload_of,
    refuse_place_in_no_session,
)
from wakelog.engines.group_commit import Bell, Group, GroupedAppend
from wakelog.engines.sqlite import fork_safety, migrations, tables
from wakelog.engines.sqlite.connection import is_there, make_folder, refuse_network, translate
from wakelog.engines.sqlite.pool import Pool
from wakelog.engines.sqlite.rows import PackedCommit, from_row, pack
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError, WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

T = TypeVar("T")

FIRST_PAGE, PAGE = 16, 128
"""Commits read by one query: few at first, because many readers want no more."""
CACHE_MAX = 4096
POLL_S = 0.005

_CHANGES = (
    "select s.id, last, log.id from log join session s on s.no = session where log.id > ? order by log.id limit ?"
)
_SCRUB_DUE = "insert into chore (name) values ('scrub') on conflict do nothing"


class SqliteEngine:
    """All sessions of one store in one file, with its write-ahead log beside it."""

    durability = "synced"

    def __init__(self, path: str | Path, *, create: bool = True, vfs: str | None = None) -> None:
        self.path = Path(path)
        self._vfs = vfs
        if create:
            make_folder(self.path.parent)
        refuse_network(self.path.parent)
        if not is_there(self.path) and not create:
            raise NotFoundError(f"there is no store at {self.path}", kind="store-not-found")
        self._closed = False
        self._reset()
        self._pool = Pool(self.path, create=create, vfs=vfs, check=self._check_process)
        self._read = self._pool.read
        fork_safety.watch(self)
        self._finish_scrub()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._group = Group(self._write, self._check_process)
        self._listeners: set[Bell] = set()
        self._numbers: dict[str, int] = {}
        self._heads: dict[str, tuple[int, Head]] = {}
        """The number and head of sessions that this process wrote; see `_forget_old_heads`."""
        self._heads_as_of = (-1, -1)

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            live_sessions=lambda since: self._read(tables.live_sessions, since),
            migrations=self,
            marks=self,
            inspection=self,
            damage=self,
            path=self.path,
            place=str(self.path),
        )

    # Appending

    def submit(self, *commits: Commit) -> GroupedAppend[PackedCommit]:
        assert commits, "nothing was submitted"
        self._check_process()
        try:
            packed = tuple(map(pack, commits))
        except (OverflowError, UnicodeEncodeError, TypeError) as exc:
            raise InvalidInputError(f"the commit cannot be stored: {exc}", kind="bad-commit") from exc
        return self._group.submit(packed)

    def _write(self, batch: list[GroupedAppend[PackedCommit]]) -> None:
        """Writes a batch in one transaction. An append that cannot be stored is left out, so that it fails alone."""
        appends = batch
        while appends and (failed := self._try_to_write(appends)):
            appends = [each for each in appends if each not in failed]
        for bell in tuple(self._listeners):
            bell.ring()

    def _try_to_write(self, batch: list[GroupedAppend[PackedCommit]]) -> list[GroupedAppend[PackedCommit]]:
        """Writes the whole batch, or nothing: then it returns the appends at fault, which have their error."""
        at: GroupedAppend[PackedCommit] | None = None
        try:
            with fork_safety.gate.inside():
                db = self._pool.writer()
                try:
                    db.execute("begin immediate")  # before a head is read (connection.py)
                    self._forget_old_heads(db)
                    for at in batch:
                        at.head = at.error = None
                        try:
                            at.head = self._store(db, at.commits)
                        except WakelogError as exc:
                            at.error = exc
                    at = None
                    db.execute("commit")
                    # The version after our commit. Nothing was read since, so it includes no commit of another writer.
                    self._heads_as_of = (self._pool.writers, db.data_version())
                except BaseException:
                    self._heads.clear()  # they may be of what is rolled back
                    if not db.get_autocommit():
                        db.execute("rollback")
                    raise
            return []
        except (OverflowError, UnicodeEncodeError, TypeError) as exc:
            assert at is not None
            at.fail(InvalidInputError(f"the commit cannot be stored: {exc}", kind="bad-commit"), exc)
            return [at]
        except (apsw.Error, WakelogError) as exc:
            # The answers above come from a transaction that was rolled back, so none of them is valid.
            failed = [at] if at else batch
            for each in failed:
                each.fail(translate(exc, str(self.path)) if isinstance(exc, apsw.Error) else copy(exc), exc)
            return failed

    def _store(self, db: apsw.Connection, commits: tuple[PackedCommit, ...]) -> Head:
        """Stores commits that belong together: all of them, or none and raises."""
        if len(commits) == 1:
            return self._store_one(db, commits[0])
        try:
            with db:  # a savepoint
                for packed in commits:
                    head = self._store_one(db, packed)
        except BaseException:
            self._heads.clear()
            raise
        return head

    def _store_one(self, db: apsw.Connection, packed: PackedCommit) -> Head:
        commit = packed.commit
        number, head = self._heads.get(commit.session) or self._find_head(db, commit.session)
        known = None
        if head is not None and (commit.fingerprint or head.seq >= commit.last):
            known = self._known(db, number, commit)
        answer = judge(commit, head, known)
        if answer is not None:
            return answer
        after = head_after(commit, head)
        if head is None:
            after = msgspec.structs.replace(after, name=tables.name_of(db, commit.session))
            number = tables.insert_session(db, commit)
        tables.insert_commit(db, number, packed)
        if len(self._heads) >= CACHE_MAX:
            self._heads.clear()
        self._heads[commit.session] = number, after
        return after

    def _find_head(self, db: apsw.Connection, session: str) -> tuple[int, Head | None]:
        number = self._number(db, session, may_be_new=True)
        return number, tables.head_of(db, number, session) if number else None

    def _forget_old_heads(self, db: apsw.Connection) -> None:
        """Drops the cached heads if another process has written since. The data version of the write connection shows
        that, and it changes only when a transaction starts. So every transaction that stores asks at its start."""
        as_of = (self._pool.writers, db.data_version())
        if as_of != self._heads_as_of:
            self._heads.clear()
            self._heads_as_of = as_of

    @staticmethod
    def _known(db: apsw.Connection, number: int, commit: Commit) -> Known | None:
        if commit.fingerprint:
            return tables.commit_by_id(db, number, commit.session, commit.commit_id)
        # A generated id can only be stored at the commit's own position.
        return tables.commit_at(db, number, commit.last, commit.commit_id)

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        return self._pages(session, self._number_of(session), after, (1 << 62) if upto is None else upto, payloads)

    def _pages(self, session: SessionId, number: int, after: Seq, upto: Seq, payloads: bool) -> Iterator[Commit]:
        # Page by page: an open statement would keep the write-ahead log from being checkpointed.
        limit = FIRST_PAGE
        while True:
            rows = self._read(tables.page, number, after, upto, limit, payloads)
            if limit > FIRST_PAGE and rows and rows[0][0] != after + 1 and self.head(session).status == "deleted":
                raise NotFoundError(f"session {session} was deleted while it was read", kind="session-deleted")
            for row in rows:
                yield from_row(session, row, payloads=payloads)
            if len(rows) < limit:
                return
            after, limit = int(rows[-1][1]), min(4 * limit, PAGE)

    def head(self, session: SessionId) -> Head:
        return self._written_head(session) or self._read(tables.head_of, self._number_of(session), session)

    def _written_head(self, session: SessionId) -> Head | None:
        """The head that this process wrote, if no other process has written to the file since; else None. Ten times
        as fast as reading it."""
        self._check_process()
        return self._group.alone_or_not(partial(self._known_head, session)) if session in self._heads else None

    def _known_head(self, session: SessionId) -> Head | None:
        # Only with the right to write: a transaction that is open puts heads there that it has not committed yet.
        if self._pool.version() != self._heads_as_of:
            return None
        known = self._heads.get(session)
        return None if known is None else known[1]

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        return self._read(tables.commit_by_id, self._number_of(session), session, commit_id)

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        def listed(db: apsw.Connection) -> list[Head]:
            heads = tables.heads(db, where, (after, limit))
            if len(heads) < limit:
                tables.refuse_lost_sessions(db)
            return heads

        where = "s.id > ? and coalesce(status, '') <> 'deleted' order by s.id limit ?"
        return self._read(listed)

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        def listed(db: apsw.Connection) -> list[Head]:
            tables.refuse_lost_children(db, session)
            return tables.heads(db, where, (session, deleted))

        where = "s.parent = ? and (? or coalesce(status, '') <> 'deleted') order by s.id"
        return self._read(listed)

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        rows: Any = self._read(lambda db: db.execute(_CHANGES, (int(cursor or 0), limit)).fetchall())
        # A damaged row may have no seq. `verify` of its session reports it; the feed continues with the others.
        return [FeedChange(SessionId(session), seq, str(at)) for session, seq, at in rows if type(seq) is int]

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        return payload_of(self, session, seq, digest)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        return self._read(tables.snapshot, self._number_of(session), session, upto)

    # Names, leases

    def claim(self, name: str, session: SessionId) -> SessionId:
        def bind(db: apsw.Connection) -> SessionId:
            tables.bind_name(db, name, session)
            self._heads.clear()  # they hold the name too
            winner = tables.session_by_name(db, name)
            assert winner is not None
            return winner

        return self._transact(bind)

    def find(self, name: str) -> SessionId | None:
        return self._read(tables.session_by_name, name)

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        self._transact(lambda db: tables.put_beat(db, self._number(db, session), session, beat))

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        return self._read(tables.last_beat, self._number_of(session), session)

    # Surgery

    def drop_snapshots(self, session: SessionId) -> None:
        drop = "delete from snapshot where session = ?"
        self._transact(lambda db: db.execute(drop, (self._number(db, session),)))

    def operate(self, surgery: Surgery) -> Head:
        def rewrite(db: apsw.Connection) -> Head:
            self._forget_old_heads(db)
            head = self._store(db, tuple(map(pack, surgery.commits)))
            for commit in surgery.rewritten:
                tables.update_commit(db, self._number(db, commit.session), commit)
            for session, seq in surgery.stale_from.items():
                db.execute("delete from snapshot where session = ? and seq >= ?", (self._number(db, session), seq))
            for session, seq in surgery.pruned_to.items():
                db.execute("delete from snapshot where session = ? and seq < ?", (self._number(db, session), seq))
            db.execute(_SCRUB_DUE)
            return head

        head = self._transact(rewrite)
        self._scrub()
        return head

    def delete(self, commit: Commit) -> Head:
        def drop(db: apsw.Connection) -> Head:
            self._forget_old_heads(db)
            head = self._store(db, (pack(commit),))
            db.execute("delete from name where session = ?", (commit.session,))
            tables.drop_if_unread(db, commit.session)
            self._heads.clear()
            db.execute(_SCRUB_DUE)
            return head

        head = self._transact(drop)
        self._scrub()
        return msgspec.structs.replace(head, name="")

    def _scrub(self) -> None:
        """Wipes removed bytes from the files: drops freed pages and empties the write-ahead log."""

        def scrub(db: apsw.Connection) -> str:
            db.execute("vacuum")
            checkpoint: Any = db.execute("pragma wal_checkpoint(truncate)").fetchone()
            if checkpoint[0]:
                return "readers are still using them"
            db.execute("delete from chore where name = 'scrub'")
            return ""

        try:
            problem = self._group.alone(lambda: self._pool.write(scrub))
        except apsw.Error as exc:
            problem = str(exc)
        if problem:
            raise UnavailableError(
                f"the content is removed, but old bytes are still in {self.path} or its log: {problem}",
                kind="scrub-pending",
                hint="open the store again later",
            )

    def _finish_scrub(self) -> None:
        """Completes a scrub that another process left unfinished. If that fails, the next process tries again."""
        due = "select 1 from chore where name = 'scrub'"
        if self._read(lambda db: not db.readonly("main") and db.execute(due).get):
            with contextlib.suppress(UnavailableError):
                self._scrub()

    # News

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        refuse_place_in_no_session(session, after)
        deadline = time.monotonic() + timeout_s
        number = 0 if session is None else self._number_of(session)
        newest = self._read(self._newest, number)
        known = after if number else newest
        bell = Bell()
        self._listeners.add(bell)
        try:
            while newest <= known:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                bell.wait(min(left, POLL_S))  # rung by this process; what others write must be looked for
                newest = self._read(self._newest, number)
            return True
        finally:
            self._listeners.discard(bell)

    @staticmethod
    def _newest(db: apsw.Connection, number: int) -> int:
        query = "select max(last) from log where session = ?" if number else "select max(id) from log"
        newest: Any = db.execute(query, (number,) if number else ()).get
        return newest or 0

    # Connections

    def close(self) -> None:
        """Closes the store after the current write. Appends still in the queue fail: nothing was written."""
        self._closed = True
        if not self._group.is_mine:  # in the middle of an append, the connections go with the process
            self._group.alone(self._pool.close)

    def disconnect_all(self) -> None:
        self._pool.disconnect_all()

    def start_over(self) -> None:
        self._pool.abandon()
        self._reset()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            self.start_over()  # forked behind Python's back
        if self._closed:
            raise UnavailableError(f"the store {self.path} was closed", kind="store-closed", hint="open it again")

    def _transact(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` in a transaction of its own, outside the queue of appends."""
        self._check_process()
        return self._group.alone(lambda: self._transact_alone(work))

    def _transact_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        self._check_process()
        try:
            return self._pool.transact(work)
        except BaseException as exc:
            self._heads.clear()  # they may be of what was rolled back
            if isinstance(exc, (apsw.Error, UnicodeDecodeError)):
                raise translate(exc, str(self.path)) from exc
            raise

    def _number(self, db: apsw.Connection, session: str, *, may_be_new: bool = False) -> int:
        """The number of an existing session; 0 for one that `may_be_new` and is. Cached only once it is committed."""
        number = self._numbers.get(session)
        if number is None:
            number = tables.number_of(db, session, may_be_new=may_be_new)
            if number and db.get_autocommit():
                if len(self._numbers) >= CACHE_MAX:
                    self._numbers.clear()
                self._numbers[session] = number
        return number

    def _number_of(self, session: str) -> int:
        return self._numbers.get(session) or self._read(self._number, session)

    # Care

    def version(self) -> int:
        return self._read(migrations.version_of)

    def waiting(self) -> Sequence[MigrationStep]:
        return self._read(migrations.waiting)

    def migrate(self) -> Iterator[MigrationStep]:
        for step in self.waiting():
            if self._transact(partial(migrations.take, step=step)):
                yield step

    def mark(self, name: str) -> str | None:
        return self._read(tables.mark, name)

    def set_mark(self, name: str, value: str) -> None:
        self._transact(partial(tables.put_mark, name=name, value=value))

    def inspect(self) -> Iterator[StoreFinding]:
        self._check_process()
        from wakelog.engines.sqlite.inspection import findings

        return findings(self.path, vfs=self._vfs)

    def tidy(self) -> int:
        from wakelog.engines.sqlite.inspection import tidy

        return self._transact(tidy)

    def session_ids(self) -> Sequence[SessionId]:
        from wakelog.engines.sqlite.inspection import session_ids

        return self._read(session_ids)

    def last_sound(self, session: SessionId) -> Head | None:
        return self._read(tables.last_sound, self._number_of(session), session)

    def faults(self, session: SessionId) -> Sequence[str]:
        from wakelog.engines.sqlite.inspection import session_faults

        return self._read(session_faults, self._number_of(session), session)

    def check(self) -> list[str]:
        """Faults of the file that readers cannot see, because they would only find less."""
        self._check_process()
        from wakelog.engines.sqlite.inspection import integrity_faults

        return integrity_faults(self.path, vfs=self._vfs)

    def settings(self) -> dict[str, Any]:
        """The settings of the database, for display."""
        names = ("journal_mode", "synchronous", "page_size", "wal_autocheckpoint", "secure_delete")
        return self._read(lambda db: {name: db.pragma(name) for name in names})
