"""What a running server holds: its settings, its namespaces and keys, its threads, and who is waiting."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from wakelog.errors import WakelogError
from wakelog.http.guards import LOOPBACK, Doors, Rates
from wakelog.http.hub import Hub
from wakelog.http.keys import ANY, PREFIX, Key, make_key
from wakelog.http.lane import Lane
from wakelog.http.metrics import Metrics
from wakelog.http.spaces import Space, Spaces
from wakelog.log.appending import Clock, now_us

T = TypeVar("T")

FAILURES_PER_S, FAILURES_BURST = 2.0, 50.0
"""How often one address may come with a key that is not valid."""


class Settings(msgspec.Struct, frozen=True):
    """What whoever starts a server may choose."""

    url: str
    key_file: str = ""
    """Where the keys are; by default beside the store."""
    host_names: tuple[str, ...] = LOOPBACK
    trusted_origins: tuple[str, ...] = ()
    body_max: int = 64 << 20
    bundle_max: int = 512 << 20
    rate: float = 1000.0
    """Requests a second for each key; 0: no limit."""
    answer_s: float = 30.0
    """How long a verb may take before its caller is told that the answer is unknown."""
    body_s: float = 30.0
    """How long a request's body may take to arrive."""
    stall_s: float = 60.0
    """How long a watcher may not read before it is cut off."""
    keepalive_s: float = 15.0
    threads: int = 32
    pending_max: int = 512
    """Requests at work or waiting for a thread."""
    watchers_max: int = 1000
    """Open tails, of all keys together."""


class Server:
    """One running server."""

    def __init__(self, settings: Settings, *, clock: Clock = now_us, launch: bool = True) -> None:
        """With `launch`, there is a key for this process only: `launch_token`."""
        self.settings = settings
        self.clock = clock
        self.spaces = Spaces(settings.url)
        made = make_key("launch", "admin", (ANY,), now=clock()) if launch else None
        self.launch_token = made[1] if made else ""
        self.keys = self.spaces.keys(Path(settings.key_file) if settings.key_file else None, made)
        self._looking: asyncio.Future[None] | None = None
        self.doors = Doors(settings.host_names, settings.trusted_origins)
        self.rates = Rates(settings.rate, 2 * settings.rate)
        self.failures = Rates(FAILURES_PER_S, FAILURES_BURST)
        self.metrics = Metrics()
        self.executor = ThreadPoolExecutor(settings.threads, thread_name_prefix="verb")
        self.is_stopping = False
        self.pending = 0
        self.watchers = 0
        self._hubs: dict[str, Hub] = {}
        self._lanes: dict[str, Lane] = {}

    def run(self, function: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs something that blocks in a thread."""
        return asyncio.get_running_loop().run_in_executor(self.executor, functools.partial(function, *args))

    def lane(self, space: Space) -> Lane:
        """The line of commits to be stored in a space. Called on the event loop."""
        lane = self._lanes.get(space.name)
        if lane is None:
            lane = self._lanes[space.name] = Lane(space.taking, space.name, asyncio.get_running_loop())
        return lane

    def hub(self, space: Space) -> Hub:
        """The news of a space. Called on the event loop."""
        hub = self._hubs.get(space.name)
        if hub is None:
            hub = self._hubs[space.name] = Hub(space, asyncio.get_running_loop())
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
