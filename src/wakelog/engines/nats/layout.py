"""Which shard a fork tree is in, and how shards are added without moving a tree.

The layout is a list of generations. Each says from which root id on it applies, and how many shards it has. The newest
generation that covers a tree's root id decides its shard, by a hash of the root. Ids begin with the time, so old trees
stay where they are. A writer whose clock is ahead, or that opened a tree while shards were being added, may have used
an older generation. So a tree that is not in its shard is looked up in the older ones too.

Two writers with different layouts must never open the same session in two places. So each shard has a *fence*: a
message with the generation. Opening a root session expects the fence that its writer knows, and the server refuses it
if there is a newer one. Shards are added in four steps, each of which any process can repeat: create the streams;
announce the next generation in the layout; raise the fence of every shard, so that nobody opens a session by the old
layout; make the generation active. A process that is refused and finds an announced generation finishes these steps.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.errors import InvalidInputError, UnavailableError
from wakelog.model.described import described
from wakelog.model.ids import SessionId, root_id, root_of

SHARDS_MAX = 1024
T = TypeVar("T")


class Generation(msgspec.Struct, frozen=True):
    """How many shards are used from a root id on."""

    since: str
    shards: int


class StreamLayout(msgspec.Struct, frozen=True):
    """The layout, as stored in the names stream."""

    replicas: int
    generations: tuple[Generation, ...]
    active: int = 1
    """How many generations are in use; one more may be announced."""
    version: int = 1

    @property
    def shards(self) -> int:
        """How many shards hold sessions."""
        return max(g.shards for g in self.generations[: self.active])

    def places(self, session: SessionId) -> list[int]:
        """The shard of the session's tree, and then those where an outdated writer may have put it."""
        root = root_of(session)
        number = zlib.crc32(root.encode())
        covering = [g for g in self.generations[: self.active] if g.since <= root]
        return list(dict.fromkeys(number % g.shards for g in reversed(covering)))


class LayoutKeeper:
    """The layout and fences that this process knows. Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects) -> None:
        self._connection, self._subjects = connection, subjects
        self._seq = 0
        self._fences: dict[int, int] = {}
        self._is_noted = False
        self.layout = StreamLayout(1, (Generation("", 1),))

    async def load(self) -> bool:
        """Reads the layout; False if there is none."""
        message = await self._connection.last(self._subjects.names_stream, self._subjects.layout)
        if message is None:
            return False
        self._seq = message.seq
        self.layout = msgspec.json.decode(message.data, type=described(StreamLayout))
        return True

    async def run_on_all_shards(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs `work`, which is about all shards, and repeats it if shards were added meanwhile."""
        while True:
            before = self.layout.active
            loading = asyncio.ensure_future(self.load())
            answer = await work()
            await loading
            if self.layout.active == before:
                return answer

    async def has_moved(self) -> bool:
        """Whether shards were added that this process did not know of."""
        before = self.layout.active
        await self.load()
        return self.layout.active != before

    async def create(self, layout: StreamLayout) -> None:
        """Stores the first layout, unless another process was first."""
        for shard in range(layout.shards):
            await self._raise_fence(shard, 1)
        await self._write(layout, 0)

    async def fence(self, shard: int) -> int:
        """The seq of the fence that an opening in this shard expects."""
        if shard not in self._fences:
            for _ in range(50):
                message = await self._connection.last(self._subjects.stream(shard), self._subjects.fence(shard))
                if message is not None and int(message.data) <= self.layout.active:
                    self._fences[shard] = message.seq
                    return message.seq
                # Another process is adding shards. Finish it here, in case that process died.
                await self.load()
                await self.finish()
            raise UnavailableError("the layout of the store does not settle", kind="too-busy", hint="try again")
        return self._fences[shard]

    async def note_namespace(self) -> None:
        """Records that this namespace is in use, before its first session is opened here."""
        if not self._is_noted:
            name = self._subjects.ns_name
            data = msgspec.msgpack.encode((name, b""))
            subject = self._subjects.note("used", digest_token(name))

            async def attempt() -> None:
                await self._connection.put(self._subjects.names_stream, [NewMessage(subject, data, 0)])

            await self._write_if_first(attempt)
            self._is_noted = True

    def forget_fences(self) -> None:
        self._fences.clear()

    async def announce(self, shards: int) -> None:
        """Announces a new number of shards. Their streams must exist."""
        layout = self.layout
        if len(layout.generations) > layout.active:
            return
        self.check_more(shards)
        since = root_id(time.time_ns() // 1000, bytes(10))
        generations = (*layout.generations, Generation(since, shards))
        await self._write(msgspec.structs.replace(layout, generations=generations), self._seq)

    def check_more(self, shards: int) -> None:
        """Refuses a number of shards that the store cannot be given."""
        has = self.layout.shards
        if not has < shards <= SHARDS_MAX:
            raise InvalidInputError(
                f"the store has {has} shard{'s' * (has != 1)}; they can only become more, up to {SHARDS_MAX}",
                kind="bad-shards",
                hint=f"choose more than {has}" if shards <= has else f"choose {SHARDS_MAX} at most",
            )

    async def finish(self) -> None:
        """Makes an announced generation active."""
        layout = self.layout
        if len(layout.generations) == layout.active:
            return
        for shard in range(layout.generations[-1].shards):
            await self._raise_fence(shard, len(layout.generations))
        await self._write(msgspec.structs.replace(layout, active=len(layout.generations)), self._seq)

    async def _raise_fence(self, shard: int, generation: int) -> None:
        subject, stream = self._subjects.fence(shard), self._subjects.stream(shard)

        async def attempt() -> None:
            message = await self._connection.last(stream, subject)
            if message is None or int(message.data) < generation:
                expected = message.seq if message is not None else 0
                await self._connection.put(stream, [NewMessage(subject, str(generation).encode(), expected)])

        await self._write_if_first(attempt)
        self._fences.pop(shard, None)

    async def _write(self, layout: StreamLayout, expected: int) -> None:
        data = msgspec.json.encode(layout)

        async def attempt() -> None:
            message = NewMessage(self._subjects.layout, data, expected)
            await self._connection.put(self._subjects.names_stream, [message])

        await self._write_if_first(attempt)
        self.forget_fences()
        await self.load()

    async def _write_if_first(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Runs a write. If another process has written the same first, that is fine."""
        try:
            await self._connection.retry(attempt)
        except JetStreamRefusal as exc:
            if not exc.is_wrong_head:
                raise
