"""What follows from an event, and what is found in one: what erasing needs to know before it starts.

**Cascade.** An event names what caused it and what it was derived from. Walking forward from a target, everything that
names it, or names something that does, may hold what it held. Forks that share the target are walked too.

**Scan.** Stored events are shown to a finder of secrets, with their payloads in place. It says what kinds it found; the
secrets themselves are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

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
    """The events after the targets that came of them, here and in forks that share a target."""
    start = frozenset(targets)
    out = [f for f in _walk(log, set(start), min(start)) if f.seq not in start]
    known = start | {f.seq for f in out}
    for session in {s.session for s in log.segments if s.last is None or s.last >= min(start)}:
        out += _in_forks(log, session, known, min(start), seen={log.id})
    return sorted(out, key=lambda f: (f.session, f.seq))


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
    header = entry.header
    if header.cause in known:
        return header.cause
    ranges = header.derived_from
    return next((seq for first, last in ranges for seq in known if first <= seq <= last), 0)


def _in_forks(
    log: Log, session: SessionId, known: frozenset[Seq], first: Seq, seen: set[SessionId]
) -> Iterator[Follower]:
    for child in log.engine.children(session):
        if child.session in seen or child.fork is None or child.fork.at < first:
            continue
        seen.add(child.session)
        fork = Log(log.engine, child.session)
        shared = {seq for seq in known if seq <= child.fork.at}
        if shared & known:
            yield from _walk(fork, shared, child.fork.at)
        yield from _in_forks(log, child.session, known, first, seen)


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
