"""The NATS JetStream engine: a log on a cluster, in one or more shards.

JetStream stores, replicates and elects leaders; this engine adds the contract. A shard is a stream. A session is in the
shard of its fork tree, on its own subject (subjects.py), with one message per commit. An append names the message that
it must follow, and the server checks that. Everything that belongs to an append is in the same atomic batch
(commit_messages.py): the opening, an id that the caller chose, a snapshot, parts that are too big. So nothing can be
half done, except a removal, which is finished later (removal.py).

Our seqs are independent of the stream's, which have gaps. An acknowledged append is on the disks of a majority, because
opening refuses servers that do not sync (streams.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from wakelog.engine import (
    Abilities,
    FeedChange,
    Known,
    ReplicaComparison,
    Surgery,
    payload_of,
    refuse_place_in_no_session,
)
from wakelog.engines.loop_owner import Arrivals, LoopOwner, no_store
from wakelog.engines.nats import feed
from wakelog.engines.nats.append_lanes import AppendLanes, LanedAppend
from wakelog.engines.nats.connection import PATIENCE_S, NatsConnection
from wakelog.engines.nats.errors import translate_error
from wakelog.engines.nats.feed import ShardFeed
from wakelog.engines.nats.layout import Generation, LayoutKeeper, StreamLayout
from wakelog.engines.nats.name_book import NameBook
from wakelog.engines.nats.reader import SessionReader
from wakelog.engines.nats.removal import SessionRemoval
from wakelog.engines.nats.replica_check import ReplicaCheck
from wakelog.engines.nats.session_list import SessionList
from wakelog.engines.nats.streams import MONITOR_PORT, StoreStreams
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.engines.news_waiters import NewsWaiters
from wakelog.errors import WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot
from wakelog.model.shards import IndexDatabase, ShardChange, ShardPlacement

PAGE = 200
T = TypeVar("T")


class NatsEngine(LoopOwner):
    """A namespace of a store on a NATS cluster."""

    loop_name = "wakelog nats"
    durability = "synced"
    index_url = ""
    """The PostgreSQL database with a shared index; empty if each machine has its own index."""

    def __init__(
        self,
        servers: Sequence[str],
        *,
        store: str = "wakelog",
        ns: str = "default",
        replicas: int = 3,
        shards: int = 1,
        create: bool = True,
        monitors: Sequence[str] = (MONITOR_PORT,),
        vouched: bool = False,
        patience_s: float = PATIENCE_S,
        options: dict[str, Any] | None = None,
    ) -> None:
        """`shards` applies to a new store. `vouched` says that every server syncs each message; otherwise their
        `monitors` are asked. `options` are those of the client, such as `user_credentials`."""
        self.servers, self.store, self.ns = list(servers), store, ns
        self._replicas, self._shards = replicas, shards
        self._monitors, self._vouched = list(monitors), vouched
        self._patience_s, self._options = patience_s, options or {}
        self._start()
        try:
            self._run(lambda: self._prepare(create))
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        super()._start()
        subjects = Subjects(self.store, self.ns)
        self._connection = NatsConnection(self.servers, self._options, self._patience_s)
        self._subjects = subjects
        self._news = NewsWaiters()
        self._connection.on_return = self._news.wake_all
        self._streams = StoreStreams(self._connection, subjects)
        self._layout = LayoutKeeper(self._connection, subjects)
        self._tails = SessionTails(self._connection, subjects, self._layout)
        self._reader = SessionReader(self._connection, subjects, self._tails)
        self._lanes = AppendLanes(self._connection, subjects, self._layout, self._tails, self._reader)
        self._arrivals = Arrivals(self._loop, self._lanes.put, self._lanes.send)
        self._names = NameBook(self._connection, subjects, self._tails)
        self._removal = SessionRemoval(self._connection, subjects, self._tails, self._reader, self._lanes, self._names)
        self._list = SessionList(self._connection, subjects, self._layout, self._tails)
        self._feed = ShardFeed(self._connection, subjects, self._layout)
        self._listening: asyncio.Task[None] | None = None
        try:
            self._await(self._connection.open())
        except BaseException:
            self._loop.stop()
            raise

    async def _prepare(self, create: bool) -> None:
        await self._streams.check_version()
        # A store whose layout is missing is still being created, or whoever created it was stopped.
        if not (await self._streams.exists() and await self._layout.load()):
            if not create:
                raise no_store(self._place)
            if not self._vouched:
                await self._streams.check_sync(0, self._monitors)
            await self._create()
        layout = self._layout.layout
        await self._streams.check_streams(layout.shards, self._replicas)
        if not self._vouched:
            await self._streams.check_sync(layout.shards, self._monitors)
        for shard in range(layout.shards):
            await self._removal.finish_all(shard)

    async def _create(self) -> None:
        """Creates streams and layout. Each step is harmless if another process was first."""
        await self._streams.create_names(self._replicas)
        for shard in range(self._shards):
            await self._streams.create_shard(shard, self._replicas)
        await self._layout.create(StreamLayout(self._replicas, (Generation("", self._shards),)))

    @property
    def _place(self) -> str:
        hosts = ",".join(s.rpartition("@")[2].removeprefix("nats://") for s in self.servers)
        return f"nats://{hosts}/{self.store}"

    @property
    def abilities(self) -> Abilities:
        identity = f"{self._place}#{self.ns}"
        return Abilities(
            submit_soon=self.submit_soon,
            feed_end=self.end_of_feed,
            live_sessions=lambda since: self._run(lambda: self._names.heard(since)),
            marks=self,
            shards=self,
            shard_feeds=self,
            identity=identity,
            place=identity,
            is_far=True,
            index=IndexDatabase(self.index_url, f"nats {self.store} {self.ns}") if self.index_url else None,
        )

    # Appending

    def submit(self, *commits: Commit) -> LanedAppend:
        assert commits, "nothing was submitted"
        self._check()
        pending = LanedAppend(commits)
        self._lanes.draft(pending)
        self._arrivals.put(pending)
        return pending

    def submit_soon(self, commit: Commit) -> LanedAppend:
        """Submits a commit from a task, with those of other tasks that are ready."""
        self._check()
        pending = LanedAppend((commit,))
        self._lanes.draft(pending)
        pending.hasten = self._arrivals.pass_on
        self._arrivals.collect(pending)
        return pending

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        async def begin() -> AsyncIterator[Commit]:
            before = self._tails.cached(session)
            tail, rewritten = await asyncio.gather(self._finished_tail(session), self._reader.rewritten_now(session))
            if before is None or before.seq != tail.seq:
                # A record of an erasure must not be returned together with the erased content.
                rewritten = await self._reader.rewritten(tail)
            return self._reader.commits(tail, after, upto, rewritten, payloads=payloads)

        return self._pages(self._run(begin))

    async def _finished_tail(self, session: SessionId) -> SessionTail:
        """The session's tail, after finishing a pending removal."""
        tail, _ = await asyncio.gather(self._tails.get(session, named=False), self._removal.finish(session))
        return tail

    def _pages(self, source: AsyncIterator[Commit]) -> Iterator[Commit]:
        async def page() -> list[Commit]:
            found: list[Commit] = []
            async for commit in source:
                found.append(commit)
                if len(found) == PAGE:
                    break
            return found

        while True:
            commits = self._run(page)
            yield from commits
            if len(commits) < PAGE:
                return

    def head(self, session: SessionId) -> Head:
        return self._run(lambda: self._tails.get(session)).head

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        async def ask() -> Known | None:
            return await self._reader.known(await self._tails.get(session), commit_id)

        return self._run(ask)

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        return self._run(lambda: self._layout.run_on_all_shards(lambda: self._list.page(after, limit)))

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        async def ask() -> list[Head]:
            forks = await self._reader.forks(session, await self._tails.shard_of(session))
            return [f.head for f in forks if deleted or f.head.status != "deleted"]

        return self._run(ask)

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        return payload_of(self, session, seq, digest)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        async def ask() -> Snapshot | None:
            return await self._reader.snapshot(await self._finished_tail(session), upto)

        return self._run(ask)

    def drop_snapshots(self, session: SessionId) -> None:
        self._run(lambda: self._removal.drop_snapshots(session))

    # Names, leases, marks

    def claim(self, name: str, session: SessionId) -> SessionId:
        return self._run(lambda: self._names.claim(name, session))

    def find(self, name: str) -> SessionId | None:
        return self._run(lambda: self._names.find(name))

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        self.head(session)
        self._run(lambda: self._names.beat(session, beat))

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        self.head(session)
        return self._run(lambda: self._names.last_beat(session))

    def mark(self, name: str) -> str | None:
        return self._run(lambda: self._names.mark(name))

    def set_mark(self, name: str, value: str) -> None:
        self._run(lambda: self._names.set_mark(name, value))

    # Removal

    def operate(self, surgery: Surgery) -> Head:
        return self._run_alone(surgery.commits, lambda: self._removal.operate(surgery))

    def delete(self, commit: Commit) -> Head:
        return self._run_alone((commit,), lambda: self._removal.delete(commit))

    def _run_alone(self, commits: tuple[Commit, ...], work: Callable[[], Coroutine[Any, Any, Head]]) -> Head:
        """Runs `work` while this process has no other append of these sessions in flight."""
        self._check()
        pending = LanedAppend(commits, work)
        self._arrivals.put(pending)
        return pending.result()

    # News

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        feed.read_cursor(cursor)  # so that a wrong cursor is refused without a query
        return self._run(lambda: self._layout.run_on_all_shards(lambda: self._feed.changes(cursor, limit)))

    def end_of_feed(self) -> str:
        return self.cursor_at(dict(enumerate(self.ends())))

    def ends(self) -> Sequence[int]:
        return self._run(lambda: self._layout.run_on_all_shards(self._feed.ends))

    def shard_changes(self, shard: int, after: int, limit: int = 100) -> Sequence[ShardChange]:
        return self._run(lambda: self._feed.shard_changes(shard, after, limit))

    def cursor_at(self, places: dict[int, int]) -> str:
        return feed.cursor_at(places)

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        refuse_place_in_no_session(session, after)
        deadline = time.monotonic() + timeout_s
        self._run(self._listen)
        cursor = self.end_of_feed() if session is None else ""
        return self._news.wait(
            session,
            lambda: bool(self.changes(cursor, 1)) if session is None else self.head(session).seq > after,
            deadline=deadline,
            poll_s=feed.LOOK_AGAIN_S,
        )

    async def _listen(self) -> None:
        if self._listening is None:
            listening = self._connection.subscribe(
                self._subjects.news, lambda subject: self._news.wake(self._subjects.session_of(subject))
            )
            self._listening = asyncio.get_running_loop().create_task(listening)
        with contextlib.suppress(Exception):  # polling is enough
            await asyncio.shield(self._listening)

    # Shards

    def placement(self) -> Sequence[ShardPlacement]:
        async def ask() -> list[ShardPlacement]:
            await self._layout.load()
            return await self._streams.placement(self._layout.layout.shards)

        return self._run(ask)

    def add_shards(self, count: int) -> None:
        async def add() -> None:
            await self._layout.load()
            await self._layout.finish()  # an announced change that another process did not finish
            self._layout.check_more(count)  # before streams are created
            for shard in range(self._layout.layout.shards, count):
                await self._streams.create_shard(shard, self._layout.layout.replicas)
            await self._layout.announce(count)
            await self._layout.finish()

        self._run(add)

    def compare_replicas(self) -> ReplicaComparison:
        placed = self.placement()
        return self._run(lambda: ReplicaCheck(self._connection, self._subjects).compare(placed))

    # Closing

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True

        async def drain() -> None:
            self._arrivals.take_all()
            await asyncio.wait_for(self._lanes.drain(), self._patience_s + 5)

        self._shut_down(drain, self._lanes.end, self._connection.close)
        self._arrivals.refuse_all()
        self._news.wake_all()

    def _inherited(self) -> tuple[Any, ...]:
        return (self._connection,)

    def _after_fork(self) -> None:
        self._run(self._layout.load)

    def _translate(self, exc: Exception) -> WakelogError:
        return translate_error(exc)
