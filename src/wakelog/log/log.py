"""One session's log: append, read, state at a point, rewind, fork, lease, follow.

Threads of a process share a Log. append.py explains how it stays in step with other threads and processes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence

from wakelog.engine import Engine
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError
from wakelog.log.admission import Redact, admit, default_redact
from wakelog.log.append import Clock, now_us
from wakelog.log.damage import OnHole, entries_around
from wakelog.log.holder import living_turn
from wakelog.log.keyless_fork import fork_without_key
from wakelog.log.reader import (
    Entry,
    fetch,
    fold_at,
    forks_of,
    holder_of,
    lineage,
    prune_over,
    read_entries,
    resolve,
    rewind_at,
    sound_head,
)
from wakelog.log.retry import retry_on_moved_head
from wakelog.log.seal import Sealed, SealStep, Tip, check_epoch, seal
from wakelog.log.task_append import TaskAppender
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId, fork_id
from wakelog.model.names import check_length
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.records import Anchor, EventDraft, ForkPoint, Head, Heartbeat
from wakelog.model.totals import TURN_FIELDS, rows_of
from wakelog.model.values import Value
from wakelog.state.fold import Fold

DEEP_FORK = 8
"""Forks of forks beyond this depth start with a snapshot, so that reading need not walk through all of them."""


class Log(TaskAppender):
    """A typed, append-only log for one session."""

    def __init__(
        self,
        engine: Engine,
        session: SessionId,
        *,
        clock: Clock = now_us,
        redact: Redact | None = default_redact,
        even_deleted: bool = False,
        even_damaged: bool = False,
        head: Head | None = None,
    ) -> None:
        """Opens an existing session; NotFoundError when there is none or it was deleted. A caller that knows the head
        passes it as `head`.

        With `even_deleted`, a deleted session opens if its content is still stored, because forks read through it. With
        `even_damaged`, a session with a damaged head opens for reading, up to the newest event that is intact.
        """
        self.even_damaged = even_damaged
        self.engine = engine
        self.id = session
        self.opened_at = head = head or self.head()
        if head.status == "deleted" and not even_deleted:
            raise NotFoundError(f"session {session} was deleted", kind="session-deleted")
        self.segments = lineage(engine, session, sound_head if even_damaged else None, own=head)
        self.clock = clock
        self.redact = redact
        self._start()

    def __str__(self) -> str:
        """The session's name, or its id where it has none."""
        return str(self.head())

    @classmethod
    def create(
        cls,
        engine: Engine,
        session: SessionId,
        opened: ev.SessionOpened,
        *events: ev.Event | EventDraft,
        clock: Clock = now_us,
        redact: Redact | None = default_redact,
    ) -> Log:
        """A new root session, whose first event is `opened`. ConflictError when the id is taken."""
        tip = Tip(Fold())
        sealed = seal(tip, session, admit((opened, *events), redact), now=clock())
        head = engine.submit(sealed.commit).result()
        log = cls(engine, session, clock=clock, redact=redact, head=head)
        log._tip = tip
        return log

    # Appending

    def append(
        self,
        *events: ev.Event | EventDraft,
        expect: Seq | None = None,
        commit_id: str = "",
        is_new: bool = False,
        guard: int | None = None,
    ) -> Head:
        """Appends events as one commit and returns the head they lead to, durable.

        With `expect`, the session must be at that seq, else ConflictError. Without it, the events go to the end,
        wherever that is, and must be legal there. Repeating a `commit_id` with the same events returns the first answer
        and stores nothing. A caller that believes the id `is_new` saves the question before the append; a repetition is
        then noticed when it is stored. With `guard`, the writer's lease epoch, a newer lease refuses the append.
        """
        return self._append(admit(events, self.redact), expect, commit_id, guard, is_new=is_new)

    def put_in_line(self, *events: ev.Event | EventDraft, expect: Seq, commit_id: str = "") -> Sealed:
        """Queues a commit at `expect` and returns before it is stored; `land` waits for that. An append right after it
        shares its sync. The id, if any, must be new as far as the caller knows."""
        steps = admit(events, self.redact)
        try:
            if not self._is_settled and len(self.segments) > 1:
                self._give_up_inherited()
            check_length(commit_id, "a commit id")
            return self._launch(steps, expect, commit_id, None)
        except BaseException as exc:
            self._note_interrupt(exc)
            raise

    def record(self, event: ev.Event | EventDraft, *more: ev.Event | EventDraft, guard: int | None = None) -> Seq:
        """Appends an event, with others right after it, and returns the seq of the first, not of the head."""
        steps = admit((event, *more), self.redact)
        return self._append(steps, guard=guard).seq - (len(steps) - 1)

    # Reading

    def head(self) -> Head:
        return sound_head(self.engine, self.id) if self.even_damaged else self.engine.head(self.id)

    def entries(
        self, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False, on_hole: OnHole | None = None
    ) -> Iterator[Entry]:
        """The events with `after` < seq ≤ `upto`, through forks, every byte checked. With `payloads`, for callers that
        need most of them, payloads are read as well, unless the engine stores them apart. Damage raises; with
        `on_hole`, damaged commits are reported there and skipped."""
        along = payloads and not self.engine.abilities.payloads_apart
        if on_hole is not None:
            return entries_around(self.engine, self.segments, after=after, upto=upto, on_hole=on_hole, payloads=along)
        return read_entries(self.engine, self.segments, after=after, upto=upto, payloads=along)

    def entry(self, seq: Seq) -> Entry:
        """One event, or NotFoundError."""
        for entry in self.entries(after=seq - 1, upto=seq) if seq > 0 else ():
            return entry
        raise NotFoundError(f"{self} has no event {seq}", kind="event-not-found")

    def holder_of(self, seq: Seq) -> SessionId:
        """The session of the fork tree that stores an event of this history."""
        return holder_of(self.segments, seq)

    def value(self, entry: Entry, value: Value) -> Value:
        """A value of an entry's body; a reference to a payload is replaced by its content."""
        return resolve(self.engine, self.segments, entry, value)

    def whole(self, value: Value, limit: int = 0) -> Value:
        """A value with its payloads filled in, up to `limit` bytes each (0: any size). An erased one becomes a mark."""
        if type(value) is not dict:
            return value
        if "$payload" not in value:
            return {key: self.whole(item, limit) if type(item) is dict else item for key, item in value.items()}
        ref = as_ref(value)
        if ref is None or (limit and ref.size > limit):
            return value
        try:
            return decode_payload(fetch(self.engine, self.segments, ref.at, bytes.fromhex(ref.hash)), ref.media)
        except NotFoundError:
            return {"$erased": ref.at}

    def state(self, at: Seq | None = None) -> dict[str, Value]:
        """A copy of the state at a point, or now."""
        last = 0 if at is None else self.head().seq
        if at is None or at == last:
            with self._locked():
                tip = self._durable_tip(at)
                if tip is not None and tip.seq == (at or tip.seq):
                    return tip.fold.copy()
        return self._fold(at, last).doc

    def _durable_tip(self, at: Seq | None) -> Tip | None:
        """The tip, if nothing is in flight; else None. None too for a state at a point of a session with a damaged
        head: then the events up to there are folded."""
        try:
            return None if self._flight else self._pending_tip(refresh=True)
        except CorruptLogError:
            if at is None or not self.even_damaged:
                raise
            return None

    def now(self) -> tuple[Seq, dict[str, Value]]:
        """The last durable position and a copy of the state there, both of one moment."""
        with self._locked():
            if not self._flight:
                tip = self._pending_tip(refresh=True)
                return tip.seq, tip.fold.copy()
        last = self.head().seq
        return last, self.state(last)

    def part(self, name: str) -> Value:
        """One part of the state, including commits in flight. Cheap, whatever the size of the state. Not for `data`,
        which is changed in place."""
        with self._locked():
            return _copied(self._pending_tip(refresh=True).fold.doc[name])

    def parts(self, *names: str) -> tuple[Seq, dict[str, Value]]:
        """The last position and parts of the state there, of one moment; otherwise like `part`."""
        with self._locked():
            tip = self._pending_tip(refresh=True)
            return tip.seq, {name: _copied(tip.fold.doc[name]) for name in names}

    def look(
        self, *parts: str, data: Iterable[str] = (), refresh: bool = True
    ) -> tuple[Seq, dict[str, Value], dict[str, Value]]:
        """The last position, some parts of the state there, and some keys of `data`, of one moment. The cost depends on
        what is asked for, not on the size of the state. The values of `data` are the log's own: compare them at once,
        and neither change nor keep them.

        An append that expects this position does not ask the engine again: the engine refuses it if another writer came
        in between. Without `refresh` the answer may be stale; then such an append is refused too."""
        with self._locked():
            tip = self._pending_tip(refresh=refresh)
            self._looked_at = tip.seq
            held = tip.fold.doc["data"]
            told = {part: _copied(tip.fold.doc[part]) for part in parts}
            return tip.seq, told, {key: held[key] for key in data if key in held}

    def state_hash(self, at: Seq | None = None) -> str:
        """The hash of the state: equal for equal states, however they were reached."""
        if at is None:
            with self._locked():
                if not self._flight:
                    return self._hash_of(self._pending_tip(refresh=True))
        return self._fold(at).state_hash()

    def _fold(self, at: Seq | None, last: Seq = 0) -> Fold:
        """A new fold at a point; None means the durable head. A caller that knows the head's seq passes it as
        `last`."""
        last = last or self.head().seq
        if at is not None and not 0 < at <= last:
            raise NotFoundError(f"{self} has no event {at}", kind="event-not-found", hint=f"its events are e1..e{last}")
        return fold_at(self.engine, self.segments, last if at is None else at).fold

    def view(self, at: Seq | None = None, *, state: dict[str, Value] | None = None) -> list[tuple[Seq, Seq]]:
        """The ranges of events that are in view, oldest first; the gaps were rewound. A caller that has the state at
        the point passes it as `state`."""
        last = self.head().seq if at is None else at
        view = state["view"] if state is not None else self.part_at_head("view", last) or self.state(last)["view"]
        rewound, to = view["rewound"], view["to"]
        ranges: list[tuple[Seq, Seq]] = []
        while rewound:
            ranges.append((rewound, last))
            told, under = rewind_at(self.engine, self.segments, rewound)
            last, rewound, to = told or to, under, 0
        ranges.append((1, last))
        return ranges[::-1]

    def pruned_totals(self) -> list[dict[str, int]]:
        """The totals of pruned turns by the names of TURN_FIELDS, one for each attempt, of this session and those it
        was forked from. The newest prune of a session includes the numbers of earlier ones."""
        out: list[dict[str, int]] = []
        for segment in self.segments:
            try:
                prune = prune_over(self.engine, segment.session, segment.first)
            except CorruptLogError:  # nothing was pruned there
                continue
            rows = rows_of(prune.body.get("turn_totals"), len(TURN_FIELDS))
            out += [dict(zip(TURN_FIELDS, row, strict=True)) for row in rows]
        return out

    def part_at_head(self, name: str, seq: Seq) -> Value:
        """One part of the state at `seq`, if that is the head and nothing is in flight; else None. It comes from the
        state in memory, so nothing is folded. Not for `data`, like `part`."""
        with self._locked():
            tip = self._durable_tip(seq) if seq == self.head().seq else None
            return dict(tip.fold.doc[name]) if tip is not None and tip.seq == seq else None

    def follow(self, *, after: Seq = 0, timeout_s: float | None = None) -> Iterator[Entry]:
        """Streams new events live, from any process, each once and in order. Ends after `timeout_s` without news."""
        while True:
            for entry in self.entries(after=after):
                after = entry.seq
                yield entry
            came = self.engine.wait(self.id, after=after, timeout_s=5.0 if timeout_s is None else timeout_s)
            if not came and timeout_s is not None:
                return

    # Moving

    def rewind(
        self,
        to: Seq,
        *,
        mode: str = "rewind",
        why: str = "",
        guard: int | None = None,
        expect: Seq | None = None,
        restored: Sequence[EventDraft] = (),
        files: Seq = 0,
        then: Sequence[ev.Event | EventDraft] = (),
        commit_id: str = "",
        occurred_at: int = 0,
    ) -> Head:
        """Moves the view back to `to` by appending: the restorable parts of the state return to what they were.

        `restored` are the changes of the files that were restored with it, to their content at `files`. They are
        appended right before the rewind, and `then` right after it, all in one commit.
        """
        under = self.state(to)["view"]["rewound"]
        event = ev.HistoryRewound(
            to=to,
            under=under,
            mode=mode,  # type: ignore[arg-type]
            why=why,
            files=files,
            occurred_at=occurred_at,
        )
        # Read the past state only when the event is sealed: an earlier copy could bring back what was erased since.
        rewound = SealStep(EventDraft(event, actor="user"), then=lambda: self.state(to))
        steps = [*admit(restored, self.redact), rewound, *admit(then, self.redact)]
        return self._append(steps, expect, commit_id, guard)

    def fork(self, at: Seq | None = None, *, name: str = "", why: str = "", session: SessionId | None = None) -> Log:
        """A new session that shares this one's history up to `at`. One transaction, whatever the length."""
        before = self.head().seq
        at = before if at is None else at
        entry = self.entry(at)
        child = session or fork_id(self.id, os.urandom(5))
        if (encryption := self.engine.abilities.encryption) is not None and not encryption.has_key:
            fork_without_key(self, encryption, entry, child, name=name, why=why)
            return Log(self.engine, child, clock=self.clock, redact=self.redact)
        tip = self._tip_at(at, entry.hash, entry.header.at)
        forked = ev.SessionForked(parent=self.id, at=at, hash=entry.hash.hex(), name=name, why=why)
        inherited = [ev.ActionAbandoned(action=a, inherited=True) for a in tip.fold.doc["pending_actions"]]
        sealed = seal(
            tip,
            child,
            [SealStep(EventDraft(e, actor="user")) for e in (forked, *inherited)],
            now=self.clock(),
            fork=ForkPoint(self.id, at, entry.hash),
            force_snapshot=len(self.segments) % DEEP_FORK == 0,
        )
        self.engine.submit(sealed.commit).result()
        if self.head().seq != before and any(
            "payload.erased" in c.kinds for c in self.engine.read(self.id, after=before)
        ):
            # Something was erased while the fork was made: its snapshot may still hold it.
            self.engine.drop_snapshots(child)
        return Log(self.engine, child, clock=self.clock, redact=self.redact)

    def forks(self) -> list[Head]:
        """The heads of this session's own forks, the oldest first: their ids are random."""
        return forks_of(self.engine, self.id)

    def adopt(self, fork: Log, at: Seq | None = None, *, why: str = "", force: bool = False) -> Head:
        """Takes a fork's result back into this session (adoption.py); a rewind to just before it undoes it.

        ConflictError when this session has gone on since the fork point, unless forced.
        """
        from wakelog.log.adoption import plan_adoption, refuse_if_erased

        def attempt() -> Head:
            plan = plan_adoption(self, fork, at, why=why, force=force)
            head = self._append(plan.steps, plan.head)  # the plan is valid only for the head it was made on
            refuse_if_erased(self, fork, plan)
            return head

        return retry_on_moved_head(self.id, f"to adopt {fork.id}", attempt)

    # Leases

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer and returns its epoch; pass it as `guard`. Older epochs are refused.

        A lease whose holder sent a heartbeat in time is not taken unless forced. Clocks only decide when a takeover is
        allowed without force; the epoch alone keeps the old writer out.
        """
        while True:
            living = self.lease_holder()
            if living == holder or force:
                living = ""
            elif not living:
                turn = living_turn(self)
                living = turn.name if turn is not None and not turn.is_here else ""
            if living:
                raise ConflictError(
                    f"session {self.id} is being written by {living}",
                    kind="leased",
                    hint="wait for it, or take it over by force",
                )
            epoch: int = self.state()["lease"]["epoch"] + 1
            event = ev.LeaseTaken(epoch=epoch, holder=holder, ttl_us=int(ttl_s * 1e6))
            try:
                self._append([SealStep(EventDraft(event, actor="runtime"))])
            except ConflictError as exc:
                if exc.kind != "fenced":
                    raise
                continue
            with contextlib.suppress(ConflictError):  # taken from us again already, and a server refuses old epochs
                self.engine.beat(self.id, Heartbeat(epoch, holder, self.clock() + event.ttl_us))
            return epoch

    def living_holder(self) -> str:
        """Who is writing the session: the holder of its lease, or the process that has the open turn, if its last
        heartbeat is valid; empty if there is none."""
        if holder := self.lease_holder():
            return holder
        turn = living_turn(self)
        return turn.name if turn is not None else ""

    def lease_holder(self) -> str:
        """The holder of the lease, if its last heartbeat is valid; empty if there is none."""
        lease = self.part("lease")
        beat = self.engine.last_beat(self.id) if lease["holder"] else None
        if beat is None or beat.epoch != lease["epoch"] or beat.until < self.clock():
            return ""
        # The last heartbeat may be that of a turn, by a writer that came when the lease was stale.
        return str(lease["holder"]) if beat.holder != self.part("turn").get("holder") else ""

    def beat(self, epoch: int, holder: str, *, ttl_s: float = 30.0) -> None:
        """Records a heartbeat of the lease's holder, and how long it is valid."""
        self.keep_beat(Heartbeat(epoch, holder, self.clock() + int(ttl_s * 1e6)))

    def keep_beat(self, beat: Heartbeat) -> None:
        """Stores a heartbeat of the lease's holder. One of anybody else would replace it: ConflictError."""
        lease = self.part("lease")
        check_epoch(lease, beat.epoch)
        if not lease["holder"] or lease["holder"] != beat.holder:
            held = f"is held by {lease['holder']}" if lease["holder"] else "was given back"
            raise ConflictError(
                f"the lease of session {self.id} {held}, so {beat.holder} cannot keep it",
                kind="fenced",
                hint="take the lease first",
            )
        self.engine.beat(self.id, beat)

    def release_lease(self, epoch: int) -> Head:
        return self._append([SealStep(EventDraft(ev.LeaseReleased(epoch=epoch), actor="runtime"))], guard=epoch)

    def anchor(self) -> Anchor:
        """Exports the head hash; a later `verify` can be checked against it."""
        head = self.head()
        return Anchor(self.id, head.seq, head.hash.hex(), head.at)


def _copied(value: Value) -> Value:
    return dict(value) if type(value) is dict else value
