"""Which shard a fork tree lives in, and how shards are added without moving a tree.

The layout is a list of generations: from which root id on it holds, and how many shards there were. A tree lives where
the newest generation that covers its id puts it, by a hash of the root. Ids begin with the time, so what is old stays
where it is. A writer whose clock is ahead, or that opened a tree while shards were being added, may have used an older
generation: so a tree that is not where it should be is looked for there too.

Two writers with different layouts must never open the same session in two places. So each shard has a *fence*: a
message that names the generation. Opening a root session expects the fence that its writer knows, and the server
refuses it when there is a newer one. Shards are added in four steps, each of which anybody can repeat: the streams are
made; the layout announces the next generation; every shard gets the new fence, and from then on nobody opens a session
by the old layout; the layout makes the generation active. Whoever finds it announced, and was refused, finishes it."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from wakelog.engines.nats.connection import NatsConnection, NewMessage
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.errors import InvalidInputError, UnavailableError
from wakelog.model.described import described
from wakelog.model.ids import SessionId, root_id, root_of

SHARDS_MAX = 1024
T = TypeVar("T")


class Generation(msgspec.Struct, frozen=True):
    """From which root id on how many shards are used."""

    since: str
    shards: int


class StreamLayout(msgspec.Struct, frozen=True):
    """What the names stream keeps about a store's streams."""

    replicas: int
    generations: tuple[Generation, ...]
    active: int = 1
    """How many of the generations are in use; one more may be announced."""
    version: int = 1

    @property
    def shards(self) -> int:
        """How many shards hold sessions."""
        return max(g.shards for g in self.generations[: self.active])

    def places(self, session: SessionId) -> list[int]:
        """Where the session's tree lives, and then where it may have been put by mistake."""
        root = root_of(session)
        number = zlib.crc32(root.encode())
        covering = [g for g in self.generations[: self.active] if g.since <= root]
        return list(dict.fromkeys(number % g.shards for g in reversed(covering)))


class LayoutKeeper:
    """The layout as this process knows it, and the fences. Lives on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects) -> None:
        self._connection, self._subjects = connection, subjects
        self._seq = 0
        self._fences: dict[int, int] = {}
        self._is_noted = False
        self.layout = StreamLayout(1, (Generation("", 1),))

    async def load(self) -> bool:
        """Reads the layout anew; False when there is none."""
        message = await self._connection.last(self._subjects.names_stream, self._subjects.layout)
        if message is None:
            return False
        self._seq = message.seq
        self.layout = msgspec.json.decode(message.data, type=described(StreamLayout))
        return True

    async def followed(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Does something about all shards, again if somebody has added some meanwhile."""
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
        """Keeps the first layout, unless somebody else was quicker; then theirs counts."""
        for shard in range(layout.shards):
            await self._raise_fence(shard, 1)
        await self._write(layout, 0)

    async def fence(self, shard: int) -> int:
        """The place of the fence that an opening in this shard expects."""
        if shard not in self._fences:
            for _ in range(50):
                message = await self._connection.last(self._subjects.stream(shard), self._subjects.fence(shard))
                if message is not None and int(message.data) <= self.layout.active:
                    self._fences[shard] = message.seq
                    return message.seq
                # Somebody is adding shards, or has: their work is finished here if they do not.
                await self.load()
                await self.finish()
            raise UnavailableError("the layout of the store does not settle", kind="too-busy", hint="try again")
        return self._fences[shard]

    async def note_namespace(self) -> None:
        """Notes, before the first session of this namespace is opened here, that it is in use."""
        if not self._is_noted:
            name = self._subjects.ns_name
            data = msgspec.msgpack.encode((name, b""))
            subject = self._subjects.note("used", digest_token(name))

            async def attempt() -> None:
                await self._connection.put(self._subjects.names_stream, [NewMessage(subject, data, 0)])

            await self._unless_quicker(attempt)
            self._is_noted = True

    def forget_fences(self) -> None:
        self._fences.clear()

    async def announce(self, shards: int) -> None:
        """Announces that from now on so many shards are used. Their streams are there."""
        layout = self.layout
        if len(layout.generations) > layout.active:
            return
        if not layout.shards < shards <= SHARDS_MAX:
            raise InvalidInputError(
                f"the store has {layout.shards} shards; they can only become more, up to {SHARDS_MAX}",
                kind="bad-shards",
                hint=f"choose more than {layout.shards}",
            )
        since = root_id(time.time_ns() // 1000, bytes(10))
        generations = (*layout.generations, Generation(since, shards))
        await self._write(msgspec.structs.replace(layout, generations=generations), self._seq)

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

        await self._unless_quicker(attempt)
        self._fences.pop(shard, None)

    async def _write(self, layout: StreamLayout, expected: int) -> None:
        data = msgspec.json.encode(layout)

        async def attempt() -> None:
            message = NewMessage(self._subjects.layout, data, expected)
            await self._connection.put(self._subjects.names_stream, [message])

        await self._unless_quicker(attempt)
        self.forget_fences()
        await self.load()

    async def _unless_quicker(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Somebody who did the same first is welcome."""
        try:
            await self._connection.patiently(attempt)
        except JetStreamRefusal as exc:
            if not exc.is_wrong_head:
                raise
