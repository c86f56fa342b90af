"""A cache of session tails: the head, its message in the stream, and known positions of earlier messages.

A cached tail is a guess that the server checks, because an append names the message that it must follow. A head that is
returned to a caller is read from the stream's leader, and never goes back.
"""

from __future__ import annotations

import asyncio
import bisect
from collections import OrderedDict
from typing import TypeVar

import msgspec

from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.subjects import Subjects
from wakelog.errors import NotFoundError, UnavailableError
from wakelog.model.ids import Seq, SessionId, root_of
from wakelog.model.records import Head

CACHE_MAX = 20_000
PLACES_MAX = 128
V = TypeVar("V")


class SessionTail(msgspec.Struct, frozen=True):
    """A session's head, and the message that holds it."""

    shard: int
    seq: int
    """The message's seq in its stream."""
    head: Head
    has_lists: bool = False


class SessionTails:
    """The tails of the most recently used sessions. Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects, layout: LayoutKeeper) -> None:
        self._connection, self._subjects, self._layout = connection, subjects, layout
        self._tails: OrderedDict[SessionId, SessionTail] = OrderedDict()
        self._missing: OrderedDict[SessionId, bool] = OrderedDict()
        self._newest: OrderedDict[SessionId, int] = OrderedDict()
        self._names: OrderedDict[SessionId, str] = OrderedDict()
        self._shards: OrderedDict[SessionId, int] = OrderedDict()
        self._places: OrderedDict[SessionId, list[tuple[Seq, int]]] = OrderedDict()

    # Heads

    def cached(self, session: SessionId) -> SessionTail | None:
        return self._tails.get(session)

    def is_missing(self, session: SessionId) -> bool:
        """Whether there was no such session at the last lookup."""
        return session in self._missing

    def keep(self, tail: SessionTail) -> None:
        session = tail.head.session
        self._missing.pop(session, None)
        _cache(self._tails, session, tail)
        _cache(self._newest, session, max(tail.seq, self._newest.get(session, 0)))
        _cache(self._shards, root_of(session), tail.shard)
        if tail.head.name:
            _cache(self._names, session, tail.head.name)

    def advance(self, before: SessionTail, head: Head, seq: int) -> None:
        """Updates a cached tail after a commit was stored behind it. Everything else known of the session stays."""
        session = head.session
        _cache(self._tails, session, SessionTail(before.shard, seq, head, before.has_lists))
        _cache(self._newest, session, max(seq, self._newest.get(session, 0)))
        self.note_place(session, head.seq, seq)

    def forget(self, session: SessionId) -> None:
        self._tails.pop(session, None)

    async def find(self, session: SessionId, *, named: bool = True) -> SessionTail | None:
        """The tail from the leader, or None. With `named` false, the name is filled in only if it is cached."""
        for _ in range(200):
            tail = await self._find(session, named)
            if tail is None and await self._layout.has_moved():
                continue  # it may be in a new shard
            if (tail.seq if tail is not None else 0) >= self._newest.get(session, 0):
                if tail is not None:
                    self.keep(tail)
                else:
                    _cache(self._missing, session, True)
                return tail
            await asyncio.sleep(0.05)  # the answer came from a replaced leader that does not know it yet
        raise UnavailableError(
            f"the cluster returns an outdated head of {session}", kind="unreachable", hint="try again"
        )

    async def get(self, session: SessionId, *, named: bool = True) -> SessionTail:
        tail = await self.find(session, named=named)
        if tail is None:
            raise NotFoundError(f"there is no session {session}", kind="session-not-found")
        return tail

    async def _find(self, session: SessionId, named: bool) -> SessionTail | None:
        known = self._shards.get(root_of(session))
        places = [known] if known is not None else self._layout.layout.places(session)
        for shard in places:
            message, name = await asyncio.gather(
                self._connection.last(self._subjects.stream(shard), self._subjects.of(shard, "c", session)),
                self.name_of(session, shard) if named else self._known_name(session),
            )
            if message is not None:
                stored = messages.decode_commits(message.data)[-1]
                name = "" if stored.status == "deleted" else name
                head = messages.head_of(session, stored, name)
                return SessionTail(shard, message.seq, head, stored.has_lists)
        return None

    async def shard_of(self, session: SessionId) -> int:
        """The shard of the session's tree, or where it will be opened."""
        root = root_of(session)
        if (known := self._shards.get(root)) is not None:
            return known
        places = self._layout.layout.places(session)
        if len(places) > 1:
            for shard in places:
                subject = self._subjects.of(shard, "c", root)
                if await self._connection.last(self._subjects.stream(shard), subject) is not None:
                    _cache(self._shards, root, shard)
                    return shard
        return places[0]

    # Names

    async def name_of(self, session: SessionId, shard: int) -> str:
        """The session's name. It stays until the session is deleted, so it is cached."""
        if name := self._names.get(session):
            return name
        stream, subject = self._subjects.stream(shard), self._subjects.of(shard, "t", session)
        message = await self._connection.last(stream, subject)
        return message.data.decode("utf-8", "surrogatepass") if message is not None else ""

    async def _known_name(self, session: SessionId) -> str:
        tail = self._tails.get(session)
        return self._names.get(session) or (tail.head.name if tail is not None else "")

    def set_name(self, session: SessionId, name: str) -> None:
        """Caches a name; an empty one means that it was freed."""
        if name:
            _cache(self._names, session, name)
        else:
            self._names.pop(session, None)
        self.forget(session)

    # Places

    def note_place(self, session: SessionId, last: Seq, seq: int) -> None:
        """The message at `seq` ends with event `last`."""
        places = self._places.get(session)
        if places is None:
            places = []
            _cache(self._places, session, places)
        at = bisect.bisect_left(places, (last, 0))
        if at == len(places) or places[at][0] != last:
            places.insert(at, (last, seq))
            if len(places) > PLACES_MAX:
                del places[1:-1:2]

    def place_before(self, session: SessionId, wanted: Seq) -> tuple[Seq, int]:
        """The nearest known message that ends before an event; (0, 0) if there is none."""
        places = self._places.get(session, [])
        at = bisect.bisect_left(places, (wanted, 0))
        return places[at - 1] if at else (0, 0)

    def forget_places(self, session: SessionId) -> None:
        self._places.pop(session, None)


def _cache(cache: OrderedDict[SessionId, V], session: SessionId, value: V) -> None:
    cache[session] = value
    cache.move_to_end(session)
    if len(cache) > CACHE_MAX:
        cache.popitem(last=False)
