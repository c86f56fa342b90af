"""Appending to a sharded server: each fork tree has a line of its own, and each worker a gate.

A statement that is about two workers waits for the slower one, so nothing is sent together. An append is one statement
that the coordinator sends on to one worker. At most `GATE` of them are under way to a worker: one that is lost, or that
hangs, holds up its own sessions and leaves connections for the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

import asyncpg
import msgspec

from wakelog.engine import head_after
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.append_queue import AppendQueue, BatchedAppend
from wakelog.engines.postgres.connections import ConnectionPool
from wakelog.engines.postgres.errors import translated
from wakelog.engines.postgres.rows import head_from_row
from wakelog.errors import UnavailableError
from wakelog.model.ids import SessionId, root_of
from wakelog.model.records import Commit, ForkPoint, Head

GATE = 8
CONNECTIONS = 32
UNNAMED_S = 60.0
"""How long a session without a name is taken to have none: another process may give it one."""
KNOWN_MAX = 10_000
GREET_S = 2.0


class RoutedAppends(AppendQueue):
    """The lines of appends of one engine on a sharded server. Lives on the loop."""

    insert = sql.ROUTED_INSERT

    def __init__(self, connections: ConnectionPool, ns: str) -> None:
        """The connections are for appends alone, and are closed with the lines."""
        super().__init__(connections, ns)
        self._lines: dict[str, deque[BatchedAppend]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._workers: dict[str, str] = {}
        self._about: dict[SessionId, tuple[ForkPoint | None, str, float]] = {}

    async def _greet(self, db: Any) -> None:
        """The newest time is asked of all workers: without one of them it stays what it was."""
        with contextlib.suppress(asyncpg.PostgresError, TimeoutError):
            self._floor = max(self._floor, await db.fetchval(sql.NEWEST_TIME, self._ns, timeout=GREET_S) or 0)

    def put(self, pending: BatchedAppend) -> None:
        root = root_of(pending.commits[0].session)
        if root in self._lines:
            self._lines[root].append(pending)
            return
        self._lines[root] = deque([pending])
        task = asyncio.get_running_loop().create_task(self._work_through(root))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._connections.close()

    async def _work_through(self, root: str) -> None:
        line = self._lines[root]
        try:
            gate = await self._gate(root)
            while line:
                pending = line.popleft()
                async with gate:
                    await (self._settle(pending) if pending.row is None else self._send_one(pending))
        finally:
            del self._lines[root]
            for pending in line:  # only when this task was cancelled: the engine is being closed
                pending.refuse(UnavailableError("the store was closed", kind="store-closed"))

    async def _send_one(self, pending: BatchedAppend) -> None:
        commit = pending.commits[0]
        statement, values = self._append_of(commit, pending)
        try:
            about = await self._known_about(commit.session)
            stored = None
            if about is not None:
                stored = await self._connections.ask(
                    lambda db: db.fetchrow(statement, self._ns, *values, self._floor), is_append=True
                )
        except (asyncpg.DataError, asyncpg.FeatureNotSupportedError):
            stored = None  # it cannot be stored, or not in one statement: which of them shows the careful way
        except Exception as exc:
            pending.refuse(translated(exc))
            return
        if stored is None or about is None:
            await self._settle(pending)
        else:
            pending.give(msgspec.structs.replace(head_after(commit), fork=about[0], name=about[1]))

    def _append_of(self, commit: Commit, pending: BatchedAppend) -> tuple[str, tuple[Any, ...]]:
        assert pending.row is not None
        *values, snapshot, guard, late = pending.row
        if commit.fingerprint or snapshot is not None:
            return sql.ROUTED_APPEND_WHOLE, (*values, snapshot, guard, late)
        return sql.ROUTED_APPEND, (*values, guard, late)

    async def _store_one(self, db: Any, commit: Commit) -> Head:
        held = commit.fork.parent if commit.fork is not None else commit.session
        await db.execute(sql.TOUCH, self._ns, root_of(held), held)
        return await super()._store_one(db, commit)

    async def _gate(self, root: str) -> asyncio.Semaphore:
        """That of the worker that has a tree. A tree that was moved meanwhile shares another's gate, no more."""
        worker = self._workers.get(root)
        if worker is None:
            with contextlib.suppress(UnavailableError):
                worker = await self._connections.ask(lambda db: db.fetchval(sql.WORKER, root))
            worker = worker or ""
            _keep(self._workers, root, worker)
        return self._gates.setdefault(worker, asyncio.Semaphore(GATE))

    async def _known_about(self, session: SessionId) -> tuple[ForkPoint | None, str] | None:
        """Where a session was forked, which stays so, and its name; None when there is no such session."""
        now = asyncio.get_running_loop().time()
        fork, name, until = self._about.get(session, (None, "", 0.0))
        if now >= until:
            key = (self._ns, root_of(session), session)
            row = await self._connections.ask(lambda db: db.fetchrow(sql.HEAD, *key))
            if row is None:
                return None
            head = head_from_row(row)
            fork, name = head.fork, head.name
            _keep(self._about, session, (fork, name, float("inf") if name else now + UNNAMED_S))
        return fork, name

    def forget(self, session: SessionId) -> None:
        """Its name was given or taken away by this process."""
        self._about.pop(session, None)


def _keep(known: dict[Any, Any], key: object, value: object) -> None:
    if len(known) >= KNOWN_MAX:
        known.clear()
    known[key] = value
