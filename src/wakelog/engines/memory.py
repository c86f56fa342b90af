"""The memory engine: dicts and lists behind one lock. For tests, notebooks and dry runs; lost when the process ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import msgspec

from wakelog.engine import (
    Abilities,
    FeedChange,
    Known,
    Surgery,
    head_after,
    judge,
    payload_of,
    refuse_place_in_no_session,
)
from wakelog.engines.append_answer import AppendAnswer
from wakelog.errors import NotFoundError, UnavailableError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot


class _Session:
    """One session's commits, and what other engines store in further tables."""

    def __init__(self, first: Commit) -> None:
        self.fork = first.fork
        self.commits: list[Commit] = []
        self.ids: dict[str, Commit] = {}
        self.chosen: set[str] = set()
        """The ids that callers chose. They stay known after the content and its fingerprint are removed."""
        self.snapshots: dict[Seq, bytes] = {}
        self.beat: Heartbeat | None = None
        self.head: Head | None = None


class MemoryEngine:
    """Stores everything in this process."""

    durability = "memory"

    def __init__(self) -> None:
        self._sessions: dict[SessionId, _Session] = {}
        self._names: dict[str, SessionId] = {}
        self._marks: dict[str, str] = {}
        self._feed: list[tuple[SessionId, Seq]] = []
        self._condition = threading.Condition(threading.RLock())
        self._is_closed = False

    @property
    def abilities(self) -> Abilities:
        return Abilities(live_sessions=self.live_sessions, marks=self)

    @property
    def _news(self) -> threading.Condition:
        """The lock that every method holds, which also notifies of new commits."""
        if self._is_closed:
            raise UnavailableError("the store in memory was closed, and its content is gone", kind="store-closed")
        return self._condition

    def submit(self, *commits: Commit) -> AppendAnswer:
        answer = AppendAnswer(commits)
        with self._news:
            try:
                answer.give(self._store(commits))
            except Exception as exc:
                answer.refuse(exc)
        return answer

    def _store(self, commits: tuple[Commit, ...]) -> Head:
        heads: dict[SessionId, Head | None] = {}
        fresh: list[Commit] = []
        answer: Head | None = None
        for commit in commits:
            session = self._sessions.get(commit.session)
            head = heads.get(commit.session, session.head if session else None)
            answer = judge(commit, head, self._known(commit))
            if answer is None:
                if session is None and commit.session not in heads and commit.fork is not None:
                    self._check_parent(commit, heads)
                answer = head_after(commit)
                fresh.append(commit)
                heads[commit.session] = answer
        for commit in fresh:
            self._append(commit)
        self._news.notify_all()
        assert answer is not None, "nothing was submitted"
        return self._with_name(answer)

    def _known(self, commit: Commit) -> Known | None:
        session = self._sessions.get(commit.session)
        stored = session.ids.get(commit.commit_id) if session else None
        return Known(head_after(stored), stored.fingerprint) if stored else None

    def _check_parent(self, commit: Commit, heads: dict[SessionId, Head | None]) -> None:
        assert commit.fork is not None
        parent = self._sessions.get(commit.fork.parent)
        head = heads.get(commit.fork.parent, parent.head if parent else None)
        if head is None or head.status == "deleted" or head.seq < commit.fork.at:
            raise NotFoundError(
                f"session {commit.fork.parent} has no event {commit.fork.at} to fork from", kind="session-not-found"
            )

    def _append(self, commit: Commit) -> None:
        session = self._sessions.setdefault(commit.session, _Session(commit))
        session.commits.append(msgspec.structs.replace(commit, snapshot=None))
        session.ids[commit.commit_id] = commit
        if commit.fingerprint:
            session.chosen.add(commit.commit_id)
        if commit.snapshot is not None:
            session.snapshots[commit.last] = commit.snapshot
        session.head = head_after(commit)
        self._feed.append((commit.session, commit.last))

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        with self._news:
            commits = [c for c in self._get(session).commits if c.last > after and (upto is None or c.first <= upto)]
        return iter(commits if payloads else [msgspec.structs.replace(c, payloads=()) for c in commits])

    def head(self, session: SessionId) -> Head:
        with self._news:
            head = self._get(session).head
            assert head is not None
            return self._with_name(head)

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        with self._news:
            found = self._get(session)
            commit = found.ids.get(commit_id) if commit_id in found.chosen else None
            return Known(self._with_name(head_after(commit)), commit.fingerprint) if commit else None

    def sessions(self, *, after: str = "", limit: int = 100) -> Sequence[Head]:
        with self._news:
            ids = sorted(i for i, s in self._sessions.items() if i > after and s.head and s.head.status != "deleted")
            return [self.head(i) for i in ids[:limit]]

    def children(self, session: SessionId, *, deleted: bool = False) -> Sequence[Head]:
        with self._news:
            heads = [s.head for s in self._sessions.values() if s.fork and s.fork.parent == session and s.head]
            return [self._with_name(h) for h in heads if deleted or h.status != "deleted"]

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        with self._news:
            start = int(cursor or 0)
            return [
                FeedChange(s, seq, str(start + i + 1)) for i, (s, seq) in enumerate(self._feed[start : start + limit])
            ]

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        return payload_of(self, session, seq, digest)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        with self._news:
            snapshots = self._get(session).snapshots
            seq = max((s for s in snapshots if s <= upto), default=0)
            return Snapshot(seq, snapshots[seq]) if seq else None

    def drop_snapshots(self, session: SessionId) -> None:
        with self._news:
            self._get(session).snapshots.clear()

    def claim(self, name: str, session: SessionId) -> SessionId:
        with self._news:
            return self._names.setdefault(name, session)

    def find(self, name: str) -> SessionId | None:
        with self._news:
            return self._names.get(name)

    def beat(self, session: SessionId, beat: Heartbeat) -> None:
        with self._news:
            self._get(session).beat = beat

    def last_beat(self, session: SessionId) -> Heartbeat | None:
        with self._news:
            return self._get(session).beat

    def live_sessions(self, since: int) -> list[SessionId]:
        with self._news:
            return [id_ for id_, each in self._sessions.items() if each.beat is not None and each.beat.until >= since]

    def mark(self, name: str) -> str | None:
        with self._news:
            return self._marks.get(name)

    def set_mark(self, name: str, value: str) -> None:
        with self._news:
            self._marks[name] = value

    def operate(self, surgery: Surgery) -> Head:
        with self._news:
            head = self._store(surgery.commits)
            for new in surgery.rewritten:
                commits = self._get(new.session).commits
                place = next(i for i, old in enumerate(commits) if old.last == new.last)
                commits[place] = new
                self._get(new.session).ids[new.commit_id] = new
            for session, seq in surgery.stale_from.items():
                entry = self._get(session)
                entry.snapshots = {at: data for at, data in entry.snapshots.items() if at < seq}
            for session, seq in surgery.pruned_to.items():
                entry = self._get(session)
                entry.snapshots = {at: data for at, data in entry.snapshots.items() if at >= seq}
            return head

    def delete(self, commit: Commit) -> Head:
        with self._news:
            head = self._store((commit,))
            self._names = {n: s for n, s in self._names.items() if s != commit.session}
            self._drop_if_unread(commit.session)
            return msgspec.structs.replace(head, name="")

    def _drop_if_unread(self, session: SessionId) -> None:
        """Drops a deleted session's content once no fork reads through it, and then checks its parent."""
        entry = self._sessions.get(session)
        if entry is None or entry.head is None or entry.head.status != "deleted" or self._has_readers(session):
            return
        entry.commits = entry.commits[-1:]
        entry.ids = {c.commit_id: c for c in entry.commits}
        entry.snapshots.clear()
        entry.beat = None
        if entry.fork:
            self._drop_if_unread(entry.fork.parent)

    def _has_readers(self, session: SessionId) -> bool:
        """Whether any fork, at any depth, still needs this session's content."""
        forks = [i for i, s in self._sessions.items() if s.fork and s.fork.parent == session]
        return any(
            (head := self._sessions[i].head) is not None and (head.status != "deleted" or self._has_readers(i))
            for i in forks
        )

    def wait(self, session: SessionId | None, *, after: Seq, timeout_s: float) -> bool:
        refuse_place_in_no_session(session, after)
        with self._news:
            start = len(self._feed)
            return self._news.wait_for(
                lambda: len(self._feed) > start if session is None else self.head(session).seq > after, timeout_s
            )

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def _get(self, session: SessionId) -> _Session:
        entry = self._sessions.get(session)
        if entry is None:
            raise NotFoundError(f"there is no session {session}", kind="session-not-found")
        return entry

    def _with_name(self, head: Head) -> Head:
        name = next((n for n, s in self._names.items() if s == head.session), "")
        return msgspec.structs.replace(head, name=name, fork=self._sessions[head.session].fork)
