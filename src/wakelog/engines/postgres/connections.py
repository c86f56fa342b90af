"""The connections of one engine, with retries.

Every statement of this engine is idempotent. So after a lost connection, a restart, a failover, or when the server has
no free connection, it is retried for `patience_s`. After that the error is raised; if an append was sent and never
answered, its outcome is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.errors import PoolFullError, closed_unanswered, is_temporary, is_unknown, translate_error
from wakelog.errors import UnavailableError, WakelogError

T = TypeVar("T")

PATIENCE_S = 15.0
CONNECT_S = 10.0
COMMAND_S = 60.0
POOL_MAX = 8
_PAUSE_S, _PAUSE_MAX_S = 0.02, 0.5


class ConnectionPool:
    """A pool that retries. Runs on the loop."""

    def __init__(
        self, url: str, *, patience_s: float = PATIENCE_S, size: int = POOL_MAX, is_sharded: bool = False
    ) -> None:
        self.patience_s = patience_s
        self.is_sharded = is_sharded
        """Whether the server has workers, which may be lost while it runs."""
        self._size = size
        self.acquire_s = max(patience_s, CONNECT_S)
        self.retries = 0
        """How often something was retried."""
        self.on_connect: Callable[[Any], Awaitable[None]] | None = None
        """Called with each new connection before it is used."""
        self._url = url
        self._hosts = host_urls(url)
        self._pool: Any = None
        self._is_closed = False

    async def open(self) -> None:
        """Creates the pool. It connects on first use."""
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._size,
            command_timeout=COMMAND_S,
            connect=self._connect,
            init=self._init,
            reset=_keep_as_is,
        )

    async def resize(self, size: int) -> None:
        """Allows more connections, or fewer. Nobody may use one meanwhile."""
        old, self._size = self._pool, size
        await self.open()
        await old.close()

    async def _init(self, db: Any) -> None:
        for setting in sql.SETTINGS:
            with contextlib.suppress(asyncpg.PostgresError):  # not every engine that speaks the protocol has it
                await db.execute(setting)
        if self.on_connect is not None:
            await self.on_connect(db)

    async def ask(
        self,
        work: Callable[[Any], Awaitable[T]],
        *,
        is_append: bool = False,
        on: KeptConnection | None = None,
    ) -> T:
        """Runs `work`, which must be idempotent, with a connection, and retries if that may help. `on` is a kept
        connection to use."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.patience_s
        pause, may_be_stored = _PAUSE_S, False
        while True:
            was_connected = False
            try:
                async with on or self._connection() as db:
                    was_connected = True
                    return await work(db)
            except UnavailableError as exc:
                if not may_be_stored:
                    raise
                raise closed_unanswered() from exc
            except (WakelogError, asyncpg.DataError, asyncpg.FeatureNotSupportedError):
                raise  # this is the answer, whatever happened to an earlier try
            except Exception as exc:
                if is_append and was_connected and is_unknown(exc, is_sharded=self.is_sharded):
                    may_be_stored = True
                left = deadline - clock()
                if left <= 0 or self._is_closed or not is_temporary(exc, is_sharded=self.is_sharded):
                    raise translate_error(exc, is_unknown=may_be_stored) from exc
            self.retries += 1
            await asyncio.sleep(min(left, random.uniform(pause / 2, pause)))
            pause = min(2 * pause, _PAUSE_MAX_S)

    def keep(self) -> KeptConnection:
        """A connection for a caller that sends one statement after another. It must be released in the end."""
        return KeptConnection(self._connection)

    def _connection(self) -> Any:
        if self._is_closed:
            raise UnavailableError("the store was closed", kind="store-closed", hint="open it again")
        return _PooledConnection(self._pool, self._size, self.acquire_s)

    async def connect(self, **settings: str) -> Any:
        """A connection outside the pool, for long use."""
        return await self._connect(server_settings=settings)

    async def _connect(self, _url: str = "", **options: Any) -> Any:
        """Connects to the host that answered last, or else to the next. The driver has one time limit for all hosts,
        and a dead machine would use it up."""
        within_s = CONNECT_S if len(self._hosts) == 1 else CONNECT_S / 3
        for left in reversed(range(len(self._hosts))):
            try:
                return self._unless_closed(await asyncpg.connect(self._hosts[0], timeout=within_s, **options))
            except Exception as exc:
                if not left or not is_temporary(exc):
                    raise
                self._hosts.append(self._hosts.pop(0))
        raise AssertionError("a URL has a host")

    def _unless_closed(self, db: Any) -> Any:
        """The connection, unless the store was closed meanwhile."""
        if not self._is_closed:
            return db
        db.terminate()
        raise UnavailableError("the store was closed meanwhile", kind="store-closed", hint="open it again")

    def abort(self) -> None:
        """Drops the connections as they are, in whatever state: the server ends what it has not committed."""
        self._is_closed = True
        with contextlib.suppress(Exception):
            self._pool.terminate()

    async def close(self) -> None:
        self._is_closed = True
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()


def host_urls(url: str) -> list[str]:
    """One URL for each host of a URL."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]


async def _keep_as_is(db: Any) -> None:
    """Returns a connection to the pool without a reset. Nothing is open on it, and a reset would cost each statement a
    second round trip."""


class KeptConnection:
    """A connection that is kept between statements until it fails. Taking one from the pool for each statement costs a
    good part of a round trip."""

    def __init__(self, take: Callable[[], Any]) -> None:
        self._take = take
        self._held: Any = None
        self._db: Any = None

    async def __aenter__(self) -> Any:
        if self._db is not None and self._is_lost():
            await self.release()
        if self._db is None:
            self._held = self._take()
            self._db = await self._held.__aenter__()
        return self._db

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self.release(kind)

    def _is_lost(self) -> bool:
        try:
            return bool(self._db.is_closed())
        except asyncpg.InterfaceError:
            return True  # the pool has noticed it and taken the connection back

    async def release(self, kind: type[BaseException] | None = None) -> None:
        """`kind` is the error that occurred on it, if any."""
        if self._db is not None:
            self._db = None
            await self._held.__aexit__(kind, None, None)


class _PooledConnection:
    """A connection of the pool while it is used. PoolFullError if none was free in time."""

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
            self._db.terminate()  # the driver has lost its state, as happens when a backend is terminated
        await self._pool.release(self._db)
