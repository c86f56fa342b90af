"""What an append stores: each commit is judged by the heads of the sessions."""

from __future__ import annotations

import msgspec

from wakelog.engine import Known, head_after, judge
from wakelog.engines.nats.commit_messages import commit_messages, lists_ids
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.errors import NotFoundError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head


class AppendPlan:
    """Judges commits in order, and collects those to store. `is_guess`: the tails are cached and may be outdated."""

    def __init__(
        self,
        shard: int,
        generation: int,
        tails: dict[SessionId, SessionTail | None],
        subjects: Subjects,
        is_guess: bool,
    ) -> None:
        self.shard, self.generation, self.tails, self.is_guess = shard, generation, tails, is_guess
        self.fresh: list[Commit] = []
        self.known: dict[tuple[SessionId, str], Known | None] = {}
        self.parents: dict[SessionId, SessionTail | None] = {}
        self.names: dict[SessionId, str] = {}
        """Names of sessions that do not exist yet: a name can be claimed before."""
        self.has_refused = False
        self._subjects = subjects
        self._heads: dict[SessionId, Head | None] = {s: t.head if t is not None else None for s, t in tails.items()}

    def judge(self, commit: Commit) -> Head:
        head = self._heads[commit.session]
        answer = judge(commit, head, self._known_here(commit) or self.known.get((commit.session, commit.commit_id)))
        if answer is not None:
            return answer
        if head is None and commit.fork is not None:
            self._check_parent(commit)
        after = head_after(commit, head)
        if head is None:
            after = msgspec.structs.replace(after, name=self.names.get(commit.session, ""))
        self.fresh.append(commit)
        self._heads[commit.session] = after
        return after

    def _known_here(self, commit: Commit) -> Known | None:
        """The answer to an id that occurs twice in this plan."""
        for each in self.fresh:
            if each.session == commit.session and each.commit_id == commit.commit_id:
                return Known(head_after(each, self._heads[commit.session]), each.fingerprint)
        return None

    def _check_parent(self, commit: Commit) -> None:
        assert commit.fork is not None
        parent = commit.fork.parent
        tail = self.parents.get(parent)
        head = self._heads.get(parent) or (tail.head if tail is not None else None)
        if head is None or head.status == "deleted" or head.seq < commit.fork.at:
            raise NotFoundError(
                f"session {parent} has no event {commit.fork.at} to fork from", kind="session-not-found"
            )

    def mark(self) -> tuple[int, dict[SessionId, Head | None]]:
        return len(self.fresh), dict(self._heads)

    def roll_back(self, mark: tuple[int, dict[SessionId, Head | None]]) -> None:
        del self.fresh[mark[0] :]
        self._heads = mark[1]
        self.has_refused = True

    @property
    def opens_root(self) -> bool:
        return any(self.tails[c.session] is None and c.fork is None for c in self.fresh)

    async def messages(self, layout: LayoutKeeper, max_bytes: int) -> list[NewMessage]:
        """All messages. The commits of each session expect the tail that they were judged by."""
        fence = 0
        if self.opens_root:
            await layout.note_namespace()
            fence = await layout.fence(self.shard)
        return commit_messages(self._subjects, self.shard, self.fresh, self.tails, fence, max_bytes)

    def keep(self, tails: SessionTails, seq: int) -> None:
        """Updates the cached tails. The answer contains only the position of the last session."""
        for session in {c.session for c in self.fresh}:
            tails.forget(session)
        last = self.fresh[-1]
        head = self._heads[last.session]
        assert head is not None
        has_lists = lists_ids(self.tails[last.session], [c for c in self.fresh if c.session == last.session])
        tails.keep(SessionTail(self.shard, seq, head, has_lists))
        tails.note_place(last.session, last.last, seq)
