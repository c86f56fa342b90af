"""All sessions in the order of their ids. Sessions are never forgotten, so this process reads each opening once and
keeps the ids; every question reads only what was opened since."""

from __future__ import annotations

import asyncio
import bisect

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTails
from wakelog.model.ids import SessionId
from wakelog.model.records import Head

AT_ONCE = 64


class SessionList:
    """Lives on the loop."""

    def __init__(
        self, connection: NatsConnection, subjects: Subjects, layout: LayoutKeeper, tails: SessionTails
    ) -> None:
        self._connection, self._subjects, self._layout, self._tails = connection, subjects, layout, tails
        self._ids: list[SessionId] = []
        self._seen: dict[int, int] = {}
        self._lock = asyncio.Lock()

    async def page(self, after: str, limit: int) -> list[Head]:
        """Heads after an id, without those that are deleted."""
        await self._catch_up()
        found: list[Head] = []
        at = bisect.bisect_right(self._ids, after)
        while len(found) < limit and at < len(self._ids):
            ids = self._ids[at : at + min(AT_ONCE, limit)]
            tails = await asyncio.gather(*map(self._tails.find, ids))
            found += [t.head for t in tails if t is not None and t.head.status != "deleted"]
            at += len(ids)
        return found[:limit]

    async def ids(self) -> list[SessionId]:
        await self._catch_up()
        return list(self._ids)

    async def _catch_up(self) -> None:
        async with self._lock:
            new = await asyncio.gather(*map(self._opened_in, range(self._layout.layout.shards)))
            fresh = [session for each in new for session in each]
            if fresh:
                self._ids = sorted({*self._ids, *fresh})

    async def _opened_in(self, shard: int) -> list[SessionId]:
        stream, subject = self._subjects.stream(shard), self._subjects.kind(shard, "o")
        found: list[SessionId] = []
        while True:
            at = self._seen.get(shard, 0) + 1
            one = await self._connection.next(stream, subject, at)  # told by the leader: whether there is more
            if one is None:
                return found
            page = [one, *await self._connection.run(stream, subject, one.seq + 1)]
            found += [self._subjects.session_of(m.subject) for m in page]
            self._seen[shard] = page[-1].seq
