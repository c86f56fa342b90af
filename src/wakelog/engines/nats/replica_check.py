"""Compares each server's copy of a shard, message by message.

Readers see one copy: the leader's, or that of any replica. A server with a damaged disk may return less or nothing, and
nobody notices while the others are intact; but it can become the leader. So here every message is read from every
replica.

A server cannot be addressed by name: a direct read goes to any replica. But servers can trace a request and report
where it went. So a page is requested until every replica has answered it, and the trace identifies each answer.

What this cannot detect: damage on an unavailable server; in the servers' replication logs; and in files whose content a
server still has in memory, until it reads the file again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.engine import ReplicaComparison, StoreFinding
from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import is_temporary
from wakelog.engines.nats.stream_message import StreamMessage
from wakelog.engines.nats.subjects import Subjects
from wakelog.errors import UnsupportedError, WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.shards import ShardPlacement

PAGE = 128
PAGE_BYTES = 4 << 20
PATIENCE_S = 30.0
"""How long a page is requested until every replica has answered. Three replicas need about six requests; but one that
was started just now takes part in reads only after some seconds."""
PAUSE_S = 0.02
_TRACE_S = 2.0
_FIX = "stop the server, empty its store_dir and start it again: it copies everything from the others"


class _Copy(msgspec.Struct, frozen=True):
    """A page of one server: digests by seq, and up to which seq it is complete."""

    digests: dict[int, bytes]
    upto: int


class ReplicaCheck:
    """Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects) -> None:
        self._connection, self._subjects = connection, subjects
        self._seen: dict[int, StreamMessage] = {}

    async def compare(self, placed: Sequence[ShardPlacement]) -> ReplicaComparison:
        findings: list[StoreFinding] = []
        copies, count, unread = 0, 0, 0
        for each in placed:
            here = [name for name in each.replicas if name not in each.away]
            if len(each.replicas) < 2:
                findings.append(_not_compared(each.shard, "it has one replica, so there is nothing to compare"))
                continue
            if each.away:
                findings.append(_not_compared(each.shard, f"{', '.join(each.away)} did not answer, and was not read"))
            found, read = await self._compare_shard(each.shard, here)
            findings += found
            copies += len(here)
            unread += len(each.away)
            count += read
        return ReplicaComparison(copies, count, tuple(findings), unread)

    async def _compare_shard(self, shard: int, servers: Sequence[str]) -> tuple[list[StoreFinding], int]:
        info = await self._connection.api(f"STREAM.INFO.{self._subjects.stream(shard)}")
        end, at, count = info["state"]["last_seq"], 1, 0
        suspects: list[int] = []
        while at <= end:
            copies, upto = await self._page(shard, servers, at, end)
            every = {place for copy in copies.values() for place in copy.digests if place <= upto}
            suspects += [p for p in sorted(every) if len({copy.digests.get(p) for copy in copies.values()}) > 1]
            count += len(every)
            at = upto + 1
        return await self._confirm(shard, servers, suspects), count

    async def _confirm(self, shard: int, servers: Sequence[str], suspects: Sequence[int]) -> list[StoreFinding]:
        """The suspects that still differ. The others were being erased or replicated when they were first read."""
        lacking: dict[str, list[int]] = {}
        altered: dict[str, list[int]] = {}
        left = list(suspects)
        while left:
            copies, upto = await self._page(shard, servers, left[0], left[-1], noted=True)
            for place in (p for p in left if p <= upto):
                given = {name: copy.digests.get(place) for name, copy in copies.items()}
                kept = [digest for digest in given.values() if digest is not None]
                for name, digest in given.items() if len(set(given.values())) > 1 else ():
                    if digest is None:
                        lacking.setdefault(name, []).append(place)
                    elif kept.count(digest) * 2 <= len(kept):
                        altered.setdefault(name, []).append(place)
            left = [p for p in left if p > upto]
        return [
            self._finding(shard, name, places, what)
            for what, found in (("lacks", lacking), ("has other bytes in", altered))
            for name, places in sorted(found.items())
        ]

    def _finding(self, shard: int, server: str, places: Sequence[int], what: str) -> StoreFinding:
        session, seq = self._event_of(places[0])
        how_many = "one message" if len(places) == 1 else f"{len(places):,} messages"
        first = f"number {places[0]}" if len(places) == 1 else f"from number {places[0]} on"
        return StoreFinding(
            f"the server {server} {what} {how_many} of shard {shard}, {first}, that other replicas have",
            session=session,
            seq=seq,
            fix=_FIX,
        )

    def _event_of(self, place: int) -> tuple[SessionId, Seq]:
        """The session and event of a message, if it holds a commit of this namespace."""
        message = self._seen.get(place)
        if message is None or message.subject.split(".")[3:4] != ["c"]:
            return SessionId(""), 0
        if message.subject.split(".")[4] != self._subjects.ns:
            return SessionId(""), 0
        try:
            return self._subjects.session_of(message.subject), messages.decode_commits(message.data)[0].first
        except WakelogError:
            return SessionId(""), 0

    # Asking

    async def _page(
        self, shard: int, servers: Sequence[str], at: int, end: int, *, noted: bool = False
    ) -> tuple[dict[str, _Copy], int]:
        """The copy of each server from a seq on, and up to which seq all of them are complete."""
        copies: dict[str, _Copy] = {}
        deadline = time.monotonic() + PATIENCE_S
        while not copies.keys() >= set(servers) and time.monotonic() < deadline:
            try:
                server, found = await self._ask(shard, at, min(PAGE, end - at + 1))
            except Exception as exc:
                if isinstance(exc, WakelogError) or not is_temporary(exc):
                    raise
                await asyncio.sleep(PAUSE_S)
                continue
            if server in copies:
                await asyncio.sleep(PAUSE_S)
            elif server in servers:
                is_full = len(found) >= PAGE or sum(len(m.data) for m in found) > PAGE_BYTES // 2
                if noted:
                    self._seen |= {m.seq: m for m in found[:1]}
                digests = {m.seq: _digest(m) for m in found if m.seq <= end}
                copies[server] = _Copy(digests, found[-1].seq if is_full else end)
        missing = set(servers) - copies.keys()
        if missing:
            raise UnsupportedError(
                f"{', '.join(sorted(missing))} did not answer reads of shard {shard}, although it is up to date",
                kind="replica-unread",
                hint="try again, or restart the server and check its log",
            )
        return copies, min(copy.upto for copy in copies.values())

    async def _ask(self, shard: int, at: int, count: int) -> tuple[str, list[StreamMessage]]:
        """The server that answered, and its page."""
        body = {"batch": count, "max_bytes": PAGE_BYTES, "seq": at, "next_by_subj": self._subjects.all_of(shard)}
        found, traces = await self._connection.run_traced(self._subjects.stream(shard), body, _TRACE_S)
        if not traces:
            raise UnsupportedError(
                "the servers do not report which of them answered",
                kind="replica-unread",
                hint="message tracing is needed: servers from 2.12 on, and a user who may publish to _INBOX.>",
            )
        return _answering_server(traces), found


def _answering_server(traces: Sequence[dict[str, Any]]) -> str:
    """The last server on the request's route: the one that forwarded it to no other."""
    sent = {each["server"]["name"]: [e["name"] for e in each["events"] if e["type"] == "eg"] for each in traces}
    at = next(iter(sent))
    seen = {at}
    while sent.get(at) and sent[at][0] not in seen:
        at = sent[at][0]
        seen.add(at)
    return str(at)


def _digest(message: StreamMessage) -> bytes:
    return hashlib.sha256(message.subject.encode() + b"\0" + message.data).digest()


def _not_compared(shard: int, why: str) -> StoreFinding:
    return StoreFinding(f"shard {shard}: {why}", is_damage=False)
