"""Reading one session: its commits in order, those that were rewritten, ids, snapshots.

The stream numbers messages, not events. So where an event is, is found by asking for the first message of the session
behind a guess, and guessing better: a few questions in a stream of any length, and none where this process has read
before. A read goes up to the head that the leader told when it began. What was erased or pruned has left the stream;
it is kept rewritten in messages of its own (subject `r`), which a read puts in their places."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from wakelog.engine import Known
from wakelog.engines.nats import messages
from wakelog.engines.nats.connection import RUN_MAX, NatsConnection, StreamMessage
from wakelog.engines.nats.message_cache import KeptMessage, MessageCache
from wakelog.engines.nats.messages import StoredCommit
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Snapshot

NEAR = 400
"""Events that are read over rather than searched over."""
SEARCH_MAX = 48


class SessionReader:
    """Reads sessions of one engine. Lives on the loop."""

    def __init__(self, connection: NatsConnection, subjects: Subjects, tails: SessionTails) -> None:
        self._connection, self._subjects, self._tails = connection, subjects, tails
        self.cache = MessageCache()

    # Messages

    async def messages(
        self, tail: SessionTail, after: Seq = 0, upto: Seq | None = None
    ) -> AsyncIterator[tuple[StreamMessage, tuple[StoredCommit, ...]]]:
        """The messages of commits that touch a range, from the one that holds event `after` + 1 up to the tail."""
        session = tail.head.session
        stream, subject = self._subjects.stream(tail.shard), self._subjects.of(tail.shard, "c", session)
        if after >= tail.head.seq:
            return
        at, reached = await self._place(tail, after + 1)
        end = tail.head.seq if upto is None else min(upto, tail.head.seq)
        while at <= tail.seq:
            count = min(RUN_MAX, max(1, end - reached + 1))  # what is read over counts too
            page = await self._connection.run(stream, subject, at, count)
            if not page:
                # The replica has nothing more, and may be behind: the leader knows.
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

    async def _place(self, tail: SessionTail, wanted: Seq) -> tuple[int, Seq]:
        """A place in the stream at or before the message that holds an event, not far from it; and the event that the
        message before it ends with, or an earlier one."""
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
            # By proportion, and every third time by halves: events may lie unevenly.
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

    async def _kept_messages(self, tail: SessionTail, after: Seq, upto: Seq | None) -> AsyncIterator[KeptMessage]:
        """The same, the big ones from the cache where it has them."""
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
        """The commits that touch a range, in order, whole. `rewritten` are those of the session that are, as of now."""
        session = tail.head.session
        end = tail.head.seq if upto is None else min(upto, tail.head.seq)
        if rewritten:
            self.cache.forget(session)

        async def built(commit: StoredCommit, kept: KeptMessage | None = None) -> Commit:
            whole = kept.whole.get(commit.first) if kept is not None else None
            if whole is None:
                whole = await self._whole(tail, commit, payloads)
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
                    yield await built(waiting.pop(0))
                if before and commit.first > before + 1:
                    for missing in await self._fetch_gap(tail, before, commit.first):
                        yield await built(missing)
                before = commit.last
                yield await built(commit, kept)
        for commit in waiting:
            yield await built(commit)

    async def _fetch_gap(self, tail: SessionTail, before: Seq, first: Seq) -> list[StoredCommit]:
        """What was there when the read began, and was removed or rewritten since."""
        now = await self._tails.get(tail.head.session, named=False)
        if now.head.status == "deleted":
            raise NotFoundError(f"session {tail.head.session} was deleted while it was read", kind="session-deleted")
        rewritten = await self.rewritten(now)
        return sorted((c for c in rewritten.values() if before < c.first < first), key=lambda c: c.first)

    async def commit_at(self, tail: SessionTail, seq: Seq) -> StoredCommit | None:
        """The commit that holds an event, without what is kept in parts."""
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
        """The commits that are kept rewritten, by their last event."""
        return _by_last(await self._rewritten_in(tail.shard, tail.head.session))

    async def rewritten_now(self, session: SessionId) -> dict[Seq, StoredCommit]:
        """The same, of a session whose tail is being asked for."""
        return _by_last(await self._rewritten_in(await self._tails.shard_of(session), session))

    async def rewritten_messages(self, tail: SessionTail) -> list[StreamMessage]:
        """The newest wins, so that what an interrupted removal left behind does no harm."""
        return await self._rewritten_in(tail.shard, tail.head.session)

    async def _rewritten_in(self, shard: int, session: SessionId) -> list[StreamMessage]:
        return await self._connection.all(self._subjects.stream(shard), self._subjects.of(shard, "r", session))

    async def _whole(self, tail: SessionTail, commit: StoredCommit, payloads: bool) -> StoredCommit:
        if not commit.apart or (not payloads and commit.records):
            return commit
        session = tail.head.session
        subject = self._subjects.of(tail.shard, "p", session, commit.first)
        parts = [m.data for m in await self._connection.all(self._subjects.stream(tail.shard), subject)]
        try:
            return messages.put_together(commit, parts[-commit.apart :])
        except CorruptLogError as exc:
            what = f"what event {commit.first} of session {session} brought is not whole: {exc.message}"
            raise CorruptLogError(what, seq=commit.first, upto=commit.last, session=session) from exc

    # What is kept beside

    async def known(self, tail: SessionTail, commit_id: str) -> Known | None:
        """The answer once given under an id that its caller chose."""
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
                found = Snapshot(seq, messages.from_parts([part.data for part in parts]))
            except CorruptLogError:
                continue  # half dropped: an older one is as good
            # It was stored right before the commit that it is behind: what comes after is read from here.
            self._tails.note_place(session, seq, parts[-1].seq)
            return found
        return None

    async def _parts(self, stream: str, subject: str) -> list[StreamMessage]:
        """All that a subject has, told by any replica."""
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
