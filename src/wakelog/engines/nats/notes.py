"""Small notes that all servers on one cluster share, by kind and name, outside any namespace.

A note is added only if there is none, and changed or dropped only if it still has the expected content. So there are no
locks and no lost updates.
"""

from __future__ import annotations

import asyncio

import msgspec

from wakelog.engines.nats.engine import NatsEngine
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.engines.nats.stream_message import NewMessage, StreamMessage
from wakelog.engines.nats.subjects import digest_token

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, bytes]).decode


class ClusterNotes:
    """The notes of the store that an engine is connected to."""

    def __init__(self, engine: NatsEngine) -> None:
        self._engine = engine
        self._stream = engine._subjects.names_stream

    def of(self, kind: str) -> dict[str, bytes]:
        """The notes of a kind, by name."""

        async def ask() -> list[StreamMessage | None]:
            connection = self._engine._connection
            found = await connection.subjects(self._stream, self._engine._subjects.note(kind, "*"))
            return list(await asyncio.gather(*(connection.last(self._stream, subject) for subject in found)))

        return dict(_decode(message.data) for message in self._engine._run(ask) if message is not None)

    def add(self, kind: str, name: str, content: bytes) -> bool:
        """False if there is one of that name."""
        if self._put(kind, name, content, 0):
            return True
        # If an answer was lost, it is ours: two notes never have the same content, except empty ones.
        return bool(content) and self._find(kind, name, content) is not None

    def change(self, kind: str, name: str, content: bytes, was: bytes) -> bool:
        """False if its content is no longer `was`."""
        found = self._find(kind, name, was)
        return found is not None and self._put(kind, name, content, found.seq)

    def drop(self, kind: str, name: str, was: bytes) -> bool:
        found = self._find(kind, name, was)
        if found is not None:
            self._engine._run(lambda: self._engine._connection.erase(self._stream, found.seq))
        return found is not None

    def namespaces(self) -> list[str]:
        """The namespaces in which a session was opened."""
        return sorted(self.of("used"))

    def close(self) -> None:
        self._engine.close()

    def _subject(self, kind: str, name: str) -> str:
        return self._engine._subjects.note(kind, digest_token(name))

    def _find(self, kind: str, name: str, content: bytes) -> StreamMessage | None:
        """The note, if it has this content."""
        connection, subject = self._engine._connection, self._subject(kind, name)
        found = self._engine._run(lambda: connection.last(self._stream, subject))
        return found if found is not None and _decode(found.data)[1] == content else None

    def _put(self, kind: str, name: str, content: bytes, expected: int) -> bool:
        message = NewMessage(self._subject(kind, name), _encode((name, content)), expected)

        async def put() -> bool:
            try:
                await self._engine._connection.put_with_retry(self._stream, message)
            except JetStreamRefusal as exc:
                if not exc.is_wrong_head:
                    raise
                return False
            return True

        return self._engine._run(put)
