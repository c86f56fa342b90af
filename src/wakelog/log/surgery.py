"""Erasing, pruning, deleting: how content leaves a log whose history may not change.

Headers stay, so the chain still proves order and number. What goes are bodies, salts and payloads, and an event says
so.

**Erase** replaces the bodies of chosen events (masking.py). The erase event carries every replacement, and forks that
share the erased part get an erase event of their own, so that whoever holds their state learns of it.

**Prune** drops all bodies of a session up to a point and keeps the state there, as the base, in the prune event.

**Delete** leaves a tombstone, and nothing else once no fork reads through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from wakelog.engine import Engine, Surgery
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.log import Log
from wakelog.log.masking import mentions, replacements_for
from wakelog.log.reading import fold_at, read_entries
from wakelog.log.seal import Step, Tip, seal
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.payloads import Payload
from wakelog.model.records import Commit, Draft, Head, Record

_encode = msgspec.json.Encoder().encode
_UNERASABLE = frozenset({"payload.erased", "range.pruned"})
_TRIES = 100


def erase(log: Log, seqs: Iterable[Seq], *, why: str = "", by: str = "") -> Head:
    """Erases bodies and payloads of events, here and in every fork that shares them. There is no way back."""
    targets = frozenset(seqs)
    _check_targets(log, targets)
    holder = {next(s.session for s in reversed(log.segments) if s.first <= seq) for seq in targets}
    if len(holder) > 1:
        raise InvalidInputError(
            f"events {sorted(targets)} stand in several sessions of the fork tree: {', '.join(sorted(holder))}",
            kind="erase-across-forks",
            hint="erase those of one session at a time",
        )
    origin = holder.pop()

    def plan() -> Surgery:
        members = [Log(log.engine, session) for session in _sharing(log.engine, origin, min(targets))]
        commits: list[Commit] = []
        rewritten: list[Commit] = []
        for member in members:
            replaced = replacements_for(member, targets)
            rewritten += _with_replaced(member, {r.seq: _encode(r.body) for r in replaced})
            commits.append(_seal_on_head(member, ev.PayloadErased(erased=tuple(replaced), why=why, by=by)))
        return Surgery(tuple(commits), tuple(rewritten), stale_from={m.id: min(targets) for m in members})

    _operate(log, plan)
    return log.head()


def prune(log: Log, upto: Seq, *, why: str = "") -> Head:
    """Drops the bodies of this session's events up to and including `upto`; the state there is kept as the base."""
    own = log.segments[-1]
    if not own.first <= upto <= log.head().seq:
        raise NotFoundError(f"session {log.id} has no event {upto} of its own to prune to", kind="event-not-found")
    for child in log.engine.children(log.id):
        if child.fork and child.fork.at < upto:
            raise NotAllowedError(
                f"fork {child.session} leaves {log.id} at event {child.fork.at}: what it shares cannot be pruned",
                kind="live-fork",
                hint=f"prune up to {child.fork.at} at most, or delete the fork first",
            )

    def plan() -> Surgery:
        base = _encode(fold_at(log.engine, log.segments, upto).fold.doc)
        event = ev.RangePruned(upto=upto, last_hash=log.entry(upto).hash.hex(), base=Payload(base, "json"), why=why)
        still_used = {digest for e in log.entries(after=upto) for digest, at in mentions(e) if 0 < at <= upto}
        rewritten = tuple(_with_pruned(log, upto, still_used))
        return Surgery((_seal_on_head(log, event),), rewritten, stale_from={}, pruned_to={log.id: upto})

    _operate(log, plan)
    return log.head()


def delete(log: Log, *, why: str = "") -> Head:
    """Ends the session for good. Forks that share its history keep reading it until they are deleted too."""
    for _ in range(_TRIES):
        try:
            return log.engine.delete(_seal_on_head(log, ev.SessionDeleted(why=why)))
        except ConflictError as exc:
            if exc.kind != "head-moved":
                raise
            log.forget()
    raise ConflictError(f"session {log.id} is too busy to be deleted", kind="too-busy")


def _operate(log: Log, plan: Callable[[], Surgery]) -> None:
    """Plans on the present heads and operates; when a writer came first, plans again."""
    for _ in range(_TRIES):
        try:
            log.engine.operate(plan())
            return
        except ConflictError as exc:
            if exc.kind != "head-moved":
                raise
        finally:
            log.forget()
    raise ConflictError(f"session {log.id} is too busy: writers kept coming first", kind="too-busy")


def _check_targets(log: Log, targets: frozenset[Seq]) -> None:
    if not targets:
        raise InvalidInputError("an erasure names at least one event", kind="empty-erase")
    for seq in sorted(targets):
        entry = log.entry(seq)
        if entry.kind in _UNERASABLE:
            raise NotAllowedError(f"event {seq} ({entry.kind}) says what was removed and stays", kind="unerasable")
        if not entry.record.body:
            raise NotFoundError(
                f"event {seq} was pruned; what it set may live on in the base state",
                kind="pruned",
                hint="retract or overwrite it, then prune up to a later event",
            )


def _sharing(engine: Engine, session: SessionId, seq: Seq) -> Iterator[SessionId]:
    """The session, and every fork below it that shares event `seq`."""
    yield session
    for child in engine.children(session):
        if child.fork and child.fork.at >= seq:
            yield from _sharing(engine, child.session, seq)


def _seal_on_head(log: Log, event: ev.Event) -> Commit:
    """The event as a commit on the present head, without a snapshot: the state at hand may hold what is to go."""
    head = log.head()
    fold = fold_at(log.engine, log.segments, head.seq).fold
    tip = Tip(fold, head.seq, head.hash, head.at)
    sealed = seal(tip, log.id, [Step(Draft(event, actor="user"))], now=log.clock())
    return msgspec.structs.replace(sealed.commit, snapshot=None)


def _with_replaced(log: Log, bodies: dict[Seq, bytes]) -> Iterator[Commit]:
    """This session's own commits that hold any of the events, with their bodies replaced and their payloads gone."""
    own = log.segments[-1]
    for commit in log.engine.read(log.id, after=own.first - 1, payloads=True):
        here = {seq for seq in bodies if commit.first <= seq <= commit.last}
        if not here:
            continue
        entries = list(read_entries(log.engine, log.segments, after=commit.first - 1, upto=commit.last))
        gone = {digest for e in entries if e.seq in here for digest, _ in mentions(e)}
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
