"""All sessions in the order of their ids. An opening is never removed, so this process reads each one once and keeps
the ids. Each call reads only what was opened since.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTails
from wakelog.model.ids import SessionId
from wakelog.model.records import Head

AT_ONCE = 64


class SessionList:
    """Runs on the loop."""

    def __init__(
        self, connection: NatsConnection, subjects: Subjects, layout: LayoutKeeper, tails: SessionTails
    ) -> None:
        self._connection, self._subjects, self._layout, self._tails = connection, subjects, layout, tails
        self._ids: list[SessionId] = []
        self._seen: dict[int, int] = {}
        self._lock = asyncio.Lock()

    async def page(self, after: str, limit: int) -> list[Head]:
        """Heads after an id, without deleted sessions."""
        await self._catch_up()
        found: list[Head] = []
        at = bisect.bisect_right(self._ids, after)
        while len(found) < limit and at < len(self._ids):
            ids = self._ids[at : at + min(AT_ONCE, limit)]
            tails = await asyncio.gather(*map(self._tails.find, ids))
            found += [t.head for t in tails if t is not None and t.head.status != "deleted"]
            at += len(ids)
        return found[:limit]

    async def _catch_up(self) -> None:
        async with self._lock:
            opened = await asyncio.gather(*map(self._opened_in, range(self._layout.layout.shards)))
            if any(opened):
                self._ids = sorted({*self._ids, *itertools.chain(*opened)})

    async def _opened_in(self, shard: int) -> list[SessionId]:
        stream, subject = self._subjects.stream(shard), self._subjects.kind(shard, "o")
        found: list[SessionId] = []
        while page := await self._connection.page(stream, subject, self._seen.get(shard, 0) + 1):
            found += [self._subjects.session_of(m.subject) for m in page]
            self._seen[shard] = page[-1].seq
        return found
