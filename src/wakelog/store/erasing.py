"""What follows from an event, and what is found in one: what erasing needs to know before it starts.

**Cascade.** An event names what caused it and what it was derived from. Walking forward from a target, everything that
names it, or names something that does, may hold what it held. Forks that share the target are walked too.

**Scan.** Stored events are shown to a finder of secrets, with their payloads in place. It says what kinds it found; the
secrets themselves are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from wakelog.engine import Engine
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId

Finder = Callable[[ev.Event], Iterable[str]]


class Follower(msgspec.Struct, frozen=True):
    """An event that came of a target: in which session it stands, and which earlier event it names."""

    session: SessionId
    seq: Seq
    kind: str
    turn: int
    named: Seq


class Found(msgspec.Struct, frozen=True):
    """An event in which secrets were found, and of what kinds."""

    session: SessionId
    seq: Seq
    kind: str
    turn: int
    markers: tuple[str, ...]


def followers(log: Log, targets: Iterable[Seq]) -> list[Follower]:
    """The events after the targets that came of them: in every live session of the fork tree that has a target in its
    history. Targets themselves are not among them."""
    by_holder: dict[SessionId, set[Seq]] = {}
    for seq in targets:
        by_holder.setdefault(holder_of(log, seq), set()).add(seq)
    out: dict[tuple[SessionId, Seq], Follower] = {}
    for holder, mine in by_holder.items():
        for member in _tree(log.engine, holder):
            known = {seq for seq in mine if seq <= member.head().seq and holder_of(member, seq) == holder}
            if known and member.head().status != "deleted":
                out.update({(f.session, f.seq): f for f in _walk(member, known, min(known))})
    chosen = {(holder, seq) for holder, mine in by_holder.items() for seq in mine}
    return [out[place] for place in sorted(out) if place not in chosen]


def _tree(engine: Engine, session: SessionId) -> Iterator[Log]:
    """A session and every fork below it, deleted ones too: others may read through them."""
    yield Log(engine, session, even_deleted=True)
    for child in engine.children(session, deleted=True):
        yield from _tree(engine, child.session)


def holder_of(log: Log, seq: Seq) -> SessionId:
    """The session of the fork tree in which an event of this history stands."""
    return next(s.session for s in reversed(log.segments) if s.first <= seq)


def scan(log: Log, find: Finder) -> Iterator[Found]:
    """The events in which `find` finds something. What is erased or pruned is passed over."""
    for entry in log.entries():
        if entry.is_intact and entry.record.body:
            markers = tuple(dict.fromkeys(find(_with_payloads(log, entry))))
            if markers:
                yield Found(holder_of(log, entry.seq), entry.seq, entry.kind, entry.header.turn, markers)


def _walk(log: Log, known: set[Seq], after: Seq) -> Iterator[Follower]:
    for entry in log.entries(after=after):
        named = _named(entry, known)
        if named:
            known.add(entry.seq)
            yield Follower(holder_of(log, entry.seq), entry.seq, entry.kind, entry.header.turn, named)


def _named(entry: Entry, known: set[Seq]) -> Seq:
    """The earliest known event that this one names, or 0."""
    header = entry.header
    if header.cause in known:
        return header.cause
    for first, last in header.derived_from:
        few = known if len(known) < last - first else range(first, last + 1)
        found = min((seq for seq in few if first <= seq <= last and seq in known), default=0)
        if found:
            return found
    return 0


def _with_payloads(log: Log, entry: Entry) -> ev.Event:
    event = entry.event
    if isinstance(event, ev.Foreign):
        return event
    resolved = {}
    for field in event.payload_fields:
        try:
            value = log.value(entry, getattr(event, field))
        except NotFoundError:
            continue
        resolved[field] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return msgspec.structs.replace(event, **resolved) if resolved else event
