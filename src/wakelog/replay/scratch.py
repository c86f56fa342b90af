"""A session as it was at a point, continued in memory: reads come from the store, appended events stay here.

A strict replay runs in such a session. It has the original id and continues at the same seq, so that everything the
agent builds from them is the same; and it leaves no trace. Other sessions of the store can be read but not written.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

import msgspec

from wakelog.codec.pack import pack_snapshot
from wakelog.codec.records import decode_body
from wakelog.engine import Abilities, Engine, FeedChange, Known, Surgery, head_after, judge, payload_of
from wakelog.engines.append_answer import AppendAnswer
from wakelog.errors import UnsupportedError
from wakelog.log import Log
from wakelog.log.reader import check_commit, fold_at
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, ForkPoint, Head, Heartbeat, Snapshot


def scratch_log(log: Log, at: Seq) -> Log:
    """The session as it was after event `at`, in memory."""
    return Log(ScratchEngine(log, at), log.id, clock=log.clock, redact=log.redact)


class ScratchEngine:
    """An engine in which one session, cut off at a point, can be written; everything else is read from the engine
    below."""

    durability = "memory"

    def __init__(self, log: Log, at: Seq) -> None:
        self._below: Engine = log.engine
        self._id = log.id
        self._at = at
        self._news = threading.Condition(threading.RLock())
        self._commits: list[Commit] = []
        self._ids: dict[str, Commit] = {}
        now, entry, fold = log.head(), log.entry(at), fold_at(log.engine, log.segments, at).fold
        # Events before the point may have been pruned, which only a later event says. So the state is kept here.
        self._snapshots: dict[Seq, bytes] = {at: pack_snapshot(fold.dump())}
        state = fold.doc
        self._status, self._turn, self._epoch = state["status"], state["turn"]["number"], state["lease"]["epoch"]
        fork = now.fork
        if fork is not None and at < fork.at:
            # The point is in the inherited part, so the session has no events of its own yet.
            fork = ForkPoint(fork.parent, at, entry.hash)
        self._own = fork.at if fork is not None else 0
        self._head = Head(
            session=log.id,
            seq=at,
            hash=entry.hash,
            at=entry.header.at,
            epoch=self._epoch,
            status=self._status,
            turn=self._turn,
            commit_id=entry.commit_id,
            fork=fork,
            name=now.name,
        )

    @property
    def abilities(self) -> Abilities:
        return Abilities()

    # Appending

    def submit(self, *commits: Commit) -> AppendAnswer:
        with self._news:
            fresh: list[Commit] = []
            head = answer = self._head
            for commit in commits:
                if commit.session != self._id:
                    self._refuse(f"session {commit.session} cannot be written")
                known = self.known(self._id, commit.commit_id)
                repeated = judge(commit, head, known)
                if repeated is None:
                    head = msgspec.structs.replace(head_after(commit), fork=self._head.fork, name=self._head.name)
                    fresh.append(commit)
                answer = repeated or head
            for commit in fresh:
                self._commits.append(msgspec.structs.replace(commit, snapshot=None))
                self._ids[commit.commit_id] = commit
                if commit.snapshot is not None:
                    self._snapshots[commit.last] = commit.snapshot
            self._head = head
            self._news.notify_all()
            done = AppendAnswer(commits)
            done.give(answer)
            return done

    def operate(self, surgery: Surgery) -> Head:
        self._refuse("nothing can be erased or pruned")

    def delete(self, commit: Commit) -> Head:
        self._refuse("nothing can be deleted")

    def claim(self, name: str, session: SessionId) -> SessionId:
        self._refuse("no name can be given")

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        """Does nothing: this session has no watchers."""

    def drop_snapshots(self, session: SessionId) -> None:
        with self._news:
            self._snapshots = {at: state for at, state in self._snapshots.items() if at == self._at}

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise UnsupportedError(
            f"{what} in a strict replay, which stores nothing",
            kind="strict-replay",
            hint="replay(…, record=True) replays in a fork instead",
        )

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        if session != self._id:
            return self._below.read(session, after=after, upto=upto, payloads=payloads)
        with self._news:
            begin = bisect.bisect_right(self._commits, after, key=lambda c: c.last)
            end = None if upto is None else bisect.bisect_right(self._commits, upto, key=lambda c: c.first)
            commits = self._commits[begin:end]
        kept = commits if payloads else [msgspec.structs.replace(c, payloads=()) for c in commits]
        return self._read_both(after, upto, payloads, kept)

    def _read_both(self, after: Seq, upto: Seq | None, payloads: bool, own: list[Commit]) -> Iterator[Commit]:
        """The commits in the store up to the point, then those appended here."""
        last = self._at if upto is None else min(upto, self._at)
        if self._own < self._at and after < last:
            for commit in self._below.read(self._id, after=after, upto=last, payloads=payloads):
                yield commit if commit.last <= self._at else self._cut(commit)
        yield from own

    def _cut(self, commit: Commit) -> Commit:
        """The first part of a commit that continues after the point."""
        headers, hashes = check_commit(commit)
        kept = self._at - commit.first + 1
        headers = headers[:kept]
        turns = [h.turn for h in headers if h.turn]
        bodies = (
            decode_body(r.body) for h, r in zip(headers, commit.records, strict=False) if h.kind == "file.changed"
        )
        return msgspec.structs.replace(
            commit,
            last=self._at,
            hash=hashes[kept - 1],
            epoch=self._epoch,
            status=self._status,
            turn=self._turn,
            turns=(min(turns), max(turns)) if turns else (0, 0),
            kinds=tuple(dict.fromkeys(h.kind for h in headers)),
            paths=tuple(dict.fromkeys(str(body.get("path", "")) for body in bodies)),
            records=commit.records[:kept],
            snapshot=None,
            fingerprint=b"",
        )

    def head(self, session: SessionId) -> Head:
        with self._news:
            return self._head if session == self._id else self._below.head(session)

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        if session == self._id:
            with self._news:
                commit = self._ids.get(commit_id)
            if commit is not None:
                return Known(msgspec.structs.replace(head_after(commit), fork=self._head.fork), commit.fingerprint)
        known = self._below.known(session, commit_id)
        return known if session != self._id or (known is not None and known.head.seq <= self._at) else None

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        if session != self._id or seq <= self._at:
            return self._below.payload(session, seq, digest)
        return payload_of(self, session, seq, digest)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        if session != self._id:
            return self._below.snapshot(session, upto=upto)
        with self._news:
            seq = max((s for s in self._snapshots if s <= upto), default=0)
            if seq:
                return Snapshot(seq, self._snapshots[seq])
        return self._below.snapshot(session, upto=upto) if self._own < self._at else None

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        return [self._head if h.session == self._id else h for h in self._below.sessions(after=after, limit=limit)]

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        heads = self._below.children(session, deleted=deleted)
        return [h for h in heads if session != self._id or (h.fork is not None and h.fork.at <= self._at)]

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        return self._below.changes(cursor, limit)

    def find(self, name: str) -> SessionId | None:
        return self._below.find(name)

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        return None if session == self._id else self._below.last_beat(session)

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        with self._news:
            return self._news.wait_for(lambda: self._head.seq > after, timeout_s)

    def close(self) -> None:
        """The engine below belongs to the caller."""
