"""Erase, prune, delete: removes content from a log whose history may not change.

Headers stay, so the chain still proves order and number. Bodies, salts and payloads are removed, and an event records
that.

**Erase** replaces the bodies of chosen events (mask.py). The erase event carries every replacement, and forks that
share the erased part get an erase event of their own, so that processes that hold their state learn of it. So does a
session that adopted the erased part from a fork: its copies are erased too.

**Prune** drops all bodies of a session up to a point. The prune event holds the state there, as the base, and the
totals of the pruned turns.

**Delete** leaves a tombstone, and nothing else once no fork reads through it; for a transcript also the note that it
was deleted (deleted_origins.py).

A session under a **hold** (a label) refuses all three, and so does one that shares the content with it. The hold is
checked in the state that the removal is sealed on, so one that was set in time is never missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from wakelog.engine import Engine, Surgery
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.adoption import adoptions
from wakelog.log.append import Clock, now_us
from wakelog.log.deleted_origins import note_deletion
from wakelog.log.log import Log
from wakelog.log.mask import ErasedValues, mentions, replacements_for, said_by
from wakelog.log.pruned_totals import totals_upto
from wakelog.log.reader import entries_of_kind, fold_at, read_entries, rewind_at
from wakelog.log.retry import retry_on_moved_head
from wakelog.log.seal import SealStep, Tip, seal
from wakelog.model import events as ev
from wakelog.model.document import HOLD_LABEL
from wakelog.model.ids import Seq, SessionId
from wakelog.model.payloads import Payload
from wakelog.model.records import Commit, EventDraft, Head, Record
from wakelog.model.totals import SessionTotals
from wakelog.model.values import Value

_encode = msgspec.json.Encoder().encode
NO_TOTALS = SessionTotals()


def erase(log: Log, seqs: Iterable[Seq], *, why: str = "", by: str = "") -> Head:
    """Erases bodies and payloads of events, here and in every fork that shares them. This cannot be undone."""
    origin, targets = _origin(log, seqs)
    planned: set[SessionId] = set()

    def plan() -> Surgery:
        commits: list[Commit] = []
        rewritten: list[Commit] = []
        stale: dict[SessionId, Seq] = {}
        for member, first, replaced in _touched(log, origin, targets):
            rewritten += _with_replaced(member, {r.seq: _encode(r.body) for r in replaced})
            stale[member.id] = first
            if member.head().status != "deleted":
                commits.append(_seal_on_head(member, ev.PayloadErased(erased=tuple(replaced), why=why, by=by)))
        planned.update(stale)
        return Surgery(tuple(commits), tuple(rewritten), stale_from=stale)

    _operate(log, plan)
    for member in _sharing(log.engine, origin, targets):
        if member.id not in planned:  # forked while the plan was made: its snapshot may hold what is gone
            log.engine.drop_snapshots(member.id)
    return log.head()


def reach(log: Log, seqs: Iterable[Seq]) -> dict[SessionId, tuple[Seq, ...]]:
    """The events that `erase` would change, by session: those given, in forks and adopters too, and all that repeat
    their content."""
    origin, targets = _origin(log, seqs)
    return {member.id: tuple(r.seq for r in replaced) for member, _, replaced in _touched(log, origin, targets)}


def _origin(log: Log, seqs: Iterable[Seq]) -> tuple[SessionId, frozenset[Seq]]:
    """The session that holds the events, and the events."""
    targets = frozenset(seqs)
    _check_targets(log, targets)
    holder = {log.holder_of(seq) for seq in targets}
    if len(holder) > 1:
        raise InvalidInputError(
            f"events {sorted(targets)} belong to several sessions of the fork tree: {', '.join(sorted(holder))}",
            kind="erase-across-forks",
            hint="erase the events of one session at a time",
        )
    return holder.pop(), targets


def _touched(log: Log, origin: SessionId, targets: frozenset[Seq]) -> Iterator[tuple[Log, Seq, list[ev.Replacement]]]:
    """Every session with something to replace: its log, from which event on its state changes, the replacements."""
    for part in _spread(ErasedPart(origin, targets), log):
        for member in _sharing(log.engine, part.origin, part.all, log.clock):
            shared, adopted = (_targets_in(member, part.origin, seqs) for seqs in (part.targets, part.adopted))
            _refuse_if_in_a_base(member, shared | adopted)
            replaced = replacements_for(member, shared, adopted=adopted, said=part.said)
            if replaced or shared:  # else it adopted the fork, but none of these events
                yield member, min(shared | adopted), replaced


class ErasedPart(msgspec.Struct, frozen=True):
    """Events of one session that an erasure concerns: those to erase, and adoptions that may hold their content."""

    origin: SessionId
    targets: frozenset[Seq]
    adopted: frozenset[Seq] = frozenset()
    said: ErasedValues | None = None

    @property
    def all(self) -> frozenset[Seq]:
        return self.targets | self.adopted


def _spread(part: ErasedPart, log: Log) -> Iterator[ErasedPart]:
    """The events to erase, and their copies in the session that adopted them from this fork, and so on."""
    yield part
    head = log.engine.head(part.origin)
    if head.fork is None:
        return
    erased = part.said
    copies, adopted = set[Seq](), set[Seq]()
    for entry in adoptions(log.engine, head, since=min(part.all)):
        erased = erased or said_by(Log(log.engine, part.origin, even_deleted=True), part.targets)
        adopted.add(entry.seq)
        copies |= {entry.seq + n for n, own in enumerate(entry.body["copied"], 1) if own in part.all}
    if adopted:
        yield from _spread(ErasedPart(head.fork.parent, frozenset(copies), frozenset(adopted), erased), log)


def prune(log: Log, upto: Seq, *, why: str = "") -> Head:
    """Drops the bodies of this session's events up to and including `upto`; the state there is kept as the base."""
    own = log.segments[-1]
    if not own.first <= upto <= log.head().seq:
        raise NotFoundError(f"session {log.id} has no event {upto} of its own to prune to", kind="event-not-found")
    refuse_if_shared(log, upto)

    def plan() -> Surgery:
        for fork in _descendants(log.engine, log.id):
            if fork.head().status != "deleted":
                refuse_if_held(log.engine, fork.id)
        turn_totals, call_totals = totals_upto(log, upto)
        base = _encode(fold_at(log.engine, log.segments, upto).fold.doc)
        event = ev.RangePruned(
            upto=upto,
            last_hash=log.entry(upto).hash.hex(),
            base=Payload(base, "json"),
            rewinds=rewinds_of(log, upto),
            turn_totals=turn_totals,
            call_totals=call_totals,
            why=why,
        )
        still_used = {digest for e in log.entries(after=upto) for digest, at in mentions(e) if 0 < at <= upto}
        rewritten = tuple(_with_pruned(log, upto, still_used))
        return Surgery((_seal_on_head(log, event),), rewritten, stale_from={}, pruned_to={log.id: upto})

    _operate(log, plan)
    return log.head()


def rewinds_of(log: Log, upto: Seq) -> tuple[tuple[Seq, Seq, Seq], ...]:
    """The session's own rewinds up to an event, also those that were pruned before: seq, `to` and `under` of each."""
    own = log.segments[-1].first
    entries = entries_of_kind(log.engine, log.id, "history.rewound", after=own - 1, upto=upto)
    seqs = [entry.seq for entry in entries if entry.seq <= upto]
    rewinds = ((seq, *rewind_at(log.engine, log.segments, seq)) for seq in seqs)
    return tuple(each for each in rewinds if each[1])


def delete(log: Log, *, why: str = "", totals: SessionTotals = NO_TOTALS) -> Head:
    """Ends the session for good. Forks that share its history keep reading it until they are deleted too. `totals` are
    numbers that stay in the tombstone."""
    event = ev.SessionDeleted(totals=totals.numbers, call_totals=totals.calls, why=why)

    if log.head().fork is None:  # a fork has the labels of what it was forked from
        note_deletion(log.engine, log.part("labels"))

    def attempt() -> Head:
        try:
            return log.engine.delete(_seal_on_head(log, event))
        except ConflictError:
            log.forget()
            raise

    return retry_on_moved_head(log.id, "to be deleted", attempt)


def refuse_if_shared(log: Log, upto: Seq) -> None:
    """NotAllowedError while a fork starts before `upto`: it reads what would be pruned."""
    for fork in _descendants(log.engine, log.id):
        shared = next((g for g in fork.segments if g.session == log.id), None)
        if shared is not None and shared.last is not None and shared.last < upto and fork.head().status != "deleted":
            raise NotAllowedError(
                f"fork {fork.id} leaves {log.id} at event {shared.last}: what it shares cannot be pruned",
                kind="live-fork",
                hint=f"prune up to {shared.last} at most, or delete the fork first",
            )


def refuse_if_held(engine: Engine, session: SessionId, doc: dict[str, Value] | None = None) -> None:
    """NotAllowedError while the session is under a hold. A caller that has its state passes it as `doc`."""
    if doc is None:
        doc = Log(engine, session).state()
    reason = doc["labels"].get(HOLD_LABEL)
    if reason is not None:
        name = engine.head(session).name or session
        raise NotAllowedError(
            f"session {name} is under a hold: {reason}. Nothing of it can be erased, pruned or deleted",
            kind="held",
            hint=f"wakelog hold rm {name}",
            legal=("labels.set",),
        )


def _operate(log: Log, plan: Callable[[], Surgery]) -> None:
    """Plans on the current heads and operates; plans again when another writer came first."""

    def attempt() -> None:
        try:
            log.engine.operate(plan())
        finally:
            log.forget()

    retry_on_moved_head(log.id, "to remove something from", attempt)


def _check_targets(log: Log, targets: frozenset[Seq]) -> None:
    if not targets:
        raise InvalidInputError("name at least one event to erase", kind="empty-erase")
    for seq in sorted(targets):
        entry = log.entry(seq)
        if entry.kind in ev.REMOVAL_KINDS:
            raise NotAllowedError(
                f"event {seq} ({entry.kind}) records a removal, and cannot be erased", kind="unerasable"
            )
        if not entry.record.body:
            raise NotFoundError(
                f"event {seq} was pruned; its content may still be in the base state",
                kind="pruned",
                hint="retract or overwrite it, then prune up to a later event",
            )


def _refuse_if_in_a_base(member: Log, targets: frozenset[Seq]) -> None:
    """A pruned fork keeps its earlier state as a base, which may hold the content to remove."""
    if member.segments[-1].first <= min(targets):
        return  # its own events, not shared ones
    if any(entries_of_kind(member.engine, member.id, "range.pruned")):
        raise NotAllowedError(
            f"fork {member.id} was pruned, and its base state may hold what event {min(targets)} said",
            kind="pruned-fork",
            hint="delete that fork first, or retract the content there and prune again up to a later event",
        )


def _descendants(engine: Engine, session: SessionId, clock: Clock = now_us) -> Iterator[Log]:
    """Every fork below a session, at any depth, deleted ones too: others may read through them."""
    for child in engine.children(session, deleted=True):
        if child.status != "deleted" or _is_still_there(engine, child):
            yield Log(engine, child.session, clock=clock, even_deleted=True)
        yield from _descendants(engine, child.session, clock)


def _is_still_there(engine: Engine, deleted: Head) -> bool:
    """Whether a deleted fork's content is still stored for others; else only its tombstone is."""
    first = next(iter(engine.read(deleted.session)), None)
    return first is not None and deleted.fork is not None and first.first == deleted.fork.at + 1


def _sharing(engine: Engine, origin: SessionId, targets: frozenset[Seq], clock: Clock = now_us) -> Iterator[Log]:
    """The session that holds the events, and every fork that has any of them in its history."""
    for member in (Log(engine, origin, clock=clock, even_deleted=True), *_descendants(engine, origin, clock)):
        if _targets_in(member, origin, targets):
            yield member


def _targets_in(member: Log, origin: SessionId, targets: frozenset[Seq]) -> frozenset[Seq]:
    """Those of `origin`'s events that are in a member's history. After the fork point the numbers mean its own."""
    segment = next((s for s in member.segments if s.session == origin), None)
    if segment is None:
        return frozenset()
    return frozenset(t for t in targets if segment.first <= t and (segment.last is None or t <= segment.last))


def _seal_on_head(log: Log, event: ev.Event) -> Commit:
    """Seals the event on the current head, without a snapshot: the state may still hold the content to remove."""
    head = log.head()
    fold = fold_at(log.engine, log.segments, head.seq).fold
    refuse_if_held(log.engine, log.id, fold.doc)
    tip = Tip(fold, head.seq, head.hash, head.at)
    sealed = seal(tip, log.id, [SealStep(EventDraft(event, actor="user"))], now=log.clock())
    return msgspec.structs.replace(sealed.commit, snapshot=None)


def _with_replaced(log: Log, bodies: dict[Seq, bytes]) -> Iterator[Commit]:
    """This session's own commits with any of the events, their bodies replaced and their payloads dropped."""
    own = log.segments[-1]
    for commit in log.engine.read(log.id, after=own.first - 1, payloads=True):
        here = {seq for seq in bodies if commit.first <= seq <= commit.last}
        if not here:
            continue
        entries = list(read_entries(log.engine, log.segments, after=commit.first - 1, upto=commit.last))
        still_used = {digest for e in entries if e.seq not in here for digest, _ in mentions(e)}
        gone = {digest for e in entries if e.seq in here for digest, _ in mentions(e)} - still_used
        records = tuple(Record(e.record.header, b"", bodies[e.seq]) if e.seq in here else e.record for e in entries)
        yield _rewritten(commit, records, tuple(p for p in commit.payloads if p[0] not in gone))


def _with_pruned(log: Log, upto: Seq, still_used: set[bytes]) -> Iterator[Commit]:
    """This session's own commits up to `upto`, with only the headers left, and the payloads that later events
    mention."""
    for commit in log.engine.read(log.id, upto=upto, payloads=True):
        records = tuple(
            Record(r.header, b"", b"") if seq <= upto else r for seq, r in enumerate(commit.records, commit.first)
        )
        entries = read_entries(log.engine, log.segments, after=max(upto, commit.first - 1), upto=commit.last)
        used = still_used | {digest for e in entries for digest, _ in mentions(e)}
        yield _rewritten(commit, records, tuple(p for p in commit.payloads if p[0] in used))


def _rewritten(commit: Commit, records: tuple[Record, ...], payloads: tuple[tuple[bytes, bytes], ...]) -> Commit:
    # The fingerprint is an unsalted hash of content, and the paths are content: both go with the bodies.
    return msgspec.structs.replace(
        commit,
        records=records,
        payloads=payloads,
        paths=(),
        fingerprint=b"",
    )
