"""Asking a server until it answers, for a while.

Every statement of this engine may be sent twice: a commit is stored once however often it is sent, and the others
change nothing or the same thing again. So a connection that is lost, a server that restarts or fails over, and one
without a free connection are waited for, up to `patience_s`. What is still without an answer then is told; and if
something was sent and never answered, then as unknown."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.errors import PoolFullError, is_passing, is_unknown, translated
from wakelog.errors import UnavailableError, WakelogError

T = TypeVar("T")

PATIENCE_S = 15.0
CONNECT_S = 10.0
COMMAND_S = 60.0
POOL_MAX = 8
_PAUSE_S, _PAUSE_MAX_S = 0.02, 0.5


class ConnectionPool:
    """The connections of one engine, and the patience with them. Lives on the loop."""

    def __init__(
        self, url: str, *, patience_s: float = PATIENCE_S, size: int = POOL_MAX, is_sharded: bool = False
    ) -> None:
        self.patience_s = patience_s
        self.is_sharded = is_sharded
        """Whether there are workers behind the server, which may be lost while it lives."""
        self._size = size
        self.acquire_s = max(patience_s, CONNECT_S)
        self.asked_again = 0
        """How often something was sent or tried once more."""
        self.greet: Callable[[Any], Awaitable[None]] | None = None
        """Called with each new connection before it is used."""
        self._url = url
        self._hosts = each_host(url)
        self._pool: Any = None
        self._is_closed = False

    async def open(self) -> None:
        """Nothing is connected yet: that is done when something is asked."""
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._size,
            command_timeout=COMMAND_S,
            connect=self._connect,
            init=self._init,
            reset=_leave,
        )

    async def _init(self, db: Any) -> None:
        for setting in sql.SETTINGS:
            with contextlib.suppress(asyncpg.PostgresError):  # not every engine that speaks the protocol has it
                await db.execute(setting)
        if self.greet is not None:
            await self.greet(db)

    async def ask(
        self,
        work: Callable[[Any], Awaitable[T]],
        *,
        is_append: bool = False,
        patience_s: float | None = None,
        on: KeptConnection | None = None,
    ) -> T:
        """Does something with a connection, again if that may help. `work` must be such that twice is as once. `on` is
        a connection that its keeper alone uses."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + (self.patience_s if patience_s is None else patience_s)
        pause, sent = _PAUSE_S, False
        while True:
            begun = False
            try:
                async with on or self._connection() as db:
                    begun = True
                    return await work(db)
            except (WakelogError, asyncpg.DataError, asyncpg.FeatureNotSupportedError):
                raise  # judged: this is the answer, whatever became of an earlier try
            except Exception as exc:
                sent = sent or (is_append and begun and is_unknown(exc, is_sharded=self.is_sharded))
                left = deadline - clock()
                if left <= 0 or self._is_closed or not is_passing(exc, is_sharded=self.is_sharded):
                    raise translated(exc, is_unknown=sent) from exc
            self.asked_again += 1
            await asyncio.sleep(min(left, random.uniform(pause / 2, pause)))
            pause = min(2 * pause, _PAUSE_MAX_S)

    def keep(self) -> KeptConnection:
        """A connection for one who asks one thing after another. To be given back in the end."""
        return KeptConnection(self._connection)

    def _connection(self) -> Any:
        if self._is_closed:
            raise UnavailableError("the store was closed", kind="store-closed", hint="open it again")
        return _Waiting(self._pool, self._size, self.acquire_s)

    async def connect(self, **settings: str) -> Any:
        """A connection of its own, for what lasts."""
        return await self._connect(server_settings=settings)

    async def _connect(self, _url: str = "", **options: Any) -> Any:
        """To the host that answered last, or else the next: the driver's own time limit is one for all of them, and a
        machine that is gone without a word would use it up."""
        within_s = CONNECT_S if len(self._hosts) == 1 else CONNECT_S / 3
        for left in reversed(range(len(self._hosts))):
            try:
                return self._if_open(await asyncpg.connect(self._hosts[0], timeout=within_s, **options))
            except Exception as exc:
                if not left or not is_passing(exc):
                    raise
                self._hosts.append(self._hosts.pop(0))
        raise AssertionError("a URL has a host")

    def _if_open(self, db: Any) -> Any:
        """A connection, unless the store was closed while it was made."""
        if not self._is_closed:
            return db
        db.terminate()
        raise UnavailableError("the store was closed meanwhile", kind="store-closed", hint="open it again")

    async def close(self) -> None:
        self._is_closed = True
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()


def each_host(url: str) -> list[str]:
    """The URL of each host that a URL names."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


async def _leave(db: Any) -> None:
    """A connection goes back to the pool as it is: nothing is left open on it, and asking the server to forget what
    was set would cost each statement a second round trip."""


class KeptConnection:
    """A connection that stays with its keeper until something goes wrong with it: taking one from the pool for each
    statement costs a good part of a round trip."""

    def __init__(self, take: Callable[[], Any]) -> None:
        self._take = take
        self._held: Any = None
        self._db: Any = None

    async def __aenter__(self) -> Any:
        if self._db is not None and self._is_lost():
            await self.give_back()
        if self._db is None:
            self._held = self._take()
            self._db = await self._held.__aenter__()
        return self._db

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self.give_back(kind)

    def _is_lost(self) -> bool:
        try:
            return bool(self._db.is_closed())
        except asyncpg.InterfaceError:
            return True  # the pool has noticed, and has taken it back

    async def give_back(self, kind: type[BaseException] | None = None) -> None:
        """`kind` is what went wrong with it."""
        if self._db is not None:
            self._db = None
            await self._held.__aexit__(kind, None, None)


class _Waiting:
    """A connection of the pool while it is used; an error of its own when there was none to be had in time."""

    def __init__(self, pool: Any, size: int, within_s: float) -> None:
        self._pool, self._size, self._within_s = pool, size, within_s
        self._db: Any = None

    async def __aenter__(self) -> Any:
        try:
            self._db = await self._pool.acquire(timeout=self._within_s)
        except TimeoutError as exc:
            if self._pool.get_size() >= self._size and not self._pool.get_idle_size():
                raise PoolFullError(
                    f"all {self._size} connections of this process were in use for {self._within_s:g} s"
                ) from exc
            raise
        except ValueError as exc:
            raise asyncpg.ClientConfigurationError(str(exc)) from exc
        return self._db

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, asyncpg.InternalClientError):
            self._db.terminate()  # the driver has lost track of what it asked: this happens when a backend is ended
        await self._pool.release(self._db)
