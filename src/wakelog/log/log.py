"""One session's log: append, read, state at a point, rewind, fork, lease, follow.

A Log is shared by the threads of a process. Under its lock, commits are sealed on the *pending* tip: the head plus what
is in flight. So several calls of one session can share a sync, and still every event was checked against the state it
really meets. When the engine says another process came first, what is in flight is undone, the missed events are folded
in, and the commit is sealed again; events that are no longer legal then raise.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from wakelog.engine import Engine
from wakelog.errors import (
    ConflictError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    WakelogError,
)
from wakelog.log.door import Redact, admit, default_redact
from wakelog.log.reading import Entry, fold_at, lineage, read_entries, resolve
from wakelog.log.seal import Sealed, Step, Tip, check_epoch, fingerprint_of, seal
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId, fork_id
from wakelog.model.records import Anchor, Commit, Draft, ForkPoint, Head, Heartbeat
from wakelog.model.values import Value
from wakelog.state.fold import Fold

RESEAL_MAX = 1000
DEEP_FORK = 8
"""Forks of forks beyond this depth start with a snapshot, so that reading does not climb through all of them."""

Clock = Callable[[], int]


def now_us() -> int:
    return time.time_ns() // 1000


class Log:
    """A typed, append-only log for one session."""

    def __init__(
        self,
        engine: Engine,
        session: SessionId,
        *,
        clock: Clock = now_us,
        redact: Redact | None = default_redact,
        even_deleted: bool = False,
    ) -> None:
        """Opens an existing session; NotFoundError when there is none or it was deleted.

        A deleted session whose content is still there, because forks read through it, opens when `even_deleted`.
        """
        if engine.head(session).status == "deleted" and not even_deleted:
            raise NotFoundError(f"session {session} was deleted", kind="session-deleted")
        self.engine = engine
        self.id = session
        self.segments = lineage(engine, session)
        self.clock = clock
        self.redact = redact
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._tip: Tip | None = None
        self._is_stale = False
        self._flight: list[Sealed] = []
        self._generation = 0

    @classmethod
    def create(
        cls,
        engine: Engine,
        session: SessionId,
        opened: ev.SessionOpened,
        *events: ev.Event | Draft,
        clock: Clock = now_us,
        redact: Redact | None = default_redact,
    ) -> Log:
        """A new root session, whose first event is `opened`. ConflictError when the id is taken."""
        tip = Tip(Fold())
        sealed = seal(tip, session, admit((opened, *events), redact), now=clock())
        engine.submit(sealed.commit).result()
        log = cls(engine, session, clock=clock, redact=redact)
        log._tip = tip
        return log

    # Appending

    def append(
        self,
        *events: ev.Event | Draft,
        expect: Seq | None = None,
        commit_id: str = "",
        guard: int | None = None,
    ) -> Head:
        """Appends events as one commit and returns the head they lead to, durable.

        With `expect`, the session must be at that seq, else ConflictError; without it, the events are placed after
        whatever came before and must be legal there. The same `commit_id` with the same events again gives the first
        answer and stores nothing. With `guard`, the writer's lease epoch, a newer lease refuses the append.
        """
        return self._append(admit(events, self.redact), expect, commit_id, guard)

    def record(self, event: ev.Event | Draft, *more: ev.Event | Draft, guard: int | None = None) -> Seq:
        """Appends an event, with others right after it, and returns its seq: not the head's, also when a redaction
        was noted."""
        steps = admit((event, *more), self.redact)
        return self._append(steps, guard=guard).seq - (len(steps) - 1)

    def _append(
        self, steps: Sequence[Step], expect: Seq | None = None, commit_id: str = "", guard: int | None = None
    ) -> Head:
        if commit_id and (answer := self._repeated(steps, commit_id)) is not None:
            return answer
        for tries in range(RESEAL_MAX):
            head = self._land(self._launch(steps, expect, commit_id, guard))
            if head is not None:
                return head
            if expect is not None:
                raise self._conflict(self.engine.head(self.id).seq, expect)
            if tries > 8:
                time.sleep(random.uniform(0, 0.002 * min(tries, 50)))
        raise UnavailableError(
            f"session {self.id} is too busy: {RESEAL_MAX} appends in a row came second", kind="too-busy"
        )

    def _launch(self, steps: Sequence[Step], expect: Seq | None, commit_id: str, guard: int | None) -> Sealed:
        """Seals on the pending tip and submits, in one breath, so that the engine sees a session's commits in order."""
        while True:
            with self._locked():
                tip = self._pending_tip(refresh=expect is not None)
                if expect is not None and tip.seq != expect:
                    raise self._conflict(tip.seq, expect)
                try:
                    sealed = seal(tip, self.id, steps, now=self.clock(), commit_id=commit_id, guard=guard)
                except (NotAllowedError, ConflictError, InvalidInputError):
                    # Refused on what this process knows. If that may be old news, look again.
                    if not self._flight and not self._refresh():
                        raise
                    blocker = self._flight[-1] if self._flight else None
                else:
                    return self._submit(sealed)
            if blocker is not None:
                self._wait_for(blocker)

    def _submit(self, sealed: Sealed) -> Sealed:
        try:
            sealed.pending = self.engine.submit(sealed.commit)
        except BaseException:
            sealed.undo()
            raise
        sealed.generation = self._generation
        self._flight.append(sealed)
        return sealed

    def launch(self, commit: Commit, reseal: Callable[[Tip], Sealed]) -> Sealed | None:
        """Puts a commit in line that was sealed elsewhere, once `reseal` has checked it on the tip it follows; None
        when the session is not there. `land` waits for the answer."""
        while True:
            with self._locked():
                tip = self._pending_tip()
                if tip.hash != commit.prev and not self._flight and self._refresh():
                    tip = self._pending_tip()
                if (tip.seq + 1, tip.hash) == (commit.first, commit.prev):
                    return self._submit(reseal(tip))
                blocker = self._flight[-1] if self._flight else None
            if blocker is None:
                return None
            self._wait_for(blocker)

    def _wait_for(self, blocker: Sealed) -> None:
        """Until what is in flight has landed, or was taken back. Its own writer may be waiting too: so it is landed
        here."""
        with contextlib.suppress(WakelogError):
            self._land(blocker)
        time.sleep(0)

    def land(self, sealed: Sealed) -> Head:
        """The head that a launched commit led to; ConflictError when another writer came first."""
        head = self._land(sealed)
        if head is None:
            raise self._conflict(self.engine.head(self.id).seq, sealed.commit.first - 1)
        return head

    def _land(self, sealed: Sealed) -> Head | None:
        """Waits for the engine's answer. None: another writer came first, and everything in flight was taken back."""
        try:
            head = self._answer(sealed)
        except BaseException as exc:
            self._retreat(sealed)
            if isinstance(exc, ConflictError) and exc.kind == "head-moved":
                return None
            raise
        if head.hash != sealed.commit.hash:
            self._retreat(sealed)  # a repetition: this is the original answer, and nothing new was stored
            return head
        with self._locked():
            if sealed.generation == self._generation and sealed in self._flight:
                self._flight.remove(sealed)
        return head

    def _answer(self, sealed: Sealed) -> Head:
        try:
            return sealed.pending.result()
        except UnavailableError as exc:
            if exc.kind != "answer-unknown":
                raise
            # Unknown is settled by asking again with the same commit: it is stored once at most.
            return self.engine.submit(sealed.commit).result()

    def _retreat(self, sealed: Sealed) -> None:
        """Takes back everything in flight, unless another thread already did."""
        with self._locked():
            if sealed.generation == self._generation:
                for each in reversed(self._flight):
                    each.undo()
                self._flight.clear()
                self._generation += 1
                self._is_stale = True

    def _repeated(self, steps: Sequence[Step], commit_id: str) -> Head | None:
        """The answer given before under this id. Asked first: it holds even if the session has moved on or closed."""
        known = self.engine.known(self.id, commit_id)
        if known is None:
            return None
        if known.fingerprint != fingerprint_of([step.draft.event for step in steps]):
            raise InvalidInputError(
                f"commit id {commit_id!r} of session {self.id} was used before for other content",
                kind="commit-id-reused",
                hint="use a new commit id for new content",
            )
        return known.head

    def _conflict(self, at: Seq, expect: Seq) -> ConflictError:
        return ConflictError(
            f"session {self.id} is at event {at}, but this append expected {expect}: another writer came first."
            f" Read the events after {expect} and try again, or fork at {expect}.",
            kind="head-moved",
            head_seq=at,
        )

    # The tip

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._start()  # a forked child: the lock may be held, and what is in flight is the parent's
        return self._lock

    def _pending_tip(self, *, refresh: bool = False) -> Tip:
        if self._tip is None:
            self._tip = self._load_tip()
        elif (refresh or self._is_stale) and not self._flight:
            self._refresh()
        return self._tip

    def _load_tip(self) -> Tip:
        head = self.engine.head(self.id)
        self._is_stale = False
        return self._tip_at(head.seq, head.hash, head.at)

    def _tip_at(self, seq: Seq, hash: bytes, at: int) -> Tip:
        folded = fold_at(self.engine, self.segments, seq)
        tip = Tip(folded.fold, seq, hash, at)
        tip.snapshot_size, tip.bytes_since = folded.snapshot_size, folded.bytes_since
        return tip

    def _refresh(self) -> bool:
        """Folds in what others have appended since; True when there was something. Only with nothing in flight."""
        tip = self._tip
        assert tip is not None
        before = tip.seq
        for entry in read_entries(self.engine, self.segments, after=tip.seq, prev=tip.hash):
            if entry.kind in ("payload.erased", "range.pruned"):
                # What was removed may be in the state this process holds, or among the payloads it would mention.
                self._tip = self._load_tip()
                return True
            tip.fold.apply(entry.delta)
            tip.seq, tip.hash, tip.at = entry.seq, entry.hash, entry.header.at
            tip.bytes_since += len(entry.record.header) + len(entry.record.body)
        self._is_stale = False
        return tip.seq > before

    def forget(self) -> None:
        """Drops what this process holds of the state; it is folded anew when needed."""
        with self._locked():
            self._tip = None

    # Reading

    def head(self) -> Head:
        return self.engine.head(self.id)

    def entries(self, *, after: Seq = 0, upto: Seq | None = None) -> Iterator[Entry]:
        """The events with `after` < seq ≤ `upto`, through forks, every byte checked."""
        return read_entries(self.engine, self.segments, after=after, upto=upto)

    def entry(self, seq: Seq) -> Entry:
        """One event, or NotFoundError."""
        for entry in self.entries(after=seq - 1, upto=seq) if seq > 0 else ():
            return entry
        raise NotFoundError(f"session {self.id} has no event {seq}", kind="event-not-found")

    def value(self, entry: Entry, value: Value) -> Value:
        """A value of an entry's body, fetched when it is a payload's mention."""
        return resolve(self.engine, self.segments, entry, value)

    def state(self, at: Seq | None = None) -> dict[str, Value]:
        """The state at a point, or now, as a document of its own."""
        if at is None:
            with self._locked():
                if not self._flight:
                    return self._pending_tip(refresh=True).fold.copy()
        return self._fold(at).doc

    def now(self) -> tuple[Seq, dict[str, Value]]:
        """The last durable position and the state there, of one moment."""
        with self._locked():
            if not self._flight:
                tip = self._pending_tip(refresh=True)
                return tip.seq, tip.fold.copy()
        last = self.head().seq
        return last, self.state(last)

    def part(self, name: str) -> Value:
        """One part of the state as this process knows it, with what is in flight: cheap, whatever the state's size.
        Not for `data`, whose inside is changed in place."""
        with self._locked():
            value = self._pending_tip(refresh=True).doc[name]
            return dict(value) if type(value) is dict else value

    def state_hash(self, at: Seq | None = None) -> str:
        """Equal for equal states, however they were reached."""
        if at is None:
            with self._locked():
                if not self._flight:
                    return self._pending_tip(refresh=True).fold.state_hash()
        return self._fold(at).state_hash()

    def _fold(self, at: Seq | None) -> Fold:
        """A fold of its own at a point; with something in flight, "now" is what is durable."""
        last = self.head().seq
        if at is not None and not 0 < at <= last:
            raise NotFoundError(f"session {self.id} has no event {at}", kind="event-not-found")
        return fold_at(self.engine, self.segments, last if at is None else at).fold

    def view(self, at: Seq | None = None, *, state: dict[str, Value] | None = None) -> list[tuple[Seq, Seq]]:
        """The ranges of events that are in view, oldest first: what lies between was rewound. `state` is that at the
        point, for a caller who has it already."""
        last = self.head().seq if at is None else at
        view = (self.state(last) if state is None else state)["view"]
        rewound, to = view["rewound"], view["to"]
        ranges: list[tuple[Seq, Seq]] = []
        while rewound:
            ranges.append((rewound, last))
            last, rewound = to, self.entry(rewound).body.get("under", 0)
            # A rewind that was pruned no longer tells where it went; below it nothing can be read anyway.
            to = self.entry(rewound).body.get("to", 0) if rewound else 0
        ranges.append((1, last))
        return ranges[::-1]

    def follow(self, *, after: Seq = 0, timeout_s: float | None = None) -> Iterator[Entry]:
        """Events as they come, from any process, each once and in order. Ends after `timeout_s` without news."""
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
        restored: Sequence[Draft] = (),
        files: Seq = 0,
        then: Sequence[ev.Event | Draft] = (),
    ) -> Head:
        """Moves the view back to `to` by appending: the restorable parts of the state return to what they were.

        `restored` are the changes of files that were brought back with it, to what they were at `files`; they stand
        right before the rewind, in the same commit. `then` comes right after it, in the same commit too.
        """
        under = self.state(to)["view"]["rewound"]
        event = ev.HistoryRewound(to=to, under=under, mode=mode, why=why, files=files)  # type: ignore[arg-type]
        # The past is read when the event is sealed: if it was erased meanwhile, a copy read earlier would bring it
        # back.
        rewound = Step(Draft(event, actor="user"), lambda: self.state(to))
        steps = [*admit(restored, self.redact), rewound, *admit(then, self.redact)]
        return self._append(steps, expect, guard=guard)

    def fork(self, at: Seq | None = None, *, name: str = "", why: str = "", session: SessionId | None = None) -> Log:
        """A new session that shares this one's history up to `at`. One transaction, whatever the length."""
        before = self.head().seq
        at = before if at is None else at
        entry = self.entry(at)
        tip = self._tip_at(at, entry.hash, entry.header.at)
        forked = ev.SessionForked(parent=self.id, at=at, hash=entry.hash.hex(), name=name, why=why)
        inherited = [ev.ActionAbandoned(action=a, inherited=True) for a in tip.doc["pending_actions"]]
        child = session or fork_id(self.id, os.urandom(5))
        sealed = seal(
            tip,
            child,
            [Step(Draft(e, actor="user")) for e in (forked, *inherited)],
            now=self.clock(),
            fork=ForkPoint(self.id, at, entry.hash),
            force_snapshot=len(self.segments) % DEEP_FORK == 0,
        )
        self.engine.submit(sealed.commit).result()
        if self.head().seq != before and any(
            "payload.erased" in c.kinds for c in self.engine.read(self.id, after=before)
        ):
            # Erased while the fork was made: its snapshot may hold what is gone.
            self.engine.drop_snapshots(child)
        return Log(self.engine, child, clock=self.clock, redact=self.redact)

    def adopt(
        self, fork: Log, at: Seq | None = None, *, why: str = "", force: bool = False, guard: int | None = None
    ) -> Head:
        """Takes a fork's result back into this session (adopting.py); a rewind to just before it undoes it.

        ConflictError when this session has gone on since the fork point, unless forced.
        """
        from wakelog.log.adopting import plan_adoption, refuse_if_erased

        for _ in range(RESEAL_MAX):
            plan = plan_adoption(self, fork, at, why=why, force=force)
            try:
                head = self._append(plan.steps, plan.head, guard=guard)
            except ConflictError as exc:
                if exc.kind == "head-moved":
                    continue  # the plan holds for the head it was made on
                raise
            refuse_if_erased(self, fork, plan)
            return head
        raise UnavailableError(f"session {self.id} is too busy to adopt {fork.id}", kind="too-busy")

    # Leases

    def take_lease(self, holder: str, *, ttl_s: float = 30.0, force: bool = False) -> int:
        """Claims the session for one writer and returns its epoch; pass it as `guard`. Older epochs are refused.

        A lease whose holder was heard of within its time is not taken unless forced. Clocks only decide when a takeover
        is polite; that the old writer is shut out rests on the epoch alone.
        """
        while True:
            living = self.living_holder()
            if living and living != holder and not force:
                raise ConflictError(
                    f"session {self.id} is being written by {living}",
                    kind="leased",
                    hint="wait for it, or take it over by force",
                )
            epoch: int = self.state()["lease"]["epoch"] + 1
            event = ev.LeaseTaken(epoch=epoch, holder=holder, ttl_us=int(ttl_s * 1e6))
            try:
                self._append([Step(Draft(event, actor="runtime"))])
            except ConflictError as exc:
                if exc.kind != "fenced":
                    raise
                continue
            self.engine.beat(self.id, Heartbeat(epoch, holder, self.clock() + event.ttl_us))
            return epoch

    def living_holder(self) -> str:
        """Who holds the lease and was heard of within its time; empty when nobody."""
        lease, beat = self.part("lease"), self.engine.last_beat(self.id)
        if not lease["holder"] or beat is None or beat.epoch != lease["epoch"] or beat.until < self.clock():
            return ""
        return str(lease["holder"])

    def beat(self, epoch: int, holder: str, *, ttl_s: float = 30.0) -> None:
        """Says that the lease's holder is alive, and for how long that may be believed."""
        check_epoch(self.part("lease"), epoch)  # a former holder's would stand in the place of the present one's
        self.engine.beat(self.id, Heartbeat(epoch, holder, self.clock() + int(ttl_s * 1e6)))

    def release_lease(self, epoch: int) -> Head:
        return self._append([Step(Draft(ev.LeaseReleased(epoch=epoch), actor="runtime"))], guard=epoch)

    def anchor(self) -> Anchor:
        """The head, to be kept elsewhere and held against a later verification."""
        head = self.head()
        return Anchor(self.id, head.seq, head.hash.hex(), head.at)
