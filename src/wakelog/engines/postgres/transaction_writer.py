"""Stores commits that cannot go with others: each group is judged and stored in its own transaction.

These are commits that open a session or a fork, commits that belong together, those that change what is stored, and
those that a batch did not accept.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg

from wakelog.engine import Known, judge
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.connections import ConnectionPool, KeptConnection
from wakelog.engines.postgres.rows import head_from, head_from_row, to_row
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError
from wakelog.model.ids import SessionId, root_of
from wakelog.model.records import Commit, Head

RETRIES = 50
_RETRYABLE = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.UniqueViolationError)


class TransactionWriter:
    """Stores commits of one namespace. Runs on the loop of its connections."""

    insert = sql.INSERT

    def __init__(self, connections: ConnectionPool, ns: str, on: KeptConnection | None = None) -> None:
        """`on` is the connection to use; by default any of the pool."""
        self.connections = connections
        self._ns = ns
        self._on = on
        self.newest_time = 0
        """A commit is stored at a later time than this."""
        connections.on_connect = self._read_newest_time

    async def _read_newest_time(self, db: Any) -> None:
        """A new connection may be to another server whose clock is behind (feed.py)."""
        # There may be no tables yet; and a sharded server that lost a worker must still open.
        away = (asyncpg.UndefinedTableError, asyncpg.InternalServerError, asyncpg.PostgresConnectionError)
        with contextlib.suppress(*away):
            self.newest_time = max(self.newest_time, await db.fetchval(sql.NEWEST_TIME, self._ns) or 0)

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
                head = await self.connections.ask(transact, is_append=True, on=self._on)
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
        await db.execute(self.insert, *key, *to_row(commit), self.newest_time)
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
