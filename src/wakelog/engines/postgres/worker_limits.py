"""How many statements of one process may be at work on each worker of a sharded server.

A worker that is lost, or that hangs, keeps its statements waiting, and each holds a connection. With a limit for each
worker it cannot take the connections that sessions on other workers need. What asks all workers has a limit of its own,
since it waits for the slowest.
"""

from __future__ import annotations

import asyncio
from typing import Any

from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.connections import ConnectionPool
from wakelog.errors import UnavailableError

KNOWN_MAX = 10_000


class WorkerLimits:
    """The limits of one connection pool. Runs on the loop."""

    def __init__(self, connections: ConnectionPool, per_worker: int) -> None:
        self._connections, self._per_worker = connections, per_worker
        self._limits: dict[str, asyncio.Semaphore] = {}
        self.workers: dict[str, str] = {}
        """The root of a fork tree, or a name → the worker that has it."""

    async def of(self, root: str) -> asyncio.Semaphore:
        """The limit of the worker that has a tree. If the tree has moved meanwhile, it only uses another worker's
        limit."""
        return await self._find(root, sql.WORKER)

    async def of_name(self, name: str) -> asyncio.Semaphore:
        """The limit of the worker that has a name."""
        return await self._find(name, sql.NAME_WORKER)

    async def _find(self, key: str, statement: str) -> asyncio.Semaphore:
        worker = self.workers.get(key)
        if worker is None:
            try:
                worker = await self._connections.ask(lambda db: db.fetchval(statement, key)) or ""
            except UnavailableError:
                return self._limit("")  # asked again next time: the answer would keep the tree at a limit of others
            cache(self.workers, key, worker)
        return self._limit(worker)

    def of_all(self) -> asyncio.Semaphore:
        """The limit of what asks all workers."""
        return self._limit("*")

    def _limit(self, worker: str) -> asyncio.Semaphore:
        return self._limits.setdefault(worker, asyncio.Semaphore(self._per_worker))


def cache(known: dict[Any, Any], key: object, value: object) -> None:
    if len(known) >= KNOWN_MAX:
        known.clear()
    known[key] = value
