"""Reading one session: its commits in order, rewritten commits, ids, snapshots.

The stream numbers messages, not events. So an event is found by interpolation search: a few requests in a stream of any
length, and none where this process has read before. A read goes up to the head that the leader reported when it began.
Commits that were erased or pruned are no longer in the stream. Their rewritten form is in separate messages (subject
`r`), and a read inserts them in their places.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from wakelog.engine import Known
from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import RUN_MAX, NatsConnection
from wakelog.engines.nats.message_cache import CachedMessage, MessageCache
from wakelog.engines.nats.messages import StoredCommit
from wakelog.engines.nats.stream_message import StreamMessage
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Snapshot

NEAR = 400
"""How many events to skip by reading rather than by searching."""
SEARCH_MAX = 48


class SessionReader:
    """Reads sessions of one engine. Runs on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects, tails: SessionTails) -> None:
        self._connection, self._subjects, self._tails = connection, subjects, tails
        self.cache = MessageCache()

    # Messages

    async def messages(
        self, tail: SessionTail, after: Seq = 0, upto: Seq | None = None
    ) -> AsyncIterator[tuple[StreamMessage, tuple[StoredCommit, ...]]]:
        """The messages with commits in a range, from the one that holds event `after` + 1 up to the tail."""
        session = tail.head.session
        stream, subject = self._subjects.stream(tail.shard), self._subjects.of(tail.shard, "c", session)
        if after >= tail.head.seq:
            return
        at, reached = await self._locate(tail, after + 1)
        end = tail.head.seq if upto is None else min(upto, tail.head.seq)
        while at <= tail.seq:
            count = min(RUN_MAX, max(1, end - reached + 1))  # including those to skip
            page = await self._connection.run(stream, subject, at, count)
            if not page:
                # The replica has nothing more but may be behind, so ask the leader.
                one = await self._connection.next(stream, subject, at)
                page = [one] if one is not None else []
            if not page:
                return
            for message in page:
                if message.seq > tail.seq:
                    return
                commits = messages.decode_commits(message.data)
                if commits[0].first > end:
                    return
                if commits[-1].last > after:
                    yield message, commits
            self._tails.note_place(session, commits[-1].last, message.seq)
            reached = commits[-1].last
            after = max(after, reached)
            at = message.seq + 1

    async def _locate(self, tail: SessionTail, wanted: Seq) -> tuple[int, Seq]:
        """A seq in the stream at or shortly before the message that holds an event; and the event that the message
        before it ends with, or an earlier one."""
        session = tail.head.session
        stream, subject = self._subjects.stream(tail.shard), self._subjects.of(tail.shard, "c", session)
        low_seq, low = self._tails.place_before(session, wanted)
        high_seq, high = tail.head.seq, tail.seq
        if low == 0 and wanted > NEAR and (first := await self._connection.run(stream, subject, 1, 1)):
            low_seq, low = messages.decode_commits(first[0].data)[-1].last, first[0].seq
            if low_seq >= wanted:
                return low, 0
        for step in range(SEARCH_MAX):
            if wanted - low_seq <= NEAR or high - low <= NEAR:
                break
            # Interpolate, and bisect every third time, because events may be spread unevenly.
            share = 0.5 if step % 3 == 2 else min(0.98, max(0.02, (wanted - low_seq - NEAR / 2) / (high_seq - low_seq)))
            middle = low + max(1, int((high - low) * share))
            found = await self._connection.run(stream, subject, middle, 1)
            commits = messages.decode_commits(found[0].data) if found and found[0].seq < high else ()
            if not commits:
                high = middle
            elif commits[-1].last < wanted:
                low_seq, low = commits[-1].last, found[0].seq
                self._tails.note_place(session, low_seq, low)
            elif commits[0].first <= wanted:
                return found[0].seq, commits[0].first - 1
            else:
                high_seq, high = commits[0].first, middle
        return (low + 1, low_seq) if low else (1, 0)

    async def _kept_messages(self, tail: SessionTail, after: Seq, upto: Seq | None) -> AsyncIterator[CachedMessage]:
        """Like `messages`, with big messages from the cache if it has them."""
        session = tail.head.session
        end = tail.head.seq if upto is None else min(upto, tail.head.seq)
        if tail.head.status != "deleted":
            while (kept := self.cache.find(session, after + 1)) and kept.message.seq <= tail.seq:
                if kept.commits[0].first > end:
                    return
                yield kept
                after = kept.commits[-1].last
                if after >= end:
                    return
        async for message, commits in self.messages(tail, after, upto):
            yield self.cache.keep(session, message, commits)

    # Commits

    async def commits(
        self, tail: SessionTail, after: Seq, upto: Seq | None, rewritten: dict[Seq, StoredCommit], *, payloads: bool
    ) -> AsyncIterator[Commit]:
        """The commits of a range, in order and complete. `rewritten` are the session's rewritten commits."""
        session = tail.head.session
        end = tail.head.seq if upto is None else min(upto, tail.head.seq)
        if rewritten:
            self.cache.forget(session)

        async def build(commit: StoredCommit, kept: CachedMessage | None = None) -> Commit:
            whole = kept.whole.get(commit.first) if kept is not None else None
            if whole is None:
                whole = await self._complete(tail, commit, payloads)
                if kept is not None and commit.apart and not whole.apart:
                    self.cache.complete(kept, whole)
            if kept is None:
                return messages.to_commit(session, whole, payloads=payloads)
            return kept.build(session, whole, payloads=payloads)

        waiting = sorted((c for c in rewritten.values() if c.last > after and c.first <= end), key=lambda c: c.first)
        before: Seq = 0
        async for kept in self._kept_messages(tail, after, upto):
            for commit in kept.commits:
                if commit.last <= after or commit.first > end or commit.last in rewritten:
                    continue
                while waiting and waiting[0].first < commit.first:
                    before = waiting[0].last
                    yield await build(waiting.pop(0))
                if before and commit.first > before + 1:
                    for missing in await self._fetch_gap(tail, before, commit.first):
                        yield await build(missing)
                before = commit.last
                yield await build(commit, kept)
        for commit in waiting:
            yield await build(commit)

    async def _fetch_gap(self, tail: SessionTail, before: Seq, first: Seq) -> list[StoredCommit]:
        """The commits that were rewritten since the read began."""
        now = await self._tails.get(tail.head.session, named=False)
        if now.head.status == "deleted":
            raise NotFoundError(f"session {tail.head.session} was deleted while it was read", kind="session-deleted")
        rewritten = await self.rewritten(now)
        return sorted((c for c in rewritten.values() if before < c.first < first), key=lambda c: c.first)

    async def commit_at(self, tail: SessionTail, seq: Seq) -> StoredCommit | None:
        """The commit that holds an event, without its parts."""
        rewritten = await self.rewritten(tail)
        for commit in rewritten.values():
            if commit.first <= seq <= commit.last:
                return commit
        async for _, commits in self.messages(tail, seq - 1, seq):
            for commit in commits:
                if commit.first <= seq <= commit.last:
                    return commit
        return None

    async def rewritten(self, tail: SessionTail) -> dict[Seq, StoredCommit]:
        """The rewritten commits, by their last event."""
        return _by_last(await self.rewritten_messages(tail.shard, tail.head.session))

    async def rewritten_now(self, session: SessionId) -> dict[Seq, StoredCommit]:
        """Like `rewritten`, without a tail."""
        return _by_last(await self.rewritten_messages(await self._tails.shard_of(session), session))

    async def rewritten_messages(self, shard: int, session: SessionId) -> list[StreamMessage]:
        """Oldest first. The newest wins, so leftovers of an interrupted removal do no harm."""
        return await self._connection.all(self._subjects.stream(shard), self._subjects.of(shard, "r", session))

    async def _complete(self, tail: SessionTail, commit: StoredCommit, payloads: bool) -> StoredCommit:
        if not commit.apart or (not payloads and commit.records):
            return commit
        session = tail.head.session
        subject = self._subjects.of(tail.shard, "p", session, commit.first)
        parts = [m.data for m in await self._connection.all(self._subjects.stream(tail.shard), subject)]
        try:
            return messages.join_commit(commit, parts[-commit.apart :])
        except CorruptLogError as exc:
            what = f"the content of event {commit.first} of session {session} is incomplete: {exc.message}"
            raise CorruptLogError(what, seq=commit.first, upto=commit.last, session=session) from exc

    # Ids, snapshots, forks

    async def known(self, tail: SessionTail, commit_id: str) -> Known | None:
        """The answer that was given to a commit id chosen by its caller."""
        session, stream = tail.head.session, self._subjects.stream(tail.shard)
        subject = self._subjects.of(tail.shard, "i", session, digest_token(commit_id))
        message = await self._connection.last(stream, subject)
        if message is not None:
            return messages.decode_id(message.data).known(session, tail.head.fork, tail.head.name)
        if tail.has_lists:
            for page in await self._connection.all(stream, self._subjects.of(tail.shard, "j", session)):
                for each in messages.decode_ids(page.data):
                    if each.commit_id == commit_id:
                        return each.known(session, tail.head.fork, tail.head.name)
        return None

    async def snapshot(self, tail: SessionTail, upto: Seq) -> Snapshot | None:
        session, stream = tail.head.session, self._subjects.stream(tail.shard)
        for seq in sorted((s for s in await self.snapshot_seqs(tail) if s <= upto), reverse=True):
            parts = await self._parts(stream, self._subjects.of(tail.shard, "s", session, seq))
            try:
                found = Snapshot(seq, messages.join_parts([part.data for part in parts]))
            except CorruptLogError:
                continue  # partly erased: use an older one
            # It was stored together with its commit, so later events can be read from here.
            self._tails.note_place(session, seq, parts[-1].seq)
            return found
        return None

    async def _parts(self, stream: str, subject: str) -> list[StreamMessage]:
        """All messages of a subject, from any replica."""
        found = page = await self._connection.run(stream, subject, 1)
        while len(page) > 1:
            page = await self._connection.run(stream, subject, page[-1].seq + 1)
            found = found + page
        return found

    async def snapshot_seqs(self, tail: SessionTail) -> list[Seq]:
        pattern = self._subjects.of(tail.shard, "s", tail.head.session, "*")
        found = await self._connection.subjects(self._subjects.stream(tail.shard), pattern)
        return [int(subject.rpartition(".")[2]) for subject in found]

    async def forks(self, session: SessionId, shard: int) -> list[SessionTail]:
        """The direct forks of a session."""
        opened = await self._connection.subjects(self._subjects.stream(shard), self._subjects.forks(shard, session))
        ids = sorted(self._subjects.session_of(subject) for subject in opened)
        return list(await asyncio.gather(*(self._tails.get(each) for each in ids)))


def _by_last(found: list[StreamMessage]) -> dict[Seq, StoredCommit]:
    return {c.last: c for message in found for c in messages.decode_commits(message.data)}
