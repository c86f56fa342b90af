"""The PostgreSQL engine.

Each commit is one row, keyed by namespace and root of the fork tree first (schema.sql says why). An append is one
statement and one round trip without locks: it compares the session's newest commit and inserts the new one. Of two
concurrent appends, the primary key admits one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
import msgspec

from wakelog.engine import (
    Abilities,
    FeedChange,
    Known,
    MigrationStep,
    Pending,
    StoreFinding,
    Surgery,
    payload_of,
    refuse_place_in_no_session,
)
from wakelog.engines.loop_owner import LoopOwner, store_closed
from wakelog.engines.postgres import creation, deletion, distribution, feed, inspection, migrations, rewrite
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.append_lane import AppendLane
from wakelog.engines.postgres.connections import PATIENCE_S, POOL_MAX, ConnectionPool
from wakelog.engines.postgres.errors import translate_error
from wakelog.engines.postgres.notifications import AppendNotifications
from wakelog.engines.postgres.routed_appends import CONNECTIONS, RoutedAppends
from wakelog.engines.postgres.rows import from_row, head_from_row, to_row
from wakelog.engines.postgres.transaction_writer import TransactionWriter, known_by_id
from wakelog.engines.postgres.worker_limits import WorkerLimits
from wakelog.errors import NotFoundError, UnavailableError, UnsupportedError, WakelogError
from wakelog.model.ids import Seq, SessionId, root_of
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

PAGE = 200
POLL_S = 0.5
READ_CONNECTIONS, READS_PER_WORKER = 16, 4
"""Connections to a sharded server for all but appends, and how many of them one worker may take."""
_END = 1 << 62
T = TypeVar("T")


class PostgresEngine(LoopOwner):
    """A namespace of a PostgreSQL database."""

    loop_name = "wakelog postgres"
    durability = "synced"
    keeps_index = True
    """Whether the index is in this database too; the store's settings decide."""
    is_distributed = False
    """Whether the tables are spread over the workers of a sharded server (distribution.py)."""

    def __init__(
        self,
        url: str,
        *,
        ns: str = "default",
        create: bool = True,
        patience_s: float = PATIENCE_S,
        distributed: bool = False,
        shards: int | None = None,
    ) -> None:
        """If the server is unavailable, now or later, calls retry for `patience_s`. A new store's tables are
        `distributed` over `shards`; an existing store knows whether it is."""
        self.url = url
        self.ns = ns
        self._patience_s = patience_s
        self._start()
        try:
            place = _safe(url)
            self._ask(
                lambda db: creation.prepare_tables(db, place, create=create, distributed=distributed, shards=shards)
            )
            self.is_distributed = self._ask(distribution.is_distributed)
            if self.is_distributed:
                self._ask(distribution.check_syncs)
            self._start_appends()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        super()._start()
        self._connections = ConnectionPool(self.url, patience_s=self._patience_s, size=POOL_MAX - 1)
        try:
            self._await(self._connections.open())
        except BaseException:
            self._loop.stop()
            raise
        self._notifications = AppendNotifications(self._loop, self._connections, self.ns)
        self._writer = TransactionWriter(self._connections, self.ns)
        self._appends: AppendLane | RoutedAppends | None = None
        self._limits: WorkerLimits | None = None

    def _after_fork(self) -> None:
        self._start_appends()

    def _start_appends(self) -> None:
        stored = self._notifications.announce
        if not self.is_distributed:
            self._appends = AppendLane(
                self.url, self.ns, patience_s=self._patience_s, check=self._check_open, on_stored=stored
            )
            return
        # Each append is sent to the worker that has its session.
        self._connections.is_sharded = True
        self._connections.on_connect = None
        own = ConnectionPool(self.url, patience_s=self._patience_s, size=CONNECTIONS, is_sharded=True)
        self._await(own.open())
        self._await(self._connections.resize(READ_CONNECTIONS))
        self._limits = WorkerLimits(self._connections, READS_PER_WORKER)
        self._writer = self._appends = RoutedAppends(self._loop, own, self.ns, stored)

    @property
    def retries(self) -> int:
        """How often something was asked again."""
        own = self._appends.connections.retries if self._appends is not None else 0
        return self._connections.retries + own

    @property
    def abilities(self) -> Abilities:
        identity = f"{_safe(self.url)}#{self.ns}"
        return Abilities(
            feed_end=self.end_of_feed,
            live_sessions=lambda since: [SessionId(row["session"]) for row in self._fetch(sql.HEARD, self.ns, since)],
            migrations=self,
            marks=self,
            rewrite=self.rewrite,
            sizes=self,
            workers=(lambda: self._ask(distribution.workers)) if self.is_distributed else None,
            inspection=self,
            identity=identity,
            place=identity,
            is_far=True,
            keeps_index=self.keeps_index,
        )

    # Appending

    def submit(self, *commits: Commit) -> Pending:
        assert commits, "nothing was submitted"
        self._check()
        assert self._appends is not None
        return self._appends.submit(commits)

    def _check_open(self) -> None:
        if self._closed:
            raise store_closed()

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        options = (_END if upto is None else upto, payloads, PAGE)
        rows = self._fetch_of(session, sql.READ, after, *options)
        if not rows:
            self.head(session)  # raises if there is no such session
        return self._pages(session, rows, options)

    def _pages(self, session: SessionId, rows: list[Any], options: tuple[Any, ...]) -> Iterator[Commit]:
        while True:
            for row in rows:
                yield from_row(session, row)
            if len(rows) < PAGE:
                return
            after = rows[-1]["last"]
            rows = self._fetch_of(session, sql.READ, after, *options)
            if rows and rows[0]["first"] != after + 1 and self.head(session).status == "deleted":
                raise NotFoundError(f"session {session} was deleted while it was read", kind="session-deleted")

    def head(self, session: SessionId) -> Head:
        row = self._fetchrow_of(session, sql.HEAD)
        if row is None:
            raise NotFoundError(f"there is no session {session}", kind="session-not-found")
        return head_from_row(row)

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        key = self._key(session)

        async def find(db: Any) -> Known | None:
            row = await db.fetchrow(sql.HEAD, *key)
            if row is None:
                raise NotFoundError(f"there is no session {session}", kind="session-not-found")
            return await known_by_id(db, key, commit_id, head_from_row(row))

        return self._ask(find, root=root_of(session))

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        rows = self._fetch(sql.SESSIONS, self.ns, after.partition(".")[0], after, limit)
        return [head_from_row(row) for row in rows]

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        heads = [head_from_row(row) for row in self._fetch_of(session, sql.CHILDREN)]
        return [h for h in heads if deleted or h.status != "deleted"]

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        feed.read_cursor(cursor)  # so that a wrong cursor is refused without a query
        return self._ask(lambda db: feed.changes(db, self.ns, cursor, limit))

    def end_of_feed(self) -> str:
        return self._ask(lambda db: feed.end(db, self.ns))

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        return payload_of(self, session, seq, digest)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        row = self._fetchrow_of(session, sql.SNAPSHOT, upto)
        if row is None:
            self.head(session)  # raises: there is no such session
            return None
        return Snapshot(row["seq"], row["data"]) if row["seq"] is not None else None

    def drop_snapshots(self, session: SessionId) -> None:
        self._fetch_of(session, sql.DROP_SNAPSHOTS, 0, _END)

    # Names, leases

    def claim(self, name: str, session: SessionId) -> SessionId:
        self._ask(lambda db: db.execute(sql.CLAIM, self.ns, name, session), name=name)
        winner = self.find(name)
        if winner is None:
            return self.claim(name, session)  # it was freed in between
        # If this process dies here, the next claim of the name repeats this.
        self._fetch_of(winner, sql.TITLE, name)
        if isinstance(self._appends, RoutedAppends):
            self._loop.soon(self._appends.forget, winner)
        return winner

    def find(self, name: str) -> SessionId | None:
        if "\0" in name:
            return None
        row = self._ask(lambda db: db.fetchrow(sql.FIND, self.ns, name), name=name)
        return SessionId(row["session"]) if row is not None else None

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        self.head(session)
        self._fetch_of(session, sql.BEAT, beat.epoch, beat.holder, beat.until)

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        self.head(session)
        row = self._fetchrow_of(session, sql.LAST_BEAT)
        return Heartbeat(row["epoch"], row["holder"], row["until"]) if row is not None else None

    # Surgery

    def operate(self, surgery: Surgery) -> Head:
        async def change(db: Any) -> None:
            for commit in surgery.rewritten:
                await db.execute(sql.UPDATE, *self._key(commit.session), *to_row(commit))
            for session, seq in surgery.stale_from.items():
                await db.execute(sql.DROP_SNAPSHOTS, *self._key(session), seq, _END)
            for session, seq in surgery.pruned_to.items():
                await db.execute(sql.DROP_SNAPSHOTS, *self._key(session), 0, seq)

        self._note_due()
        head = self._run(lambda: self._writer.store(surgery.commits, change))
        self._vacuum()
        return head

    def delete(self, commit: Commit) -> Head:
        self._note_due()
        drop = partial(deletion.drop, ns=self.ns, session=commit.session)
        head = self._run(lambda: self._writer.store((commit,), drop))
        self._vacuum()
        return msgspec.structs.replace(head, name="")

    def rewrite(self, *, most: int | None = None) -> bool:
        return self._ask(lambda db: rewrite.rewrite(db, self.ns, most, is_distributed=self.is_distributed))

    def _note_due(self) -> None:
        self._ask(lambda db: rewrite.note(db, self.ns))

    def _vacuum(self) -> None:
        """Frees the space of removed rows for reuse. `rewrite` makes sure that nothing of them is left."""
        for table in ("wl_commit", "wl_snapshot"):
            with contextlib.suppress(UnavailableError):
                self._execute(f"vacuum {table}")

    # News

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        refuse_place_in_no_session(session, after)
        deadline = time.monotonic() + timeout_s
        self._listen()
        newest = self._newest() if session is None else None
        return self._notifications.waiters.wait(
            session,
            lambda: self._newest() != newest if session is None else self.head(session).seq > after,
            deadline=deadline,
            poll_s=POLL_S,
        )

    def _listen(self) -> None:
        if not self._notifications.is_listening:
            with contextlib.suppress(WakelogError):  # polling is enough
                self._run(self._notifications.listen)

    def _newest(self) -> tuple[Any, ...] | None:
        row = self._fetchrow(sql.NEWEST, self.ns)
        return tuple(row.values()) if row is not None else None

    # Maintenance

    def version(self) -> int:
        return self._ask(migrations.version_of)

    def waiting(self) -> Sequence[MigrationStep]:
        return self._ask(migrations.waiting)

    def migrate(self) -> Iterator[MigrationStep]:
        for step in self.waiting():
            if self._ask(partial(migrations.take, step=step)):
                yield step

    def mark(self, name: str) -> str | None:
        async def find(db: Any) -> Any:
            with contextlib.suppress(asyncpg.UndefinedTableError):
                return await db.fetchval(sql.MARK, self.ns, name)

        found: str | None = self._ask(find)
        return found

    def set_mark(self, name: str, value: str) -> None:
        async def put(db: Any) -> None:
            try:
                await db.execute(sql.SET_MARK, self.ns, name, value)
            except asyncpg.UndefinedTableError as exc:
                raise UnsupportedError(
                    "this store has no table for marks yet", kind="migration-waits", hint="wakelog store migrate"
                ) from exc

        self._ask(put)

    def inspect(self) -> Iterator[StoreFinding]:
        return iter(self._ask(lambda db: inspection.findings(db, self.ns)))

    def tidy(self) -> int:
        return self._ask(lambda db: inspection.tidy(db, self.ns))

    def table_bytes(self) -> dict[str, int]:
        return self._ask(lambda db: inspection.table_bytes(db, is_distributed=self.is_distributed))

    def session_bytes(self) -> dict[SessionId, int]:
        return self._ask(lambda db: inspection.session_bytes(db, self.ns))

    # Closing, asking

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True

        # If one step fails, the others still run: a connection left open is one fewer for other processes.
        routed = self._appends if isinstance(self._appends, RoutedAppends) else None
        with contextlib.suppress(Exception):
            if self._pid == os.getpid() and isinstance(self._appends, AppendLane):
                self._appends.close()
        self._shut_down(
            *([routed.drain] if routed is not None else []),
            self._notifications.stop_sending,
            self._connections.close,
            last=self._notifications.disconnect,
        )
        if routed is not None:
            routed.arrivals.refuse_all()

    def _inherited(self) -> tuple[Any, ...]:
        return self._connections, self._appends, self._notifications

    def _translate(self, exc: Exception) -> WakelogError:
        return translate_error(exc)

    def _key(self, session: SessionId) -> tuple[str, str, str]:
        return self.ns, root_of(session), session

    def _ask(self, work: Callable[[Any], Awaitable[T]], *, root: str = "", name: str = "") -> T:
        """Runs `work` with a connection. It is about the tree of one root, about a name, or about everything."""
        return self._run(lambda: self._ask_within_limit(work, root, name))

    async def _ask_within_limit(self, work: Callable[[Any], Awaitable[T]], root: str, name: str) -> T:
        limits = self._limits
        if limits is None:
            return await self._connections.ask(work)
        limit = await limits.of(root) if root else await limits.of_name(name) if name else limits.of_all()
        async with limit:
            return await self._connections.ask(work)

    def _fetch_of(self, session: SessionId, statement: str, *values: Any) -> list[Any]:
        """The rows of a statement about one session."""
        key = self._key(session)
        return self._ask(lambda db: db.fetch(statement, *key, *values), root=key[1])

    def _fetchrow_of(self, session: SessionId, statement: str, *values: Any) -> Any:
        rows = self._fetch_of(session, statement, *values)
        return rows[0] if rows else None

    def _fetch(self, statement: str, *values: Any) -> list[Any]:
        return self._ask(lambda db: db.fetch(statement, *values))

    def _fetchrow(self, statement: str, *values: Any) -> Any:
        rows = self._fetch(statement, *values)
        return rows[0] if rows else None

    def _execute(self, statement: str, *values: Any) -> None:
        self._ask(lambda db: db.execute(statement, *values))


def _safe(url: str) -> str:
    """A URL without its password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
