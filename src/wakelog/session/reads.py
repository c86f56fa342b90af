"""Verbs that read: state, events, messages, diff, blame and why, at any point; and `replay`, which runs code again.

Rooms that few programs need (compare, provenance, replay) are imported inside the verb that uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from wakelog.diff.turn_diff import TurnDiff, turn_diff
from wakelog.diff.writers import Blame, blame
from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.log.verify import VerifyReport, verify
from wakelog.model.document import State
from wakelog.model.ids import Seq
from wakelog.model.records import Anchor, Commit, Head
from wakelog.session.base import Base, S, What, Where
from wakelog.timeline.messages import Message, read_messages
from wakelog.timeline.points import commit_at
from wakelog.timeline.selectors import Point, Range, parse_selector, resolve_change, resolve_range
from wakelog.timeline.slices import Slice, read_slice, tool_of

if TYPE_CHECKING:
    from wakelog.compare.comparison import Comparison
    from wakelog.compare.trajectory import Course, Extent
    from wakelog.context.brief import Brief
    from wakelog.context.token_count import Count
    from wakelog.insight.items import Insight
    from wakelog.provenance.why import Why
    from wakelog.replay.call_match import Order
    from wakelog.replay.recorded_runtime import Effects
    from wakelog.replay.recording import Recording
    from wakelog.replay.replay import Replay
    from wakelog.replay.report import Mode
    from wakelog.session.bisection import Bisected, Bisection, Judge
    from wakelog.session.session import Session

Side = str | Base[Any] | tuple[Base[Any], str]
"""One side of a comparison: a place in this session ("@5.1", "@3..@7"), a whole session (a fork, or any other), or a
place in another session."""


class SessionReads(Base[S]):
    """Reading and checking."""

    def state(self, at: Where = None) -> State:
        """Returns the typed state at a point, or now."""
        return msgspec.convert(self.log.state(self._upto(at)), State)

    def events(self, **filters: Any) -> Iterator[Entry]:
        """Events by position and content: `after`, `upto`, `turn`, `attempt`, `since`, `until`, `kind`, `tool`; oldest
        first, or `newest_first`."""
        return read_slice(self.log, Slice(**filters))

    def __getitem__(self, selector: str) -> Iterator[Entry]:
        """Reads the events of a turn or a range, both ends included: `session["@5"]`, `session["@3..@7"]`."""
        found: Point | Range = resolve_range(self.log, selector)
        return self.log.entries(after=found.first - 1, upto=found.last)

    def commit(self, at: Where = None) -> Commit:
        """The commit that holds an event: what was stored together with it."""
        return commit_at(self.log, self._existing(at))

    def tool_of(self, entry: Entry, known: dict[str, str] | None = None) -> str:
        """The tool an event is about; empty for most kinds. An outcome names only its action: pass the same `known`
        for all events of a list, and what it answers is not looked up again."""
        return tool_of(self.log, entry, {} if known is None else known)

    def messages(self, at: Where = None, *, compacted: bool = True) -> list[Message]:
        """Returns the messages in view, oldest first. Messages that were rewound are left out; they are still in the
        log. A compacted range is given as its summary; `compacted=False` gives the original messages."""
        return read_messages(self.log, self._upto(at), compacted=compacted)

    def diff(self, a: Where = None, b: Where = None, *, other: Base[Any] | None = None) -> TurnDiff:
        """Shows what changed from `a` to `b`, with event, tool and reason; by default, what the last turn changed.

        One position alone means what it changed: `diff("@2")` shows what turn 2 did, `diff("e12")` what that event did.
        For everything since, write `diff("@2", "@")`, or a range: `diff("@2..@5")`. A time or a checkpoint alone means
        since then. With `other`, `b` is a point of that session: a fork, or any other.
        """
        if b is None and other is None:
            first, last = resolve_change(self.log, a)
            return turn_diff(self.log, first, self.log, last)
        target = other.log if other is not None else self.log
        to = target.head().seq if b is None else (other or self).seq(b)
        return turn_diff(self.log, self.seq(a), target, to)

    def blame(self, pointer: str = "", at: Where = None) -> list[Blame]:
        """Shows who last wrote each key below a JSON Pointer: event, turn, tool and reason."""
        return blame(self.log, pointer, self.seq(at))

    def why(self, what: What, *, at: Where = None, depth: int = 12, steps: int = 60, wide: bool = False) -> Why:
        """Shows where something came from, back to its origins. Every edge says how it is known.

        `depth` and `steps` limit what is shown (0: no limit), never what is searched. With `wide`, a model call without
        a recorded window counts as having seen the earlier turns too.
        """
        from wakelog.provenance.why import why

        return why(self.log, what, at=self._upto(at), depth=depth, steps=steps, wide=wide)

    def brief(self, budget: int = 2000, *, at: Where = None, count: Count | None = None) -> Brief:
        """Writes the handoff for the next run, machine or agent, in at most `budget` tokens; `str()` gives its text."""
        from wakelog.context.brief import make_brief
        from wakelog.context.token_count import estimate

        wanted = self.store.wanted_by(self) if self.store is not None else []
        return make_brief(self.log, budget, at=self._upto(at), count=count or estimate, wanted=wanted)

    def insight(self, where: Where = None, *, all: bool = False) -> Insight:
        """What the agent decided, changed and gave up in some turns, derived from its own words and calls by rules; by
        default of the last turn. Each item quotes the log and is `derived`: the agent did not record it. What it did
        record hides what would be derived beside it. With `all`, minor decisions too.
        """
        from wakelog.session.insights import insight_of

        return insight_of(cast("Session[S]", self), where, everything=all)

    def follow(self, *, after: Seq | None = None, timeout_s: float | None = None) -> Iterator[Entry]:
        """Streams new events live, from any process, each once and in order."""
        return self.log.follow(after=self.head.seq if after is None else after, timeout_s=timeout_s)

    def verify(self, anchor: Anchor | None = None) -> VerifyReport:
        """Checks every byte, the hash chain, and what is derived from them. With an anchor, it also checks that no
        events were cut off."""
        return verify(self.log, anchor)

    def export_bundle(self, out: IO[bytes], *, beyond: bool = False) -> Head:
        """Writes the session and its ancestors as a bundle, a file that proves itself; `Store.import_bundle` reads it
        elsewhere. What ancestors did after the fork goes along only with `beyond`, and only where the proof needs
        it."""
        from wakelog.log.bundle import export_bundle

        return export_bundle(self.log, out, beyond=beyond)

    def anchor(self) -> Anchor:
        """Exports the head hash for later tamper checks."""
        return self.log.anchor()

    def attempts_of(self, turn: int | None = None, *, forks: bool = False) -> list[Course]:
        """Lists all attempts of a turn with outcome, steps, time and cost; by default, of the newest turn with more
        than one attempt. With `forks`, also what forks did instead."""
        from wakelog.compare.trajectory import attempts, read_course, tried_again

        number = tried_again(self.log) if turn is None else turn
        return [read_course(extent) for extent in attempts(self.log, number, self.name, forks=forks)]

    def compare(self, *sides: Side, other: Base[Any] | None = None) -> Comparison:
        """Compares attempts, turns, forks or sessions, step by step: the first difference, its cause, and what
        followed. The others are compared with the first side.

        Without sides: the attempts of the newest turn that was tried again; one place: the attempts of that turn. One
        session: this one against it. With `other`, all places but the first are in that session; a place given once is
        meant in both.
        """
        from wakelog.compare.comparison import compare

        return compare(*self._extents(sides, other))

    def _extents(self, sides: tuple[Side, ...], other: Base[Any] | None) -> list[Extent]:
        if other is not None:
            first = sides[0] if sides else ""
            rest = sides[1:] or (first if isinstance(first, str) else "",)
            return [_in(self, first), *(_in(other, side) for side in rest)]
        if len(sides) == 1 and not isinstance(sides[0], str):
            return [_in(self, ""), _in(self, sides[0])]
        if len(sides) > 1:
            return [_in(self, side) for side in sides]
        from wakelog.compare.trajectory import attempts, tried_again

        number = _turn_at(self, str(sides[0])) if sides else tried_again(self.log)
        return attempts(self.log, number, self.name, forks=True) if number else []

    def bisect(self, bad: Where, good: Where, is_good: Judge) -> Bisected:
        """Finds the first bad turn between a point that is good and one that is bad, in a few tests: `is_good(point)`
        says True, False, or None when it cannot tell. The state to test is `session.state(point.seq)`."""
        from wakelog.session.bisection import begin, finish

        search = begin(self.log, self.seq(bad), self.seq(good))
        while (point := search.next) is not None:
            told = is_good(point)
            search = search.mark("skip" if told is None else "good" if told else "bad")
        return finish(self, search)

    def start_bisect(self, bad: Where, good: Where) -> Bisection:
        """Begins the same search step by step: `search.next` is what to test, `search.mark("bad")` goes on."""
        from wakelog.session.bisection import begin

        return begin(self.log, self.seq(bad), self.seq(good))

    def end_bisect(self, search: Bisection) -> Bisected:
        """What such a search came to: the first bad turn, and what it changed, or the turns it may be."""
        from wakelog.session.bisection import finish

        return finish(self, search)

    def recording(self, where: Where = None) -> Recording:
        """What a replay of a turn, an attempt or a range would run again: its turns and calls, with what each was
        given and answered. Without a place, of the whole session."""
        from wakelog.replay.recording import read_recording

        return read_recording(self.log, where)

    def replay(
        self,
        where: Where = None,
        *,
        mode: Mode = "strict",
        effects: Effects = "refuse",
        order: Order = "recorded",
        record: bool = False,
    ) -> Replay[Session[S]]:
        """Runs the agent's own code again from a point: `with session.replay("@4..@7") as replay: run(replay.session)`.

        `strict` answers every call from the record and runs no tool. Any difference raises DivergenceError, which names
        the step. It runs in memory and stores nothing, unless you ask it to `record`. `fill` answers calls that are
        recorded and runs the others; `live` runs everything and compares. Both run in a new fork, and refuse calls that
        write or reach outside unless `effects="allow"`. `replay.report` tells what was the same.

        Calls made one after another must come in the recorded `order`; calls made in parallel need not.
        """
        from wakelog.session.replayed import open_replay

        return open_replay(cast("Session[S]", self), where, mode, effects, order, record)


def _turn_at(session: Base[Any], place: str) -> int:
    """The turn that a place is in; @6 may be one that only forks have, and a whole session is in none."""
    _refuse_other(session, place)
    if place.startswith("@") and place[1:].isdigit():
        return int(place[1:])
    first = parse_selector(place).first
    return session.log.entry(resolve_range(session.log, first).last).header.turn if first else 0


def _in(session: Base[Any], side: Side) -> Extent:
    from wakelog.compare.trajectory import select_extent

    if isinstance(side, tuple):
        return select_extent(side[0].log, side[1], side[0].name)
    if not isinstance(side, str):
        return select_extent(side.log, name=side.name)
    _refuse_other(session, side)
    return select_extent(session.log, side, session.name)


def _refuse_other(session: Base[Any], side: str) -> None:
    """InvalidInputError for a place in another session."""
    named = parse_selector(side).session if side else ""
    if named and named not in (session.name, session.id):
        raise InvalidInputError(
            f"{side!r} names another session than {session}",
            kind="bad-selector",
            hint=f"pass it as a session: session.compare(store.resume({named!r}))",
        )
