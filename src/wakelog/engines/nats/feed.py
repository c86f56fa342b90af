"""The feed of all sessions: the commits of every shard in the order of its stream, and notifications of new ones.

A cursor holds the position reached in each shard. The server sends a notification of each stored commit, so waiting
needs no polling. A notification can be lost with a connection or a server, so waiters check again when the connection
is back, and every few seconds.
"""

from __future__ import annotations

import asyncio

import msgspec

from wakelog.engine import FeedChange
from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.stream_message import StreamMessage
from wakelog.engines.nats.subjects import Subjects
from wakelog.errors import InvalidInputError
from wakelog.model.shards import ShardChange

LOOK_AGAIN_S = 5.0
Places = dict[str, int]
"""Shard → the last message returned."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Places).decode


def read_cursor(cursor: str) -> Places:
    if not cursor:
        return {}
    try:
        return _decode(cursor)
    except msgspec.DecodeError as exc:
        raise InvalidInputError(f"{cursor[:40]!r} is not a cursor of this store", kind="bad-cursor") from exc


def cursor_at(places: dict[int, int]) -> str:
    """The cursor for a position in each shard."""
    return _encode({str(shard): place for shard, place in places.items()}).decode()


class ShardFeed:
    """Reads the feed. Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects, layout: LayoutKeeper) -> None:
        self._connection, self._subjects, self._layout = connection, subjects, layout

    async def changes(self, cursor: str, limit: int) -> list[FeedChange]:
        places = read_cursor(cursor)
        shards = range(self._layout.layout.shards)
        # One shard may fill the whole page; the next page returns what does not fit.
        found = await asyncio.gather(*(self._after(s, places.get(str(s), 0), limit) for s in shards))
        changes: list[FeedChange] = []
        queues = [(str(shard), list(reversed(each))) for shard, each in enumerate(found)]
        while len(changes) < limit and any(queue for _, queue in queues):
            for shard, queue in queues:  # in turns, so that no shard waits for a busier one
                if queue and len(changes) < limit:
                    message = queue.pop()
                    places[shard] = message.seq
                    last = messages.decode_commits(message.data)[-1].last
                    session = self._subjects.session_of(message.subject)
                    changes.append(FeedChange(session, last, _encode(places).decode()))
        return changes

    async def shard_changes(self, shard: int, after: int, limit: int) -> list[ShardChange]:
        return [
            ShardChange(self._subjects.session_of(m.subject), messages.decode_commits(m.data)[-1].last, m.seq)
            for m in await self._after(shard, after, limit)
        ]

    async def _after(self, shard: int, seq: int, limit: int) -> list[StreamMessage]:
        stream, subject = self._subjects.stream(shard), self._subjects.kind(shard, "c")
        found: list[StreamMessage] = []
        while len(found) < limit and (
            page := await self._connection.page(stream, subject, seq + 1, limit - len(found))
        ):
            found += page
            seq = page[-1].seq
        return found

    async def ends(self) -> list[int]:
        """The seq of the newest message of each shard."""
        shards = range(self._layout.layout.shards)
        found = await asyncio.gather(*(self._connection.api(f"STREAM.INFO.{self._subjects.stream(s)}") for s in shards))
        return [each["state"]["last_seq"] for each in found]
