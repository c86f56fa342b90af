"""Appends of many sessions, sent together: one batch for all that wait, and one answer.

A batch costs the servers less than its messages one by one, and a client one answer instead of many. A batch is stored
as a whole or not at all, so one append that does not fit its session refuses the others too. They are then sent one by
one, and the session that was refused stays alone for a while.

While a group of a shard is on its way, what arrives is the next one. That waits until the first was answered, or until
it has enough members: then it is sent at once, so that servers and client work at the same time. So groups grow with
the load, and a lone append is sent at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence

import msgspec

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.model.ids import SessionId

GROUPS_MAX = 2
"""How many groups of a shard are on their way at a time."""
ENOUGH = 32
"""So many appends are sent while another group is on its way."""
MESSAGES_MAX = 128
BYTES_MAX = 1 << 20
ALONE_S = 5.0
"""How long a session that was refused is kept out of groups."""


class GroupMember(msgspec.Struct, frozen=True, eq=False):
    """The messages of one append, which end with its commit. `on_stored` is called with that one's seq, or with the
    error of this append alone."""

    session: SessionId
    messages: Sequence[NewMessage]
    on_stored: Callable[[int | Exception], None]


class AppendGroups:
    """The groups of one engine. Runs on the loop."""

    def __init__(self, connection: NatsConnection, *, has_groups: Callable[[], bool]) -> None:
        """A server with one replica stores a batch in a file of its own, which takes long: there are no groups then."""
        self._connection, self._has_groups = connection, has_groups
        self._waiting: defaultdict[int, deque[GroupMember]] = defaultdict(deque)
        self._on_way: Counter[int] = Counter()
        """How many groups of each shard."""
        self._is_answering = False
        self._alone: dict[SessionId, float] = {}
        """Until when they are sent alone."""

    def put(self, shard: int, member: GroupMember) -> None:
        """Queues an append. `send` sends it."""
        if not self._has_groups() or (self._alone and self._is_alone(member.session)):
            self._send_alone(member)
        else:
            self._waiting[shard].append(member)

    def send(self) -> None:
        """Sends what waits for shards that have room."""
        if self._is_answering:
            return
        for shard, waiting in self._waiting.items():
            while waiting and self._has_room(shard):
                self._send_group(shard, _take_group(waiting))

    def _has_room(self, shard: int) -> bool:
        on_way = self._on_way[shard]
        return not on_way or (on_way < GROUPS_MAX and len(self._waiting[shard]) >= ENOUGH)

    def _send_group(self, shard: int, group: list[GroupMember]) -> None:
        self._on_way[shard] += 1

        def settle(last: int | Exception) -> None:
            self._on_way[shard] -= 1
            self.send()  # before the answers, so that the servers have work meanwhile
            self._is_answering = True
            try:
                self._answer(group, last)
            finally:
                self._is_answering = False
            self.send()  # after all answers, so that what they start is one group

        self._connection.put_soon([message for member in group for message in member.messages], settle)

    def _answer(self, group: list[GroupMember], last: int | Exception) -> None:
        if not isinstance(last, Exception):
            # The messages of a batch follow each other in the stream.
            seq = last - sum(len(member.messages) for member in group)
            for member in group:
                seq += len(member.messages)
                member.on_stored(seq)
        elif len(group) > 1 and isinstance(last, JetStreamRefusal):
            for member in group:
                self._send_alone(member)
        else:
            for member in group:
                member.on_stored(last)

    def _send_alone(self, member: GroupMember) -> None:
        def settle(seq: int | Exception) -> None:
            if isinstance(seq, JetStreamRefusal) and seq.is_wrong_head:
                self._alone[member.session] = asyncio.get_running_loop().time() + ALONE_S
            member.on_stored(seq)

        self._connection.put_soon(member.messages, settle)

    def _is_alone(self, session: SessionId) -> bool:
        now = asyncio.get_running_loop().time()
        self._alone = {each: until for each, until in self._alone.items() if until > now}
        return session in self._alone


def _take_group(waiting: deque[GroupMember]) -> list[GroupMember]:
    group: list[GroupMember] = []
    count = size = 0
    while waiting:
        messages = waiting[0].messages
        count, size = count + len(messages), size + sum(len(message.data) for message in messages)
        if group and (count > MESSAGES_MAX or size > BYTES_MAX):
            break
        group.append(waiting.popleft())
    return group
