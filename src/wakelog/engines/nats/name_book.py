"""Names, marks and heartbeats, which are found without knowing a session's shard.

A name is bound by the first message of its subject, and freed by erasing that message. A session's name is also stored
in its shard. Heartbeats are in the servers' memory: they may be lost, and the log does not depend on them.
"""

from __future__ import annotations

import msgspec

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTails
from wakelog.model.ids import SessionId
from wakelog.model.records import Heartbeat

_encode = msgspec.msgpack.Encoder().encode
_binding = msgspec.msgpack.Decoder(tuple[str, str]).decode
_beat = msgspec.msgpack.Decoder(tuple[int, str, int]).decode


class NameBook:
    """Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects, tails: SessionTails) -> None:
        self._connection, self._subjects, self._tails = connection, subjects, tails

    async def claim(self, name: str, session: SessionId) -> SessionId:
        winner: SessionId | None = None
        while winner is None:  # a taken name can be freed before it is read
            binding = _encode((_plain(name), session))
            is_ours = await self._put_first(self._subjects.names_stream, self._subjects.name(name), binding)
            winner = session if is_ours else await self.find(name)
        # If this process dies here, the next claim of the name repeats this.
        tail = await self._tails.find(winner, named=False)
        shard = tail.shard if tail is not None else await self._tails.shard_of(winner)
        is_titled = False
        if tail is None or tail.head.status != "deleted":
            title = self._subjects.of(shard, "t", winner)
            data = name.encode("utf-8", "surrogatepass")
            is_titled = await self._put_first(self._subjects.stream(shard), title, data)
        if is_titled:
            self._tails.set_name(winner, name)
        else:
            self._tails.forget(winner)
        return winner

    async def _put_first(self, stream: str, subject: str, data: bytes) -> bool:
        """Stores a message unless its subject has one."""
        try:
            await self._connection.put_with_retry(stream, NewMessage(subject, data, 0))
        except JetStreamRefusal as exc:
            if not exc.is_wrong_head:
                raise
            return False
        return True

    async def find(self, name: str) -> SessionId | None:
        message = await self._connection.last(self._subjects.names_stream, self._subjects.name(name))
        return SessionId(_binding(message.data)[1]) if message is not None else None

    async def free(self, name: str, session: SessionId) -> None:
        """Frees a name if it is bound to this session."""
        stream = self._subjects.names_stream
        message = await self._connection.last(stream, self._subjects.name(name))
        if message is not None and _binding(message.data)[1] == session:
            await self._connection.erase(stream, message.seq)

    async def beat(self, session: SessionId, beat: Heartbeat) -> None:
        data = _encode((beat.epoch, beat.holder, beat.until))
        await self._connection.put_with_retry(
            self._subjects.beats_stream, NewMessage(self._subjects.beat(session), data)
        )

    async def last_beat(self, session: SessionId) -> Heartbeat | None:
        message = await self._connection.last(self._subjects.beats_stream, self._subjects.beat(session))
        return Heartbeat(*_beat(message.data)) if message is not None else None

    async def heard(self, since: int) -> list[SessionId]:
        """The sessions whose heartbeat is valid until `since` or longer, from any replica."""
        found: list[SessionId] = []
        at = 1
        while page := await self._connection.run(self._subjects.beats_stream, self._subjects.beats, at):
            found += [self._subjects.session_of(m.subject) for m in page if _beat(m.data)[2] >= since]
            at = page[-1].seq + 1
        return found

    async def forget_beat(self, session: SessionId) -> None:
        stream = self._subjects.beats_stream
        if (message := await self._connection.last(stream, self._subjects.beat(session))) is not None:
            await self._connection.erase(stream, message.seq)

    async def mark(self, name: str) -> str | None:
        message = await self._connection.last(self._subjects.names_stream, self._subjects.mark(name))
        return message.data.decode() if message is not None else None

    async def set_mark(self, name: str, value: str) -> None:
        message = NewMessage(self._subjects.mark(name), value.encode())
        await self._connection.put_with_retry(self._subjects.names_stream, message)


def _plain(name: str) -> str:
    """Readable for people who inspect the stream. MessagePack cannot encode half a surrogate pair."""
    return name.encode("utf-8", "replace").decode()
