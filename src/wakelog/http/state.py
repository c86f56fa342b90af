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

from wakelog.errors import WakelogError
from wakelog.http.append_queue import CommitQueue
from wakelog.http.guards import LOOPBACK, ConnectionCount, HostGuard, Rates
from wakelog.http.keys import ANY, PREFIX, Key, Scope, make_key
from wakelog.http.metrics import FleetLook, Metrics
from wakelog.http.namespaces import Namespace, NamespaceStores
from wakelog.http.notifications import Notifications
from wakelog.http.shares import Requester, Share, ThreadQueue
from wakelog.log.append import Clock, now_us
from wakelog.web.entry import Tickets

T = TypeVar("T")

FAILURES_PER_S, FAILURES_BURST = 2.0, 50.0
"""How often one address may come with a key that is not valid."""
SPARE_THREADS = 4
"""For the server's own: finding keys, opening namespaces, sending files."""


class Settings(msgspec.Struct, frozen=True):
    """What whoever starts a server may choose."""

    url: str
    key_file: str = ""
    """Where the keys are; by default beside the store."""
    host_names: tuple[str, ...] = LOOPBACK
    trusted_origins: tuple[str, ...] = ()
    body_max: int = 64 << 20
    bundle_max: int = 256 << 20
    """Of a bundle, as it comes and when it is unpacked."""
    rate: float = 1000.0
    """Requests a second for each key; 0: no limit."""
    answer_s: float = 30.0
    """How long a verb may take before its caller is told that the answer is unknown."""
    body_s: float = 30.0
    """How long a request's body may take to arrive; for each 64 KB of it that came, a second more."""
    stall_s: float = 60.0
    """How long a watcher may not read before it is cut off."""
    keepalive_s: float = 15.0
    threads: int = 32
    pending_max: int = 512
    """Requests at work or waiting for a thread; as many more may be sending their body."""
    bodies_max: int = 512 << 20
    """Bytes of bodies in memory."""
    watchers_max: int = 1000
    """Open tails, and others who wait for news."""
    connections_max: int = 500
    """Open connections of one address; from this machine eight times as many. 0: no limit."""


class Server:
    """One running server."""

    def __init__(
        self, settings: Settings, *, clock: Clock = now_us, launch: bool = True, launch_scope: Scope = "admin"
    ) -> None:
        """With `launch`, there is a key for this process only: `launch_token`."""
        self.settings = settings
        self.clock = clock
        self.spaces = NamespaceStores(settings.url)
        made = make_key("launch", launch_scope, (ANY,), now=clock()) if launch else None
        self.launch_token = made[1] if made else ""
        self.keys = self.spaces.keys(Path(settings.key_file) if settings.key_file else None, made)
        self._looking: asyncio.Future[None] | None = None
        self.doors = HostGuard(settings.host_names, settings.trusted_origins)
        self.rates = Rates(settings.rate, 2 * settings.rate)
        self.failures = Rates(FAILURES_PER_S, FAILURES_BURST)
        self.connections = ConnectionCount(settings.connections_max)
        self.metrics = Metrics()
        self.fleet = FleetLook(self.spaces, clock)
        self.tickets = Tickets()
        self.imports = threading.Lock()
        """One bundle at a time is unpacked: in memory, a small one may be as large as `bundle_max`."""
        self.executor = ThreadPoolExecutor(settings.threads + SPARE_THREADS, thread_name_prefix="verb")
        self.is_stopping = False
        most = settings.pending_max
        self.slots = Share(most, "requests at work")
        self.arrivals = Share(most, "requests that are still coming in")
        self.bodies = Share(max(settings.bodies_max, 2 * settings.body_max), "bytes of requests in memory")
        self.tails = Share(settings.watchers_max, "tails or waits")
        self._threads = ThreadQueue(settings.threads)
        self._hubs: dict[str, Notifications] = {}
        self._lanes: dict[str, CommitQueue] = {}

    def run(self, function: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs something that blocks in a thread."""
        return asyncio.get_running_loop().run_in_executor(self.executor, functools.partial(function, *args))

    async def work(self, who: Requester, function: Callable[..., T], *args: object) -> T:
        """The same in somebody's name: nobody has more threads than their share, whoever asks for more waits. If the
        caller stops waiting, what has begun goes on, and keeps its thread until it ends."""
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

    def lane(self, space: Namespace) -> CommitQueue:
        """The line of commits to be stored in a space. Called on the event loop."""
        lane = self._lanes.get(space.name)
        if lane is None:
            lane = self._lanes[space.name] = CommitQueue(space.admission, space.name, asyncio.get_running_loop())
        return lane

    def hub(self, space: Namespace) -> Notifications:
        """The news of a space. Called on the event loop."""
        hub = self._hubs.get(space.name)
        if hub is None:
            hub = self._hubs[space.name] = Notifications(space, asyncio.get_running_loop())
        return hub

    async def look_for_keys(self, token: str) -> None:
        """Learns of keys that were made or revoked elsewhere, if it is time to. All who wait for it share one look."""
        came = time.monotonic()
        while self.keys.is_old(token, came):
            if self._looking is None or self._looking.done():
                self._looking = self.run(self.keys.look)
            await asyncio.shield(self._looking)

    async def is_valid(self, key: Key) -> bool:
        """Whether a key found before still is one: for answers that go on for long."""
        await self.look_for_keys(f"{PREFIX}_{key.id}_")
        return self.keys.is_valid(key, self.clock())

    def stop(self) -> None:
        """Tells everybody who waits that it is over. Requests at work go on to their end."""
        self.is_stopping = True
        for hub in self._hubs.values():
            hub.close()

    def close(self) -> None:
        """Lets go of everything; nothing may be at work any more."""
        self.stop()
        for hub in self._hubs.values():
            hub.join_thread()
        for lane in self._lanes.values():
            lane.close()
        self.executor.shutdown(wait=True)
        with contextlib.suppress(WakelogError):
            self.keys.note_use()
        self.spaces.close()
