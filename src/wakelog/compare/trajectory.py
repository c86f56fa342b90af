"""Courses: what an attempt, a turn, a fork or a whole session did, as steps with totals.

A course contains what was in view at its last event. So an abandoned attempt still has all of its steps, and a whole
session does not include its abandoned attempts.

There are two kinds of attempts of a turn. Attempts made one after another are in the session itself, as @5.1 and @5.2.
Attempts made in parallel are forks that were made just before the turn and have their own turn with that number.
"""

from __future__ import annotations

import msgspec

from wakelog.compare.steps import Step, add_cost, gather
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.events import Cost
from wakelog.model.ids import Seq, SessionId
from wakelog.timeline.points import Span, accepted_attempt, attempts_of, read_view, walk_back
from wakelog.timeline.selectors import parse_selector, resolve_range


class Extent(msgspec.Struct, frozen=True):
    """Which events a course consists of: `first` to `last` of a log, both included."""

    log: Log
    first: Seq
    last: Seq
    name: str
    turn: int = 0
    attempt: int = 0


class Course(msgspec.Struct, frozen=True):
    """What was done from event `first` to event `last`, with totals."""

    session: SessionId
    name: str
    """For example fix-bug@6.2."""
    turn: int
    attempt: int
    """Zero unless it is one attempt of one turn."""
    first: Seq
    last: Seq
    outcome: str
    """The outcome with which the session was closed, unless that is `completed`; else the outcome of its last turn:
    completed, failed, interrupted or open; empty when it has no turn."""
    in_view: bool
    """Whether it is in the session's view now; false for an abandoned attempt."""
    steps: tuple[Step, ...]
    cost: Cost
    duration_us: int
    """From its first event to its last; 0 if they were imported from a transcript without times."""
    untrusted: tuple[str, ...]
    """The sources of content that is not trusted."""
    files: tuple[str, ...]
    gone: int
    """How many of its steps were erased or pruned, wholly or in part."""

    @property
    def calls(self) -> int:
        return sum(step.kind in ("tool", "model") for step in self.steps)


def read_course(extent: Extent) -> Course:
    """Reads a course's events and makes steps of them."""
    log = extent.log
    entries = list(read_view(log, extent.last, first=extent.first)) if extent.last else []
    found = gather(log, entries)
    cost = found.apart
    for step in found.steps:
        cost = add_cost(cost, step.cost)
    return Course(
        session=log.id,
        name=extent.name,
        turn=extent.turn,
        attempt=extent.attempt,
        first=extent.first,
        last=extent.last,
        outcome=_closing_outcome(entries) or _outcome_of_last_turn(entries, found.steps),
        in_view=any(low <= extent.first <= high for low, high in log.view()),
        steps=found.steps,
        cost=cost,
        duration_us=_duration(entries),
        untrusted=tuple(dict.fromkeys(s.source or s.trust for s in found.steps if s.trust != "trusted")),
        files=tuple(dict.fromkeys(s.name for s in found.steps if s.kind == "file" and s.name)),
        gone=sum(bool(s.gone) for s in found.steps),
    )


def _closing_outcome(entries: list[Entry]) -> str:
    """The outcome with which the session was closed, unless that is the default."""
    closed = next((e for e in reversed(entries) if e.kind in ("session.closed", "session.reopened")), None)
    outcome = closed.body.get("outcome") if closed is not None and closed.kind == "session.closed" else ""
    return outcome if isinstance(outcome, str) and outcome != "completed" else ""


def _outcome_of_last_turn(entries: list[Entry], steps: tuple[Step, ...]) -> str:
    started = next((e.seq for e in reversed(entries) if e.kind == "turn.started"), 0)
    end = next((step for step in reversed(steps) if step.kind == "end"), None)
    if started > (end.seq if end else 0):
        return "open"
    return end.outcome if end else ""


def _duration(entries: list[Entry]) -> int:
    if any(e.kind == "records.imported" for e in entries):
        # Only times from the transcript count, not the time of the import.
        entries = [e for e in entries if e.happened_at != e.header.at]
    return max(0, entries[-1].happened_at - entries[0].happened_at) if entries else 0


def select_extent(log: Log, text: str = "", name: str = "") -> Extent:
    """The events that a selector means: an attempt (@5.1), a turn (@5: its accepted attempt), a range, or without a
    position the whole session."""
    selector = parse_selector(text) if text else None
    place = (selector.first + (f"..{selector.last}" if selector.last else "")) if selector else ""
    name = name or str(log)
    if place in ("", "@"):
        return Extent(log, 1, log.head().seq, name)
    extent = resolve_range(log, place)
    if not extent.last:
        raise NotFoundError(f"there is no event yet at {text} in {name}", kind="event-not-found")
    if selector is not None and not selector.last and place.startswith(("@", "turn:")):
        spans = attempts_of(log, log.entry(extent.last).header.turn)
        inside = [span for span in spans if extent.first <= span.first and span.last <= extent.last]
        return _attempt_extent(log, accepted_attempt(log, inside), name, len(spans) > 1)
    joint = "" if place.startswith("@") else "@"
    return Extent(log, max(extent.first, 1), extent.last, f"{name}{joint}{place}")


def attempts(log: Log, turn: int, name: str = "", *, forks: bool = False) -> list[Extent]:
    """All attempts of a turn in order; with `forks`, also those that forks of this session made in parallel."""
    parallel = [fork for fork in _forks(log) if _first_turn(fork) == turn] if forks else []
    extents: list[Extent] = []
    if turn <= log.head().turn or not parallel:
        spans = attempts_of(log, turn)
        extents = [_attempt_extent(log, span, name or str(log), len(spans) > 1) for span in spans]
    for fork in parallel:
        spans = attempts_of(fork, turn)
        extents += [_attempt_extent(fork, s, str(fork), len(spans) > 1) for s in spans if s.first > _forked_at(fork)]
    return extents


def _attempt_extent(log: Log, span: Span, name: str, several: bool) -> Extent:
    shown = f"{name}@{span.turn}" + (f".{span.attempt}" if several else "")
    return Extent(log, span.first, span.last, shown, span.turn, span.attempt)


def _forks(log: Log) -> list[Log]:
    """The session's forks, the oldest first."""
    return [Log(log.engine, head.session, clock=log.clock, redact=log.redact) for head in log.forks()]


def _forked_at(fork: Log) -> Seq:
    head = fork.head()
    return head.fork.at if head.fork is not None else 0


def _first_turn(fork: Log) -> int:
    """The first turn that a fork made itself: a parallel attempt of its parent's turn with that number. 0 if none."""
    for entry in fork.entries(after=_forked_at(fork)):
        if entry.kind == "turn.started":
            return entry.header.turn
    return 0


def newest_retried_turn(log: Log) -> int:
    """The newest turn that was tried more than once, here or in a fork; NotFoundError if there is none."""
    newest = max(map(_first_turn, _forks(log)), default=0)
    for entry in walk_back(log):
        header = entry.header
        if 0 < header.turn <= newest:
            break
        if entry.kind == "turn.started" and header.attempt > 1:
            return header.turn
    if newest:
        return newest
    raise NotFoundError(
        f"no turn of {log} was tried more than once",
        kind="no-attempts",
        hint="wakelog compare A B compares any two turns",
    )
