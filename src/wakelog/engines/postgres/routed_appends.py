"""Appending to a sharded server: a queue for each fork tree, and a limit for each worker.

A statement about two workers waits for the slower one, so there are no batches. An append is one statement that the
coordinator passes to one worker. At most `PER_WORKER` of them run on a worker at once. So a worker that is lost, or
that hangs, holds up only its own sessions and leaves connections for the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec

from wakelog.engine import head_after
from wakelog.engines.append_answer import AppendAnswer
from wakelog.engines.loop_owner import Arrivals, store_closed
from wakelog.engines.loop_thread import LoopThread
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.append_lane import batch_row, fits_batch
from wakelog.engines.postgres.connections import ConnectionPool
from wakelog.engines.postgres.errors import closed_unanswered, is_unplanned, translate_error
from wakelog.engines.postgres.rows import head_from_row
from wakelog.engines.postgres.transaction_writer import TransactionWriter
from wakelog.engines.postgres.worker_limits import WorkerLimits, cache
from wakelog.errors import WakelogError
from wakelog.model.ids import SessionId, root_of
from wakelog.model.records import Commit, ForkPoint, Head

PER_WORKER = 8
CONNECTIONS = 32
UNNAMED_S = 60.0
"""How long to remember that a session has no name. Another process may give it one."""
GREET_S = 2.0
DRAIN_S = 5.0
"""How much longer than its patience a store that is closed waits for answers."""


class RoutedAppend(AppendAnswer):
    """A pending append."""

    def __init__(self, commits: tuple[Commit, ...], on_stored: Callable[[], None]) -> None:
        super().__init__(commits)
        self._on_stored = on_stored
        # Packed in the caller's thread, because on the loop all other appends would wait for it.
        self.row = batch_row(commits[0]) if fits_batch(commits) else None
        """Its row; None if it must be stored alone."""

    def give(self, head: Head) -> None:
        super().give(head)
        self._on_stored()


class RoutedAppends(TransactionWriter):
    """The queues of one engine's appends on a sharded server. Runs on the loop, except for `submit`."""

    insert = sql.ROUTED_INSERT

    def __init__(self, loop: LoopThread, connections: ConnectionPool, ns: str, on_stored: Callable[[], None]) -> None:
        """The connections are for appends only, and are closed by `drain`."""
        super().__init__(connections, ns)
        self.arrivals = Arrivals[RoutedAppend](loop, self._put)
        self._on_stored = on_stored
        self._queues: dict[str, deque[RoutedAppend]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.limits = WorkerLimits(connections, PER_WORKER)
        self._cached: dict[SessionId, tuple[ForkPoint | None, str, float]] = {}

    async def _read_newest_time(self, db: Any) -> None:
        """Asks all workers. If one of them is unavailable, the time stays unchanged."""
        with contextlib.suppress(asyncpg.PostgresError, TimeoutError):
            self.newest_time = max(self.newest_time, await db.fetchval(sql.NEWEST_TIME, self._ns, timeout=GREET_S) or 0)

    def submit(self, commits: tuple[Commit, ...]) -> RoutedAppend:
        """Called by any thread."""
        pending = RoutedAppend(commits, self._on_stored)
        self.arrivals.put(pending)
        return pending

    def _put(self, pending: RoutedAppend) -> None:
        root = root_of(pending.commits[0].session)
        if root in self._queues:
            self._queues[root].append(pending)
            return
        self._queues[root] = deque([pending])
        task = asyncio.get_running_loop().create_task(self._process(root))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Waits for the answers of what is queued, but not for a worker that hangs."""
        self.arrivals.take_all()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=self.connections.patience_s + DRAIN_S)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
        await self.connections.close()

    async def _process(self, root: str) -> None:
        queue = self._queues[root]
        sent: RoutedAppend | None = None
        try:
            limit = await self.limits.of(root)
            while queue:
                async with limit:
                    sent = queue.popleft()
                    await (self._store_alone(sent) if sent.row is None else self._send_one(sent))
        finally:  # something is left only if this task was cancelled, because the engine is closing
            del self._queues[root]
            if sent is not None:
                sent.refuse(closed_unanswered())
            for pending in queue:
                pending.refuse(store_closed())

    async def _send_one(self, pending: RoutedAppend) -> None:
        commit = pending.commits[0]
        statement, values = self._statement_for(commit, pending)
        try:
            found = await self._fork_and_name(commit.session)
            stored = None
            if found is not None:
                stored = await self.connections.ask(
                    lambda db: db.fetchrow(statement, self._ns, *values, self.newest_time), is_append=True
                )
        except Exception as exc:
            cause = exc.__cause__ if isinstance(exc, WakelogError) else exc
            if not isinstance(cause, asyncpg.DataError) and not (cause is not None and is_unplanned(cause)):
                pending.refuse(translate_error(exc))
                return
            stored = None  # not in one statement; storing it alone shows whether it can be stored at all
        if stored is None or found is None:
            await self._store_alone(pending)
        else:
            pending.give(msgspec.structs.replace(head_after(commit), fork=found[0], name=found[1]))

    async def _store_alone(self, pending: RoutedAppend) -> None:
        try:
            pending.give(await self.store(pending.commits))
        except Exception as exc:
            pending.refuse(translate_error(exc))

    def _statement_for(self, commit: Commit, pending: RoutedAppend) -> tuple[str, tuple[Any, ...]]:
        assert pending.row is not None
        *values, snapshot, guard, late = pending.row
        if commit.fingerprint or snapshot is not None:
            return sql.ROUTED_APPEND_WHOLE, (*values, snapshot, guard, late)
        return sql.ROUTED_APPEND, (*values, guard, late)

    async def _store_one(self, db: Any, commit: Commit) -> Head:
        held = commit.fork.parent if commit.fork is not None else commit.session
        await db.execute(sql.TOUCH, self._ns, root_of(held), held)
        return await super()._store_one(db, commit)

    async def _fork_and_name(self, session: SessionId) -> tuple[ForkPoint | None, str] | None:
        """A session's fork point, which never changes, and its name; None if there is no such session."""
        now = asyncio.get_running_loop().time()
        fork, name, until = self._cached.get(session, (None, "", 0.0))
        if now >= until:
            key = (self._ns, root_of(session), session)
            row = await self.connections.ask(lambda db: db.fetchrow(sql.HEAD, *key))
            if row is None:
                return None
            head = head_from_row(row)
            fork, name = head.fork, head.name
            cache(self._cached, session, (fork, name, float("inf") if name else now + UNNAMED_S))
        return fork, name

    def forget(self, session: SessionId) -> None:
        """Called when this process changed the session's name."""
        self._cached.pop(session, None)
