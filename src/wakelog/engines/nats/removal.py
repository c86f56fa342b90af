"""Erasing, pruning and deleting, safe at every step.

A stored message cannot be changed, only erased: overwritten with noise on every replica. So a removal has two halves.

The first half is one atomic batch: the commits that record the removal, the rewritten commits (subject `r`), and a note
of the messages to erase (subject `d`). From then on readers see the new bytes, because rewritten commits take
precedence over those in the stream.

The second half erases every message in the note, and then the note itself. Each step is idempotent. If this process
dies, the note stays, and the next process that reads or changes the session, or opens the store, finishes the work. The
caller is answered when it is done.

A deletion is similar: the tombstone, a mark that forbids new forks (subject `x`; the opening of a fork expects that it
does not exist), and a note. The second half frees the name, and drops the content unless a fork still reads through it.
In that case the content is dropped with the last of these forks, whose own removal checks its parents. This order is
safe: a fork that was opened before the tombstone is seen, and none can be opened after it.

There is one generation of a session's rewritten commits at a time: a removal writes all of them again, and erases the
messages of the previous generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from wakelog.engine import Surgery
from wakelog.engines.nats import messages
from wakelog.engines.nats.append_lanes import AppendLanes
from wakelog.engines.nats.commit_messages import group_by_size, limit_of
from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import translate_error
from wakelog.engines.nats.messages import DueWork, StoredCommit
from wakelog.engines.nats.name_book import NameBook
from wakelog.engines.nats.reader import SessionReader
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects, digest_token
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError, WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head

AT_ONCE = 32


class SessionRemoval:
    """Runs on the loop."""

    def __init__(
        self,
        connection: NatsConnection,
        subjects: Subjects,
        tails: SessionTails,
        reader: SessionReader,
        lanes: AppendLanes,
        names: NameBook,
    ) -> None:
        self._connection, self._subjects, self._tails = connection, subjects, tails
        self._reader, self._lanes, self._names = reader, lanes, names

    # The first half

    async def operate(self, surgery: Surgery) -> Head:
        touched = list(
            dict.fromkeys((*(c.session for c in surgery.rewritten), *surgery.stale_from, *surgery.pruned_to))
        )
        for session in touched:
            await self.finish(session)

        async def make_extra(tails: dict[SessionId, SessionTail | None]) -> list[NewMessage]:
            found: list[NewMessage] = []
            for session in touched:
                tail = tails[session]
                if tail is None:
                    raise NotFoundError(f"there is no session {session}", kind="session-not-found")
                rewritten = [c for c in surgery.rewritten if c.session == session]
                has_record = any(c.session == session for c in surgery.commits)
                found += await self._rewrite(tail, rewritten, surgery, has_record)
            return found

        head = await self._lanes.store(surgery.commits, make_extra, also=touched)
        for session in touched:
            await self._finish_now(session)
        return head

    async def _rewrite(
        self, tail: SessionTail, rewritten: Sequence[Commit], surgery: Surgery, has_record: bool
    ) -> list[NewMessage]:
        """Messages with the session's rewritten commits, and the note of messages to erase."""
        session, shard = tail.head.session, tail.shard
        limit = limit_of(self._connection.max_bytes)
        erase = await self._stale_snapshots(tail, surgery)
        found: list[NewMessage] = []
        if rewritten:
            old = await self._reader.rewritten_messages(shard, session)
            kept = {c.last: c for m in old for c in messages.decode_commits(m.data)}
            originals = await self._originals(tail, {c.last for c in rewritten} - set(kept))
            if tail.seq in originals and not has_record:
                raise InvalidInputError(f"the head of {session} cannot be rewritten by itself", kind="bad-surgery")
            erase += [m.seq for m in old] + list(originals)
            kept |= {c.last: c for commits in originals.values() for c in commits}
            for commit in rewritten:
                before = kept.get(commit.last)
                if before is None:
                    raise NotFoundError(f"{session} has no commit that ends at {commit.last}", kind="event-not-found")
                erase += await self._parts(tail, before)
                stored = messages.to_stored(commit, tail.head.fork, has_lists=before.has_lists)
                slim, parts = messages.split_commit(stored, limit)
                found += [NewMessage(self._subjects.of(shard, "p", session, commit.first), p) for p in parts]
                kept[commit.last] = slim
            ids, gone = await self._chosen_ids(tail, rewritten)
            found += ids
            erase += gone
            found += self._rewritten_messages(tail, kept.values(), old[-1].seq if old else 0, limit)
        if erase:
            due = messages.encode(DueWork(erase=tuple(sorted(set(erase)))))
            found.append(NewMessage(self._subjects.of(shard, "d", session), due, 0))
        return found

    def _rewritten_messages(
        self, tail: SessionTail, kept: Iterable[StoredCommit], last: int, limit: int
    ) -> list[NewMessage]:
        subject = self._subjects.of(tail.shard, "r", tail.head.session)
        found: list[NewMessage] = []
        expected: int | None = last
        for pack in group_by_size(sorted(kept, key=lambda c: c.first), limit):
            found.append(NewMessage(subject, messages.encode_commits(pack), expected))
            expected = None
        return found

    async def _originals(self, tail: SessionTail, lasts: set[Seq]) -> dict[int, tuple[StoredCommit, ...]]:
        """The messages with commits that end at these events."""
        found: dict[int, tuple[StoredCommit, ...]] = {}
        if lasts:
            async for message, commits in self._reader.messages(tail, min(lasts) - 1, max(lasts)):
                if any(c.last in lasts for c in commits):
                    found[message.seq] = commits
        return found

    async def _parts(self, tail: SessionTail, commit: StoredCommit) -> list[int]:
        if not commit.apart:
            return []
        subject = self._subjects.of(tail.shard, "p", tail.head.session, commit.first)
        return [m.seq for m in await self._connection.all(self._subjects.stream(tail.shard), subject)]

    async def _chosen_ids(self, tail: SessionTail, rewritten: Sequence[Commit]) -> tuple[list[NewMessage], list[int]]:
        """New messages for the chosen ids of rewritten commits, with their new fingerprints; and the old messages."""
        stream, session = self._subjects.stream(tail.shard), tail.head.session
        new: list[NewMessage] = []
        old: list[int] = []
        left = {c.commit_id: c.fingerprint for c in rewritten}
        for commit_id, fingerprint in left.items():
            subject = self._subjects.of(tail.shard, "i", session, digest_token(commit_id))
            message = await self._connection.last(stream, subject)
            if message is not None and (known := messages.decode_id(message.data)).fingerprint != fingerprint:
                changed = msgspec.structs.replace(known, fingerprint=fingerprint)
                new.append(NewMessage(subject, messages.encode(changed), message.seq))
                old.append(message.seq)
        if tail.has_lists:
            subject = self._subjects.of(tail.shard, "j", session)
            for message in await self._connection.all(stream, subject):
                page = messages.decode_ids(message.data)
                replace = msgspec.structs.replace
                changed_page = [replace(e, fingerprint=left.get(e.commit_id, e.fingerprint)) for e in page]
                if changed_page != list(page):
                    new.append(NewMessage(subject, messages.encode(changed_page)))
                    old.append(message.seq)
        return new, old

    async def _stale_snapshots(self, tail: SessionTail, surgery: Surgery) -> list[int]:
        session = tail.head.session
        stale, pruned = surgery.stale_from.get(session), surgery.pruned_to.get(session)
        if stale is None and pruned is None:
            return []
        seqs = [
            s
            for s in await self._reader.snapshot_seqs(tail)
            if (stale is not None and s >= stale) or (pruned is not None and s < pruned)
        ]
        return await self._snapshot_messages(tail, seqs)

    async def _snapshot_messages(self, tail: SessionTail, seqs: Iterable[Seq]) -> list[int]:
        stream, found = self._subjects.stream(tail.shard), list[int]()
        for seq in seqs:
            subject = self._subjects.of(tail.shard, "s", tail.head.session, seq)
            found += [m.seq for m in await self._connection.all(stream, subject)]
        return found

    async def delete(self, commit: Commit) -> Head:
        session = commit.session

        async def make_extra(tails: dict[SessionId, SessionTail | None]) -> list[NewMessage]:
            tail = tails[session]
            assert tail is not None, "a commit for a missing session passed"
            due = messages.encode(DueWork(is_deletion=True))
            return [
                NewMessage(self._subjects.of(tail.shard, "x", session), b"", 0),
                NewMessage(self._subjects.of(tail.shard, "d", session), due, 0),
            ]

        await self.finish(session)
        head = await self._lanes.store((commit,), make_extra)
        await self._finish_now(session)
        return msgspec.structs.replace(head, name="")

    async def drop_snapshots(self, session: SessionId) -> None:
        tail = await self._tails.find(session, named=False)
        if tail is not None:
            found = await self._snapshot_messages(tail, await self._reader.snapshot_seqs(tail))
            await self._erase(tail.shard, found)

    # The second half

    async def finish(self, session: SessionId) -> None:
        """Finishes an earlier removal of this session, if there is one."""
        shard = await self._tails.shard_of(session)
        stream = self._subjects.stream(shard)
        note = await self._connection.last(stream, self._subjects.of(shard, "d", session))
        if note is None:
            return
        due = messages.decode_due(note.data)
        await self._erase(shard, due.erase)
        if due.is_deletion:
            await self._free_name(session, shard)
            await self._drop_if_unread(session)
        self._tails.forget_places(session)
        await self._connection.erase(stream, note.seq)

    async def _finish_now(self, session: SessionId) -> None:
        try:
            await self.finish(session)
        except Exception as exc:
            if isinstance(exc, WakelogError) and not isinstance(exc, UnavailableError):
                raise
            raise UnavailableError(
                f"the content is removed, but old bytes are still in the cluster's files: {translate_error(exc)}",
                kind="scrub-pending",
                hint="it is finished when the session is read or the store is opened; or run wakelog store scrub",
            ) from exc

    async def finish_all(self, shard: int) -> None:
        """Finishes all removals in a shard."""
        found = await self._connection.subjects(self._subjects.stream(shard), self._subjects.kind(shard, "d"))
        for subject in found:
            await self.finish(self._subjects.session_of(subject))

    async def _erase(self, shard: int, seqs: Iterable[int]) -> None:
        stream, limit = self._subjects.stream(shard), asyncio.Semaphore(AT_ONCE)

        async def one(seq: int) -> None:
            async with limit:
                await self._connection.erase(stream, seq)

        await asyncio.gather(*map(one, seqs))

    async def _free_name(self, session: SessionId, shard: int) -> None:
        stream, subject = self._subjects.stream(shard), self._subjects.of(shard, "t", session)
        titles = await self._connection.all(stream, subject)
        for title in titles:
            await self._names.free(title.data.decode("utf-8", "surrogatepass"), session)
        await self._erase(shard, [t.seq for t in titles])
        self._tails.set_name(session, "")

    async def _drop_if_unread(self, session: SessionId) -> None:
        """Drops a deleted session's content if no fork reads through it, and then does the same for its parents."""
        at: SessionId | None = session
        while at is not None:
            tail = await self._tails.get(at, named=False)
            if tail.head.status != "deleted" or await self._is_read(tail):
                return
            await self._drop(tail)
            at = tail.head.fork.parent if tail.head.fork else None

    async def _is_read(self, tail: SessionTail) -> bool:
        unseen = [tail.head.session]
        while unseen:
            forks = await self._reader.forks(unseen.pop(), tail.shard)
            if any(f.head.status != "deleted" for f in forks):
                return True
            unseen += [f.head.session for f in forks]
        return False

    async def _drop(self, tail: SessionTail) -> None:
        """Erases everything of a session except its opening, its tombstone and the mark of its deletion."""
        session, shard = tail.head.session, tail.shard
        stream = self._subjects.stream(shard)
        gone = [m.seq async for m, _ in self._reader.messages(tail) if m.seq < tail.seq]
        for kind in ("r", "j"):
            gone += [m.seq for m in await self._connection.all(stream, self._subjects.of(shard, kind, session))]
        for kind in ("p", "i", "s"):
            found = await self._connection.subjects(stream, self._subjects.of(shard, kind, session, "*"))
            for subject in found:
                gone += [m.seq for m in await self._connection.all(stream, subject)]
        await self._erase(shard, gone)
        await self._names.forget_beat(session)
        self._tails.forget_places(session)
