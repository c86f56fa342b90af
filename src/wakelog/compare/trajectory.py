"""Courses: what an attempt, a turn, a fork or a whole session did, as steps with their sums.

A course has what was in view at its last event. So an abandoned attempt still has all of its steps, and a session is
read without its abandoned attempts.

There are two kinds of attempts of a turn. Attempts made one after another are in the session itself, as @5.1 and @5.2.
Attempts made in parallel are forks that were made just before the turn and have their own turn with that number.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wakelog.compare.steps import Step, add_cost, gather
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.events import Cost
from wakelog.model.ids import Seq, SessionId
from wakelog.timeline.points import Span, accepted, attempts_of, walk_back
from wakelog.timeline.selectors import parse_selector, resolve_range


class Extent(msgspec.Struct, frozen=True):
    """Where a course is to be read: from event `first` to event `last` of a log, both included."""

    log: Log
    first: Seq
    last: Seq
    name: str
    turn: int = 0
    attempt: int = 0


class Course(msgspec.Struct, frozen=True):
    """What was done from event `first` to event `last`, and what it came to."""

    session: SessionId
    name: str
    """What it is called: fix-bug@6.2."""
    turn: int
    attempt: int
    """Zero unless it is one attempt of one turn."""
    first: Seq
    last: Seq
    outcome: str
    """Of its last turn: completed, failed, interrupted or open; empty when it has no turn. A session that was closed
    with a verdict of its own has that."""
    in_view: bool
    """Whether the session now looks at it; false for an attempt that was given up."""
    steps: tuple[Step, ...]
    cost: Cost
    duration_us: int
    """From its first event to its last; 0 where they were taken from a transcript that has no times."""
    untrusted: tuple[str, ...]
    """Where content came from that is not trusted."""
    files: tuple[str, ...]
    gone: int
    """How many of its steps were erased or pruned, wholly or in part."""

    @property
    def calls(self) -> int:
        return sum(step.kind in ("tool", "model") for step in self.steps)


def read_course(extent: Extent) -> Course:
    """Reads a course's events and makes steps of them."""
    log = extent.log
    entries = list(_in_view(log, extent.first, extent.last))
    found = gather(log, entries)
    ends = [step for step in found.steps if step.kind == "end"]
    started = next((e.seq for e in reversed(entries) if e.kind == "turn.started"), 0)
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
        outcome=_verdict(entries)
        or ("open" if started > (ends[-1].seq if ends else 0) else ends[-1].outcome if ends else ""),
        in_view=any(low <= extent.first <= high for low, high in log.view()),
        steps=found.steps,
        cost=cost,
        duration_us=_duration(entries),
        untrusted=tuple(dict.fromkeys(s.source or s.trust for s in found.steps if s.trust != "trusted")),
        files=tuple(dict.fromkeys(s.name for s in found.steps if s.kind == "file" and s.name)),
        gone=sum(bool(s.gone) for s in found.steps),
    )


def _verdict(entries: list[Entry]) -> str:
    """How a session that is closed came out, where that is more than that it is over."""
    closed = next((e for e in reversed(entries) if e.kind in ("session.closed", "session.reopened")), None)
    said = closed.body.get("outcome") if closed is not None and closed.kind == "session.closed" else ""
    return said if isinstance(said, str) and said != "completed" else ""


def _duration(entries: list[Entry]) -> int:
    if any(e.kind == "records.imported" for e in entries):
        # When they were written says nothing; only what the transcript says does.
        entries = [e for e in entries if e.happened_at != e.header.at]
    return max(0, entries[-1].happened_at - entries[0].happened_at) if entries else 0


def _in_view(log: Log, first: Seq, last: Seq) -> Iterator[Entry]:
    for low, high in log.view(last) if last else ():
        if high >= first:
            yield from log.entries(after=max(low, first) - 1, upto=min(high, last))


def select_extent(log: Log, text: str = "", name: str = "") -> Extent:
    """What a selector names: an attempt (@5.1), a turn (@5: its accepted attempt), a range, or with no place the whole
    session."""
    selector = parse_selector(text) if text else None
    place = (selector.first + (f"..{selector.last}" if selector.last else "")) if selector else ""
    name = name or str(log)
    if place in ("", "@"):
        return Extent(log, 1, log.head().seq, name)
    found = resolve_range(log, place)
    if not found.last:
        raise NotFoundError(f"there is no event yet at {text} in {name}", kind="event-not-found")
    if selector is not None and not selector.last and place.startswith(("@", "turn:")):
        spans = attempts_of(log, log.entry(found.last).header.turn)
        inside = [span for span in spans if found.first <= span.first and span.last <= found.last]
        return _attempt(log, accepted(log, inside), name, len(spans) > 1)
    joint = "" if place.startswith("@") else "@"
    return Extent(log, max(found.first, 1), found.last, f"{name}{joint}{place}")


def attempts(log: Log, turn: int, name: str = "", *, forks: bool = False) -> list[Extent]:
    """All attempts of a turn in order; with `forks`, also those that forks of this session made beside it."""
    beside = [fork for fork in _forks(log) if _first_turn(fork) == turn] if forks else []
    found: list[Extent] = []
    if turn <= log.head().turn or not beside:
        spans = attempts_of(log, turn)
        found = [_attempt(log, span, name or str(log), len(spans) > 1) for span in spans]
    for fork in beside:
        spans = attempts_of(fork, turn)
        found += [_attempt(fork, s, str(fork), len(spans) > 1) for s in spans if s.first > _left_at(fork)]
    return found


def _attempt(log: Log, span: Span, name: str, several: bool) -> Extent:
    shown = f"{name}@{span.turn}" + (f".{span.attempt}" if several else "")
    return Extent(log, span.first, span.last, shown, span.turn, span.attempt)


def _forks(log: Log) -> list[Log]:
    """The session's forks, the oldest first."""
    return [Log(log.engine, head.session, clock=log.clock, redact=log.redact) for head in log.forks()]


def _left_at(fork: Log) -> Seq:
    head = fork.head()
    return head.fork.at if head.fork is not None else 0


def _first_turn(fork: Log) -> int:
    """The turn a fork began with: what its parent did, or may do, in the turn of that number, it tried as well."""
    for entry in fork.entries(after=_left_at(fork)):
        if entry.kind == "turn.started":
            return entry.header.turn
    return 0


def tried_again(log: Log) -> int:
    """The newest turn that was tried more than once, here or in a fork; NotFoundError when none was."""
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
