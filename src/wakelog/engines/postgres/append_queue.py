"""Appending in batches: one statement and one sync for many sessions, with one commit of each.

While a batch is being sent, the next one gathers. A commit that opens a session or a fork, and commits that belong
together, are stored alone: each group is judged and stored in its own transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from copy import copy
from typing import Any

import asyncpg
import msgspec

from wakelog.engine import Known, head_after, judge
from wakelog.engines.append_answer import AppendAnswer
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.connections import ConnectionPool
from wakelog.engines.postgres.errors import translate_error
from wakelog.engines.postgres.rows import fork_from, head_from, head_from_row, to_row
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError
from wakelog.model.ids import SessionId, root_of
from wakelog.model.records import Commit, Head

BATCH_MAX = 256
RETRIES = 50
_RETRYABLE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.UniqueViolationError)


class BatchedAppend(AppendAnswer):
    """A pending append."""

    def __init__(self, commits: tuple[Commit, ...], on_stored: Callable[[], None] = lambda: None) -> None:
        """`on_stored` is called on the loop."""
        super().__init__(commits)
        self._on_stored = on_stored
        # Packed in the caller's thread, because on the loop all other appends would wait for it.
        self.row = _batch_row(commits[0]) if _fits_batch(commits) else None
        """Its row in a batch; None if it must be stored alone."""

    def give(self, head: Head) -> None:
        super().give(head)
        self._on_stored()


class AppendQueue:
    """The queue of one engine's appends. Runs on the loop."""

    insert = sql.INSERT

    def __init__(self, connections: ConnectionPool, ns: str) -> None:
        self._connections = connections
        self._ns = ns
        self._waiting: deque[BatchedAppend] = deque()
        self._task: asyncio.Task[None] | None = None
        self._newest_time = 0
        self._kept = connections.keep()
        connections.on_connect = self._read_newest_time

    async def _read_newest_time(self, db: Any) -> None:
        """A new connection may be to another server whose clock is behind (feed.py)."""
        # There may be no tables yet; and a sharded server that lost a worker must still open.
        away = (asyncpg.UndefinedTableError, asyncpg.InternalServerError, asyncpg.PostgresConnectionError)
        with contextlib.suppress(*away):
            self._newest_time = max(self._newest_time, await db.fetchval(sql.NEWEST_TIME, self._ns) or 0)

    def put(self, pending: BatchedAppend) -> None:
        self._waiting.append(pending)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def drain(self) -> None:
        while self._task is not None and not self._task.done():
            await asyncio.wait({self._task})
        await self._kept.release()

    def forget(self, session: SessionId) -> None:
        """Called when a session's name changed. Here nothing is cached."""

    async def _work(self) -> None:
        while self._waiting:
            batch, alone = self._take_batch()
            if batch:
                await self._send(batch)
            for pending in alone:
                await self._store_alone(pending)

    def _take_batch(self) -> tuple[list[BatchedAppend], list[BatchedAppend]]:
        """Takes appends to send now: at most one of each session; the others keep their order. Returns those for a
        batch, and those to store alone."""
        batch: list[BatchedAppend] = []
        alone: list[BatchedAppend] = []
        taken: set[SessionId] = set()
        waiting: deque[BatchedAppend] = deque()
        while self._waiting and len(batch) < BATCH_MAX:
            pending = self._waiting.popleft()
            sessions = {c.session for c in pending.commits}
            if sessions & taken:
                waiting.append(pending)
            elif pending.row is not None:
                batch.append(pending)
            else:
                alone.append(pending)
            taken |= sessions
        self._waiting = waiting + self._waiting
        return batch, alone

    async def _send(self, batch: list[BatchedAppend]) -> None:
        columns = [list(column) for column in zip(*(p.row for p in batch if p.row is not None), strict=True)]

        async def append(db: Any) -> dict[str, Any]:
            return {row["session"]: row for row in await db.fetch(sql.APPEND, self._ns, *columns, self._newest_time)}

        try:
            stored = await self._connections.ask(append, is_append=True, on=self._kept)
        except asyncpg.DataError:
            stored = {}  # one of them cannot be stored; storing them one by one finds it
        except Exception as exc:
            for pending in batch:
                pending.refuse(copy(translate_error(exc)))
            return
        for pending in batch:
            commit = pending.commits[0]
            row = stored.get(commit.session)
            if row is None:
                await self._store_alone(pending)
            else:
                head = msgspec.structs.replace(head_after(commit), fork=fork_from(row), name=row["name"])
                pending.give(head)

    async def _store_alone(self, pending: BatchedAppend) -> None:
        try:
            pending.give(await self.store(pending.commits))
        except Exception as exc:
            pending.refuse(translate_error(exc))

    async def store(self, commits: tuple[Commit, ...], then: Any = None) -> Head:
        """Stores commits that belong together, and calls `then`, in one transaction."""

        async def transact(db: Any) -> Head | None:
            try:
                async with db.transaction(isolation="serializable"):
                    for commit in commits:
                        head = await self._store_one(db, commit)
                    if then is not None:
                        await then(db)
                    return head
            except _RETRYABLE:
                return None

        for _ in range(RETRIES):
            try:
                head = await self._connections.ask(transact, is_append=True)
                if head is not None:
                    return head
                await asyncio.sleep(0.005)
            except asyncpg.DataError as exc:
                raise InvalidInputError(f"the commit cannot be stored: {exc}", kind="bad-commit") from exc
        raise UnavailableError("other writers came first every time", kind="too-busy")

    async def _store_one(self, db: Any, commit: Commit) -> Head:
        key = (self._ns, root_of(commit.session), commit.session)
        row = await db.fetchrow(sql.HEAD, *key)
        head = head_from_row(row) if row is not None else None
        answer = judge(commit, head, await self._known(db, commit, head) if head is not None else None)
        if answer is not None:
            return answer
        if head is None:
            await self._open(db, commit, key)
        await db.execute(self.insert, *key, *to_row(commit), self._newest_time)
        if commit.fingerprint:
            await db.execute(sql.INSERT_ID, *key, commit.commit_id, commit.first)
        if commit.snapshot is not None:
            await db.execute(sql.INSERT_SNAPSHOT, *key, commit.last, commit.snapshot)
        return head_from_row(await db.fetchrow(sql.HEAD, *key))

    async def _open(self, db: Any, commit: Commit, key: tuple[str, str, str]) -> None:
        fork = commit.fork
        if fork is not None:
            row = await db.fetchrow(sql.HEAD, self._ns, root_of(fork.parent), fork.parent)
            if row is None or row["status"] == "deleted" or row["last"] < fork.at:
                raise NotFoundError(
                    f"session {fork.parent} has no event {fork.at} to fork from", kind="session-not-found"
                )
        origin = (fork.parent, fork.at, fork.hash) if fork is not None else (None, None, None)
        await db.execute(sql.INSERT_SESSION, *key, *origin)

    async def _known(self, db: Any, commit: Commit, head: Head) -> Known | None:
        key = (self._ns, root_of(commit.session), commit.session)
        if commit.fingerprint:
            return await known_by_id(db, key, commit.commit_id, head)
        row = await db.fetchrow(sql.AT, *key, commit.first) if head.seq >= commit.last else None
        if row is None or row["commit_id"] != commit.commit_id:
            return None
        return Known(head_from(commit.session, row, head.fork, head.name), row["fingerprint"])


async def known_by_id(db: Any, key: tuple[str, str, str], commit_id: str, head: Head) -> Known | None:
    row = await db.fetchrow(sql.BY_ID, *key, commit_id)
    if row is None:
        return None
    return Known(head_from(SessionId(key[2]), row, head.fork, head.name), row["fingerprint"])


def _fits_batch(commits: tuple[Commit, ...]) -> bool:
    """Whether it is a single commit that continues an existing session."""
    return len(commits) == 1 and commits[0].first > 1 and commits[0].fork is None


def _batch_row(commit: Commit) -> tuple[Any, ...]:
    guard = -1 if commit.guard is None else commit.guard
    return (root_of(commit.session), commit.session, *to_row(commit), commit.snapshot, guard, commit.late)
