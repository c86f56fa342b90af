"""Tells other processes about stored appends, and wakes the threads that wait for them.

Nothing depends on a notification: it only shortens the wait between two polls. So sending one may fail, and listening
too. One connection sends and one listens, both outside the pool, because they stay in use.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from wakelog.engines.loop_thread import LoopThread
from wakelog.engines.news_waiters import NewsWaiters
from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.connections import ConnectionPool

CHANNEL = "wakelog"
NOTIFY_S = 0.005
BUSY_S = 0.025
"""The pause between two notifications while appends go on: each costs as much as a small append."""


class AppendNotifications:
    """The notifications of one namespace. Runs on the loop, except for waiting and `announce`."""

    def __init__(self, loop: LoopThread, connections: ConnectionPool, ns: str) -> None:
        self._loop, self._connections, self._ns = loop, connections, ns
        self.waiters = NewsWaiters()
        self._listener: Any = None
        self._listening = asyncio.Lock()
        self._notifier: Any = None
        self._notifying: asyncio.Task[None] | None = None
        self._is_due = False

    def announce(self) -> None:
        """Called by any thread when something was stored."""
        self.waiters.wake_all()
        if not self._is_due:
            self._is_due = True
            with contextlib.suppress(RuntimeError):  # the loop has stopped
                self._loop.soon(self._start_notifying)

    def _start_notifying(self) -> None:
        if self._notifying is None or self._notifying.done():
            self._notifying = asyncio.get_running_loop().create_task(self._notify())

    async def _notify(self) -> None:
        """Notifies other processes, once for everything stored meanwhile. It need not be durable, which saves the
        server a sync."""
        pause = NOTIFY_S
        while self._is_due:
            await asyncio.sleep(pause)
            pause = BUSY_S
            self._is_due = False
            with contextlib.suppress(Exception):
                if self._notifier is None or self._notifier.is_closed():
                    self._notifier = await self._connections.connect(synchronous_commit="off")
                await self._notifier.execute(sql.NOTIFY, CHANNEL, self._ns)

    @property
    def is_listening(self) -> bool:
        return self._listener is not None and not self._listener.is_closed()

    async def listen(self) -> None:
        async with self._listening:  # one connection serves all waiting threads
            if self.is_listening:
                return
            connection = await self._connections.connect()
            try:
                await connection.add_listener(CHANNEL, lambda *_: self.waiters.wake_all())
            except BaseException:
                connection.terminate()
                raise
            self._listener = connection

    async def stop_sending(self) -> None:
        if self._notifying is not None:
            self._notifying.cancel()
            await asyncio.wait({self._notifying})

    async def disconnect(self) -> None:
        for connection in (self._listener, self._notifier):
            if connection is not None:
                with contextlib.suppress(Exception):  # the driver aborts what it cannot close
                    await connection.close(timeout=1)
