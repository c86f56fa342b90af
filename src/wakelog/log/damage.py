"""Reads around damage: returns what is intact and names what is not.

The unit of loss is the commit: its bytes are stored together under one checksum, and one flipped bit makes all of them
unreadable. The commits after it are still verified up to the head, but no longer linked to those before the damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, WakelogError
from wakelog.log.reader import Entry, Segment, open_commit, sound_head
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit

NEAR = 64
"""How many events after the damage are tried one by one; after that the steps grow."""


class Hole(msgspec.Struct, frozen=True):
    """Events that cannot be read, and why. `session` holds them; for a fork that may be its parent."""

    session: SessionId
    first: Seq
    last: Seq
    why: str

    @property
    def place(self) -> str:
        return f"e{self.first}" if self.first == self.last else f"e{self.first}..e{self.last}"


OnHole = Callable[[Hole], None]


def commits_around(
    engine: Engine, session: SessionId, *, after: Seq, upto: Seq, payloads: bool = False
) -> Iterator[Commit | Hole]:
    """The commits with events `after` < seq ≤ `upto` of one session, and a hole for each that is missing."""
    at = after
    while at < upto:
        problem: CorruptLogError | None = None
        try:
            for commit in engine.read(session, after=at, upto=upto, payloads=payloads):
                if commit.first > at + 1:
                    yield _missing(session, at + 1, commit.first - 1)
                at = commit.last
                yield commit
        except CorruptLogError as exc:
            problem = exc
        if problem is None:
            if at < upto:
                yield _missing(session, at + 1, upto)
            return
        last = _end_of_damage(engine, session, at, upto, problem)
        yield Hole(session, at + 1, last, problem.message)
        at = last


def _missing(session: SessionId, first: Seq, last: Seq) -> Hole:
    what = f"event {first} of {session} is" if first == last else f"events {first} to {last} of {session} are"
    return Hole(session, first, last, f"{what} missing")


def _end_of_damage(engine: Engine, session: SessionId, at: Seq, upto: Seq, problem: CorruptLogError) -> Seq:
    """The last event lost with a damaged commit: as the error says, else the last before the next intact commit."""
    if problem.seq == at + 1 and at < problem.upto <= upto:
        return problem.upto
    probe, step = at + 1, 1
    while probe < upto:
        try:
            following = next(iter(engine.read(session, after=probe, upto=probe + 1)), None)
        except CorruptLogError as exc:
            probe = max(probe, min(exc.upto, upto) - 1)
        else:
            if following is not None and following.first > at + 1:
                return following.first - 1
        step = step if probe - at < NEAR else step * 2
        probe += step
    return upto


def entries_around(
    engine: Engine, segments: list[Segment], *, after: Seq, upto: Seq | None, on_hole: OnHole, payloads: bool = False
) -> Iterator[Entry]:
    """The events of a history with `after` < seq ≤ `upto`, each checked within its commit. `on_hole` is called for each
    hole, in order, and when the end is not the head."""
    own = segments[-1].session
    end: Hole | None = None
    if upto is None:
        upto = sound_head(engine, own).seq
        try:
            engine.head(own)
        except CorruptLogError as exc:
            end = Hole(own, upto + 1, max(exc.upto, upto + 1), exc.message)
    yield from _entries_around_damage(engine, segments, after, upto, on_hole, payloads)
    if end is not None:
        on_hole(end)


def _entries_around_damage(
    engine: Engine, segments: list[Segment], after: Seq, upto: Seq, on_hole: OnHole, payloads: bool
) -> Iterator[Entry]:
    prev: bytes | None = None
    for segment in segments:
        last = upto if segment.last is None else min(segment.last, upto)
        low = max(after, segment.first - 1)
        for found in commits_around(engine, segment.session, after=low, upto=last, payloads=payloads):
            hole = found if isinstance(found, Hole) else None
            entries: list[Entry] = []
            if not isinstance(found, Hole):
                try:
                    entries = open_commit(found)
                except CorruptLogError as exc:
                    hole = Hole(segment.session, max(found.first, low + 1), min(found.last, last), exc.message)
                else:
                    if prev is not None and found.prev != prev and found.first > low + 1:
                        what = f"the chain of {found.session} breaks before event {found.first}"
                        on_hole(Hole(segment.session, found.first, found.first, what))
            if hole is not None:
                prev = None
                on_hole(hole)
                continue
            for entry in entries:
                if low < entry.seq <= last:
                    prev = entry.hash
                    yield entry


def every_id(engine: Engine, after: str = "") -> Iterator[tuple[SessionId, WakelogError | None]]:
    """All sessions of a store that are not deleted, in order of id; those that cannot be opened with the reason."""
    try:
        while page := engine.sessions(after=after, limit=1000):
            for head in page:
                yield head.session, None
                after = head.session
        return
    except CorruptLogError as exc:
        problem = exc
    if (damage := engine.abilities.damage) is None:
        raise problem
    for session in damage.session_ids():
        if session <= after:
            continue
        try:
            if engine.head(session).status != "deleted":
                yield session, None
        except WakelogError as exc:
            yield session, exc
