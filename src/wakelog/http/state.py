"""The state of a running server: settings, namespaces, keys, threads, and who is waiting."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from wakelog.errors import NotAllowedError, WakelogError
from wakelog.http.append_queue import CommitQueue
from wakelog.http.guards import LOOPBACK, ConnectionCount, HostGuard, Rates
from wakelog.http.keys import ANY, PREFIX, Key, Scope, make_key
from wakelog.http.metrics import FleetMetrics, Metrics
from wakelog.http.namespaces import Namespace, NamespaceStores
from wakelog.http.notifications import Notifications
from wakelog.http.shares import Requester, Share, ThreadQueue
from wakelog.log.append import Clock, now_us
from wakelog.web.entry import Tickets

T = TypeVar("T")

FAILURES_PER_S, FAILURES_BURST = 2.0, 50.0
"""How often one address may send an invalid key."""
SPARE_THREADS = 4
"""Threads for the server itself: finding keys, opening namespaces, sending files."""


class Settings(msgspec.Struct, frozen=True):
    """The settings of a server."""

    url: str
    key_file: str = ""
    """Where the keys are; by default beside the store."""
    host_names: tuple[str, ...] = LOOPBACK
    trusted_origins: tuple[str, ...] = ()
    body_max: int = 64 << 20
    bundle_max: int = 256 << 20
    """The largest bundle, packed or unpacked."""
    rate: float = 1000.0
    """Requests a second for each key; 0: no limit."""
    answer_s: float = 30.0
    """How long a verb may take. After that the caller gets `answer-unknown`."""
    body_s: float = 30.0
    """How long a request's body may take to arrive, plus one second for each 64 KB received."""
    stall_s: float = 60.0
    """A watcher that reads nothing for this long is disconnected."""
    keepalive_s: float = 15.0
    threads: int = 32
    pending_max: int = 512
    """Requests running or waiting for a thread. As many more may be sending their body."""
    bodies_max: int = 512 << 20
    """Bytes of bodies in memory."""
    watchers_max: int = 1000
    """Open tails and waits."""
    connections_max: int = 500
    """Open connections of one address; from this machine eight times as many. 0: no limit."""


class Server:
    """One running server."""

    def __init__(
        self, settings: Settings, *, clock: Clock = now_us, launch: bool = True, launch_scope: Scope = "admin"
    ) -> None:
        """With `launch`, this process has a key of its own that is stored nowhere: `launch_token`."""
        self.settings = settings
        self.clock = clock
        self.spaces = NamespaceStores(settings.url)
        made = make_key("launch", launch_scope, (ANY,), now=clock()) if launch else None
        self.launch_token = made[1] if made else ""
        self.keys = self.spaces.keys(Path(settings.key_file) if settings.key_file else None, made)
        self._key_refresh: asyncio.Future[None] | None = None
        self.host_guard = HostGuard(settings.host_names, settings.trusted_origins)
        self.rates = Rates(settings.rate, 2 * settings.rate)
        self.failures = Rates(FAILURES_PER_S, FAILURES_BURST)
        self.connections = ConnectionCount(settings.connections_max)
        self.metrics = Metrics()
        self.fleet = FleetMetrics(self.spaces, clock)
        self.tickets = Tickets()
        self.imports = threading.Lock()
        """Held while a bundle is unpacked, because even a small one may unpack to `bundle_max` in memory."""
        self.executor = ThreadPoolExecutor(settings.threads + SPARE_THREADS, thread_name_prefix="verb")
        self.is_stopping = False
        most = settings.pending_max
        self.slots = Share(most, "requests running")
        self.arrivals = Share(most, "requests still arriving")
        self.bodies = Share(max(settings.bodies_max, 2 * settings.body_max), "bytes of requests in memory")
        self.tails = Share(settings.watchers_max, "tails or waits")
        self._threads = ThreadQueue(settings.threads)
        self._hubs: dict[str, Notifications] = {}
        self._queues: dict[str, CommitQueue] = {}

    def require_keys(self) -> None:
        """Raises if there is no key at all, so that every request would be refused."""
        if not self.launch_token and not self.keys.all():
            raise NotAllowedError(
                "the server would refuse every request: there is no key",
                kind="no-keys",
                hint="create one: wakelog key new NAME",
            )

    def run(self, function: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs a blocking function in a thread."""
        return asyncio.get_running_loop().run_in_executor(self.executor, functools.partial(function, *args))

    async def work(self, who: Requester, function: Callable[..., T], *args: object) -> T:
        """Like `run`, but limited to the requester's share of threads; beyond that it waits. If the caller stops
        waiting, a function that has started runs to its end and keeps its thread until then."""
        await self._threads.enter(who)
        try:
            work = self.run(function, *args)
        except BaseException:
            self._threads.leave(who)
            raise
        work.add_done_callback(lambda _: self._threads.leave(who))
        return await asyncio.shield(work)

    @property
    def watchers(self) -> int:
        return self.tails.used

    def commit_queue(self, space: Namespace) -> CommitQueue:
        """The queue of commits for a namespace. Called on the event loop."""
        queue = self._queues.get(space.name)
        if queue is None:
            queue = self._queues[space.name] = CommitQueue(space.checker, space.name, asyncio.get_running_loop())
        return queue

    def hub(self, space: Namespace) -> Notifications:
        """The notifications of a namespace. Called on the event loop."""
        hub = self._hubs.get(space.name)
        if hub is None:
            hub = self._hubs[space.name] = Notifications(space, asyncio.get_running_loop())
        return hub

    async def refresh_keys(self, token: str) -> None:
        """Reads keys that were made or revoked elsewhere, if it is time to. Concurrent requests share one read."""
        arrived = time.monotonic()
        while self.keys.needs_refresh(token, arrived):
            if self._key_refresh is None or self._key_refresh.done():
                self._key_refresh = self.run(self.keys.refresh)
            await asyncio.shield(self._key_refresh)

    async def is_valid(self, key: Key) -> bool:
        """Whether a key found before is still valid. For long streams."""
        await self.refresh_keys(f"{PREFIX}_{key.id}_")
        return self.keys.is_valid(key, self.clock())

    def stop(self) -> None:
        """Ends tails and waits. Running requests finish."""
        self.is_stopping = True
        for hub in self._hubs.values():
            hub.close()

    def close(self) -> None:
        """Releases everything. No request may be running any more."""
        self.stop()
        for hub in self._hubs.values():
            hub.join_thread()
        for queue in self._queues.values():
            queue.close()
        self.executor.shutdown(wait=True)
        with contextlib.suppress(WakelogError):
            self.keys.note_use()
        self.spaces.close()
