"""Appending: in order within each session, many sessions at once.

Each session has a lane, which is first in, first out. Commits of one session that wait in its lane are sent together in
one message. An append to several sessions waits until it is first in all their lanes.

An append is judged by the tail that this process has cached, and names the message that it must follow. Only if that is
refused, by us or by the server, the current tail is read from the leader and the append is judged again. So a refusal
that a caller sees is always about the current head; and a commit that was stored before, but whose answer was lost, is
found and answered.

Most appends are one commit that follows a cached tail, in one message, or two with a snapshot. They take the *fast
path*: the caller's thread builds the messages, those of all sessions that wait are sent together (append_groups.py),
and the answer is set where the socket is read, without a task or a timer. Everything else takes the *slow path*, which
asks the leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from copy import copy

from wakelog.engine import Known, head_after, judge
from wakelog.engines.append_answer import AppendAnswer
from wakelog.engines.nats import messages
from wakelog.engines.nats.append_groups import AppendGroups, GroupMember
from wakelog.engines.nats.append_plan import AppendPlan
from wakelog.engines.nats.commit_messages import plain_messages
from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import (
    IN_FLIGHT,
    JetStreamRefusal,
    closed_meanwhile,
    is_temporary,
    may_be_stored,
    translate_error,
)
from wakelog.engines.nats.layout import LayoutKeeper
from wakelog.engines.nats.reader import SessionReader
from wakelog.engines.nats.stream_message import NewMessage
from wakelog.engines.nats.subjects import Subjects
from wakelog.engines.nats.tails import SessionTail, SessionTails
from wakelog.errors import UnavailableError, UnsupportedError, WakelogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head

TRIES = 100
TOGETHER_MAX = 128
DRAIN_S = 0.005
_PAUSE_S = 0.02
_COLLISION_S, _COLLISION_MAX_S = 0.002, 0.05

Extra = Callable[[dict[SessionId, SessionTail | None]], Awaitable[list[NewMessage]]]
"""Makes the further messages to store with commits, from the tails of their sessions."""


class LanedAppend(AppendAnswer):
    """A pending append, or other work that must not overlap with appends of some sessions."""

    def __init__(self, commits: tuple[Commit, ...], work: Callable[[], Awaitable[Head]] | None = None) -> None:
        super().__init__(commits)
        self.work = work
        first = commits[0].session
        self.sessions = frozenset([first]) if len(commits) == 1 else frozenset(c.session for c in commits)
        self.has_begun = False
        self.draft: tuple[SessionTail, tuple[NewMessage, ...]] | None = None
        """The messages, and the tail that they must follow."""
        self.hasten: Callable[[], None] | None = None
        """Sends it now, if it was to be sent with others."""

    def result(self) -> Head:
        if self.hasten is not None and not self.is_given:
            self.hasten()  # whoever waits may be in the thread that would send it later
        return super().result()


class _Sending:
    """Whether messages that were sent may be stored although nobody said so."""

    def __init__(self, is_unknown: bool) -> None:
        self.is_unknown = is_unknown

    def __enter__(self) -> None:
        self._was_unknown, self.is_unknown = self.is_unknown, True

    def __exit__(self, _: object, exc: BaseException | None, __: object) -> None:
        self.is_unknown = self._was_unknown or (exc is not None and may_be_stored(exc))


class AppendLanes:
    """The lanes of one engine. Runs on the loop."""

    def __init__(
        self,
        connection: NatsConnection,
        subjects: Subjects,
        layout: LayoutKeeper,
        tails: SessionTails,
        reader: SessionReader,
    ) -> None:
        self._connection, self._subjects, self._layout = connection, subjects, layout
        self._tails, self._reader = tails, reader
        self._groups = AppendGroups(connection, has_groups=lambda: layout.layout.replicas > 1)
        self._lanes: dict[SessionId, deque[LanedAppend]] = {}
        self._openings: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By shard. A server checks one expectation about a fence at a time and refuses the others."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = False

    def draft(self, pending: LanedAppend) -> None:
        """Builds the messages of an append for the fast path. Called in the caller's thread, because on the loop all
        other appends would wait for it."""
        if pending.work is None and len(pending.commits) == 1:
            [commit] = pending.commits
            pending.draft = self._make_draft(commit, self._tails.cached(commit.session))

    def put(self, pending: LanedAppend) -> None:
        if self._has_ended:
            pending.refuse(closed_meanwhile())
            return
        if pending.draft is not None and (session := pending.commits[0].session) not in self._lanes:
            self._lanes[session] = deque((pending,))  # the usual append: it is first, and nothing is behind it
            pending.has_begun = True
            if not self._send_fast(pending):
                self._start_task([pending])
            return
        for session in pending.sessions:
            self._lanes.setdefault(session, deque()).append(pending)
        self._start_if_first(pending)

    def send(self) -> None:
        """Sends what `put` has queued."""
        self._groups.send()

    async def drain(self) -> None:
        while self._lanes:
            await asyncio.sleep(DRAIN_S)

    async def end(self) -> None:
        """Answers everything that is left: nobody else will. Nothing is sent after this."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for lane in self._lanes.values():
            for each in lane:
                each.refuse(closed_meanwhile(is_unknown=each.has_begun))
        self._lanes.clear()

    def _start_if_first(self, pending: LanedAppend) -> None:
        if pending.has_begun or any(self._lanes[s][0] is not pending for s in pending.sessions):
            return
        together = self._take_together(pending)
        for each in together:
            each.has_begun = True
        if len(together) > 1 or not self._send_fast(pending):
            self._start_task(together)

    def _start_task(self, together: list[LanedAppend], failed: Exception | None = None) -> None:
        if self._has_ended:
            return
        task = asyncio.get_running_loop().create_task(self._run(together, failed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take_together(self, pending: LanedAppend) -> list[LanedAppend]:
        """The append, and those right behind it that are for the same session only."""
        if pending.work is not None or len(pending.sessions) > 1:
            return [pending]
        [session] = pending.sessions
        together: list[LanedAppend] = []
        for each in self._lanes[session]:
            if each.work is not None or len(each.sessions) > 1 or len(together) == TOGETHER_MAX:
                break
            together.append(each)
        return together

    async def _run(self, together: list[LanedAppend], failed: Exception | None) -> None:
        try:
            if (work := together[0].work) is not None:
                together[0].give(await work())
            else:
                await self._append(together, failed)
        except BaseException as exc:
            for each in together:
                each.refuse(copy(translate_error(exc)))
            if not isinstance(exc, Exception):
                raise
        finally:
            if not self._has_ended:
                self._leave(together)

    def _leave(self, together: list[LanedAppend]) -> None:
        if len(together) == 1 and len(together[0].sessions) == 1:
            lane = self._lanes[session := together[0].commits[0].session]
            if len(lane) == 1:
                del self._lanes[session]  # the usual append: nothing is behind it
                return
        fronts: list[LanedAppend] = []
        for each in together:
            for session in each.sessions:
                lane = self._lanes[session]
                lane.popleft()
                if lane:
                    fronts.append(lane[0])
                else:
                    del self._lanes[session]
        for front in fronts:
            self._start_if_first(front)
        if fronts:
            self._groups.send()

    # The fast path

    def _make_draft(
        self, commit: Commit, tail: SessionTail | None
    ) -> tuple[SessionTail, tuple[NewMessage, ...]] | None:
        """The messages of a commit that follows a tail, if that is all it needs. Called in any thread."""
        if tail is None:
            return None
        try:
            if judge(commit, tail.head, None) is not None:
                return None
        except WakelogError:
            return None
        found = plain_messages(self._subjects, commit, tail, self._connection.max_bytes)
        return (tail, found) if found is not None else None

    def _send_fast(self, pending: LanedAppend) -> bool:
        """Queues an append to be sent; False if it needs the slow path."""
        if pending.work is not None or len(pending.commits) > 1:
            return False
        [commit] = pending.commits
        tail, draft = self._tails.cached(commit.session), pending.draft
        if draft is None or draft[0] is not tail:
            draft = self._make_draft(commit, tail)
        if draft is None or tail is None:
            return False
        before = tail

        def stored(seq: int | Exception) -> None:
            if self._has_ended:
                return
            if isinstance(seq, Exception):
                self._start_task([pending], seq)
                return
            head = head_after(commit, before.head)
            self._tails.advance(before, head, seq)
            pending.give(head)
            self._leave([pending])

        self._groups.put(tail.shard, GroupMember(commit.session, draft[1], stored))
        return True

    # The slow path

    async def _append(self, together: list[LanedAppend], failed: Exception | None) -> None:
        """Judges the appends in order, and stores those that pass together."""
        if len(together) == 1:
            together[0].give(await self.store(together[0].commits, failed=failed))
            return
        refused: dict[int, Exception] = {}
        answers: dict[int, Head] = {}

        def judge_all(plan: AppendPlan) -> None:
            refused.clear()
            answers.clear()
            for number, each in enumerate(together):
                mark = plan.mark()
                try:
                    for commit in each.commits:
                        answers[number] = plan.judge(commit)
                except WakelogError as exc:
                    plan.roll_back(mark)
                    answers.pop(number, None)
                    refused[number] = exc

        await self._store(together[0].sessions, [c for each in together for c in each.commits], judge_all)
        for number, each in enumerate(together):
            if number in refused:
                each.refuse(refused[number])
            else:
                each.give(answers[number])

    async def store(
        self,
        commits: Sequence[Commit],
        extra: Extra | None = None,
        *,
        also: Sequence[SessionId] = (),
        failed: Exception | None = None,
    ) -> Head:
        """Stores commits that belong together, with their extra messages, or nothing. `failed` says how it ended when
        they were sent before."""
        answer: list[Head] = []

        def judge_all(plan: AppendPlan) -> None:
            answer[:] = [plan.judge(commit) for commit in commits]

        await self._store(frozenset((*(c.session for c in commits), *also)), commits, judge_all, extra, failed)
        return answer[-1]

    async def _store(
        self,
        sessions: frozenset[SessionId],
        commits: Sequence[Commit],
        judge_all: Callable[[AppendPlan], None],
        extra: Extra | None = None,
        failed: Exception | None = None,
    ) -> None:
        """Tries until the commits are stored, or refused by the current heads, or the time is over. Only a refusal by
        the heads, or one without a message that may still arrive, says that nothing was stored."""
        sending = _Sending(failed is not None and may_be_stored(failed))
        try:
            await self._try_to_store(sessions, commits, judge_all, extra, failed is None, sending)
        except (UnavailableError, asyncio.CancelledError) as exc:
            if sending.is_unknown:
                raise translate_error(exc, is_unknown=True) from exc
            raise
        except WakelogError:
            raise
        except Exception as exc:
            for session in sessions:
                self._tails.forget(session)
            raise translate_error(exc, is_unknown=sending.is_unknown) from exc

    async def _try_to_store(
        self,
        sessions: frozenset[SessionId],
        commits: Sequence[Commit],
        judge_all: Callable[[AppendPlan], None],
        extra: Extra | None,
        is_first: bool,
        sending: _Sending,
    ) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._connection.patience_s
        is_guess = extra is None and is_first
        pause, collision_s, tries = _PAUSE_S, _COLLISION_S, 0
        while tries < TRIES:
            tries += 1
            try:
                plan = await self._plan(sessions, commits, is_guess)
                new_messages = await self._make_messages(plan, judge_all, extra)
                is_guess = False
                if new_messages is None:
                    continue
                if not new_messages:
                    return  # everything was stored before
                async with self._openings[plan.shard] if plan.opens_root else contextlib.nullcontext():
                    with sending:
                        seq = await self._connection.put(self._subjects.stream(plan.shard), new_messages)
                plan.keep(self._tails, seq)
                return
            except WakelogError:
                raise
            except Exception as exc:
                is_guess = False
                if isinstance(exc, JetStreamRefusal) and exc.is_wrong_head:
                    self._layout.forget_fences()
                    if exc.err_code == IN_FLIGHT:
                        await asyncio.sleep(random.uniform(_COLLISION_S / 2, collision_s))
                        collision_s = min(2 * collision_s, _COLLISION_MAX_S)
                        tries -= clock() < deadline
                    continue
                left = deadline - clock()
                if not is_temporary(exc):
                    raise
                if left <= 0:
                    await self._connection.change_server()  # or a caller without patience would stay for ever
                    raise
            pause = await self._connection.pause(pause, max(left, 0.0))
        raise UnavailableError("other writers came first every time", kind="too-busy", hint="try again")

    async def _make_messages(
        self, plan: AppendPlan, judge_all: Callable[[AppendPlan], None], extra: Extra | None
    ) -> list[NewMessage] | None:
        """The messages to send, empty if everything was stored before. None: make the plan again from the current
        tails."""
        try:
            judge_all(plan)
        except WakelogError:
            if not plan.is_guess:
                raise
            return None
        if plan.is_guess and plan.has_refused:
            return None
        if not plan.fresh:
            return []
        found = await plan.messages(self._layout, self._connection.max_bytes)
        if self._layout.layout.active != plan.generation:
            return None  # shards were added, so a new session may belong elsewhere
        # The extra messages come first, because the answer is the seq of the last message, which must be a head.
        return [*(await extra(plan.tails) if extra is not None else ()), *found]

    async def _shard(self, sessions: frozenset[SessionId]) -> int:
        shards = {await self._tails.shard_of(session) for session in sessions}
        if len(shards) > 1:
            raise UnsupportedError(
                f"these commits belong to {len(shards)} shards, and only one shard can store commits together",
                kind="shards-apart",
                hint="submit the commits of each fork tree separately",
            )
        return shards.pop()

    async def _plan(self, sessions: frozenset[SessionId], commits: Sequence[Commit], is_guess: bool) -> AppendPlan:
        generation = self._layout.layout.active
        shard = await self._shard(sessions)
        tails: dict[SessionId, SessionTail | None] = {}
        if is_guess:
            tails = {s: self._tails.cached(s) for s in sessions}
            has_ids = any(c.fingerprint for c in commits)
            is_guess = all(
                not (tail.has_lists and has_ids) if tail is not None else self._tails.is_missing(session)
                for session, tail in tails.items()
            )
        if not is_guess:
            found = await asyncio.gather(*(self._tails.find(s) for s in sessions))
            tails = dict(zip(sessions, found, strict=True))
        plan = AppendPlan(shard, generation, tails, self._subjects, is_guess)
        for session in (s for s, tail in tails.items() if tail is None):
            plan.names[session] = await self._tails.name_of(session, shard)
        if not is_guess:
            for commit in commits:
                plan.known[commit.session, commit.commit_id] = await self._known(commit, tails[commit.session])
            for commit in commits:
                if commit.fork is not None and commit.fork.parent not in tails:
                    plan.parents[commit.fork.parent] = await self._tails.find(commit.fork.parent, named=False)
        return plan

    async def _known(self, commit: Commit, tail: SessionTail | None) -> Known | None:
        if tail is None:
            return None
        if commit.fingerprint:
            return await self._reader.known(tail, commit.commit_id)
        head = tail.head
        if head.seq < commit.last:
            return None
        if head.hash == commit.hash and head.commit_id == commit.commit_id:
            return Known(head, b"")
        stored = await self._reader.commit_at(tail, commit.first)
        if stored is None or stored.first != commit.first or stored.commit_id != commit.commit_id:
            return None
        return Known(messages.head_of(commit.session, stored, head.name), stored.fingerprint)
