"""Appending in batches: one statement and one sync for many sessions, with one commit of each.

A thread that asks for a result while nobody is sending becomes the leader: it sends everything that waits on the lane's
connection, and reads the answer in its own thread (group_commit.py, driven_loop.py). So a lone caller involves no other
thread, and under load the appends that gather during one round trip share the next.

One commit alone is the usual case, and has a statement of its own, which costs the server half as much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import asyncpg
import msgspec

from wakelog.engine import head_after
from wakelog.engines.driven_loop import DrivenLoop
from wakelog.engines.group_commit import Group, GroupedAppend
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.connections import ConnectionPool
from wakelog.engines.postgres.errors import translate_error
from wakelog.engines.postgres.rows import fork_from, to_row
from wakelog.engines.postgres.transaction_writer import TransactionWriter
from wakelog.model.ids import SessionId, root_of
from wakelog.model.records import Commit, ForkPoint

FORKS_MAX = 10_000
IDLE_S = 1.0
"""After this long without an append, look first whether the connection was closed meanwhile."""


class CommitRow(msgspec.Struct, frozen=True, eq=False):
    """A commit and its row in a batch; None if it must be stored alone."""

    commit: Commit
    row: tuple[Any, ...] | None = None


LaneAppend = GroupedAppend[CommitRow]


class AppendLane:
    """The appends of one engine, and the connection on which they are sent."""

    def __init__(
        self, url: str, ns: str, *, patience_s: float, check: Callable[[], None], on_stored: Callable[[], None]
    ) -> None:
        """`check` raises when the store is closed. `on_stored` is called after each batch, in the leader's thread."""
        self._url, self._ns, self._patience_s = url, ns, patience_s
        self._on_stored = on_stored
        self._forks: dict[SessionId, ForkPoint] = {}
        self._group = Group(self._write, check)
        self._connect()

    def _connect(self) -> None:
        """Nothing is sent yet: the first append opens the connection."""
        self._loop = DrivenLoop("wakelog postgres appends")
        self.connections = ConnectionPool(self._url, patience_s=self._patience_s, size=1)
        self._loop.run(self.connections.open())
        self._kept = self.connections.keep()
        self._writer = TransactionWriter(self.connections, self._ns, self._kept)
        self._used_at = 0.0
        self._is_cut_short = False
        """Whether an interrupt ended the last batch, perhaps in the middle of the driver's work."""

    def _reconnect(self) -> None:
        self._loop.abort(self.connections.abort)
        self._connect()

    def submit(self, commits: tuple[Commit, ...]) -> LaneAppend:
        """Packed here, so that other threads can pack theirs while the leader waits."""
        if fits_batch(commits):
            return self._group.submit((CommitRow(commits[0], batch_row(commits[0])),))
        return self._group.submit(tuple(map(CommitRow, commits)))

    def close(self) -> None:
        """Closes the lane after the current batch. Appends still in the queue fail: nothing was sent."""
        if not self._group.is_mine:  # in the middle of an append, the connection goes with the process
            self._group.alone(self._disconnect)

    def _disconnect(self) -> None:
        self._loop.run(self._release())
        self._loop.close()

    async def _release(self) -> None:
        await self._kept.release()
        await self.connections.close()

    def _write(self, batch: list[LaneAppend]) -> None:
        if self._is_cut_short:  # and a second interrupt came before it was mended
            self._reconnect()
        self._is_cut_short = True
        try:
            self._loop.run(self._send_all(batch))
        except Exception:
            self._is_cut_short = False
            raise
        except BaseException:
            self._reconnect()
            raise
        self._is_cut_short = False
        self._on_stored()

    async def _send_all(self, batch: list[LaneAppend]) -> None:
        if self._loop.time() - self._used_at > IDLE_S:
            await asyncio.sleep(0)  # what arrived on the socket is seen by then
        left = batch
        while left:
            now, left = _one_of_each_session(left)
            await self._send([each for each in now if each.commits[0].row is not None])
            for each in now:
                if each.head is None and each.error is None:
                    await self._store_alone(each)
        self._used_at = self._loop.time()

    async def _send(self, batch: list[LaneAppend]) -> None:
        """Sets the heads of those that were stored, or the error of all. Others are to be stored alone."""
        if not batch:
            return
        rows: list[Any] = [each.commits[0].row for each in batch]
        is_single = len(batch) == 1 and self._is_simple(batch[0].commits[0].commit)
        try:
            found = await (self._send_one(rows[0]) if is_single else self._send_many(rows))
        except asyncpg.DataError:
            return  # one of them cannot be stored; storing them one by one finds it
        except Exception as exc:
            for each in batch:
                each.fail(copy(translate_error(exc)), exc)
            return
        for each in batch:
            commit = each.commits[0].commit
            if (row := found.get(commit.session)) is not None:
                fork = self._forks.get(commit.session) if is_single else self._fork_of(commit.session, row)
                each.head = msgspec.structs.replace(head_after(commit), fork=fork, name=row["name"])

    def _is_simple(self, commit: Commit) -> bool:
        is_known = commit.session in self._forks or root_of(commit.session) == commit.session
        return is_known and not commit.fingerprint and commit.snapshot is None

    async def _send_one(self, row: tuple[Any, ...]) -> dict[str, Any]:
        *values, _snapshot, guard, late = row

        def append(db: Any) -> Any:  # connecting may have changed the newest time
            return db.fetchrow(sql.APPEND_ONE, self._ns, *values, guard, late, self._writer.newest_time)

        stored = await self.connections.ask(append, is_append=True, on=self._kept)
        return {} if stored is None else {row[1]: stored}

    async def _send_many(self, rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        columns = [list(column) for column in zip(*rows, strict=True)]

        def append(db: Any) -> Any:
            return db.fetch(sql.APPEND, self._ns, *columns, self._writer.newest_time)

        stored = await self.connections.ask(append, is_append=True, on=self._kept)
        return {row["session"]: row for row in stored}

    def _fork_of(self, session: SessionId, row: Any) -> ForkPoint | None:
        """A session's fork point. It never changes, and the statement for one commit does not tell it."""
        fork = fork_from(row)
        if fork is not None:
            if len(self._forks) >= FORKS_MAX:
                self._forks.clear()
            self._forks[session] = fork
        return fork

    async def _store_alone(self, pending: LaneAppend) -> None:
        try:
            pending.head = await self._writer.store(tuple(each.commit for each in pending.commits))
        except Exception as exc:
            pending.fail(translate_error(exc), exc.__cause__)


def _one_of_each_session(batch: list[LaneAppend]) -> tuple[list[LaneAppend], list[LaneAppend]]:
    """Those to send now, and the others, in their order."""
    if len(batch) == 1:
        return batch, []
    now: list[LaneAppend] = []
    left: list[LaneAppend] = []
    taken: set[SessionId] = set()
    for each in batch:
        sessions = {packed.commit.session for packed in each.commits}
        (left if sessions & taken else now).append(each)
        taken |= sessions
    return now, left


def fits_batch(commits: tuple[Commit, ...]) -> bool:
    """Whether it is a single commit that continues an existing session."""
    return len(commits) == 1 and commits[0].first > 1 and commits[0].fork is None


def batch_row(commit: Commit) -> tuple[Any, ...]:
    guard = -1 if commit.guard is None else commit.guard
    return (root_of(commit.session), commit.session, *to_row(commit), commit.snapshot, guard, commit.late)
