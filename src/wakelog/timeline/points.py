"""Finds a position in a session by turn, attempt or time.

Turn numbers and times never decrease within a session, so a position is found by binary search; the last stretch is
read in one go. The search for a turn starts where the turn would be if all turns had the same length. That takes a few
reads, however long the session is, and no index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from wakelog.codec.envelope import is_encrypted
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.damage import Hole, commits_around
from wakelog.log.reader import Entry, read_commits
from wakelog.model.ids import Seq
from wakelog.model.records import Commit, Head

STRETCH = 128
"""Stop the binary search at this many events and read them in one go: each read is a round trip."""

GUESS_MIN = 8 * STRETCH
"""In shorter sessions a guess saves no read."""

PAGE = 256
"""How many events to read at a time when walking back."""


Ranges = list[tuple[Seq, Seq]]
"""The first and last events of ranges, in order."""


class Span(msgspec.Struct, frozen=True):
    """A turn, or one attempt of it: its first and last event, and how it ended ("open" while it runs)."""

    turn: int
    attempt: int
    first: Seq
    last: Seq
    outcome: str


def commit_at(log: Log, seq: Seq) -> Commit:
    """The commit that holds an event."""
    for commit, _ in read_commits(log.engine, log.segments, after=seq - 1, upto=seq):
        return commit
    raise NotFoundError(f"session {log.id} has no event {seq}", kind="event-not-found")


def first_commit(log: Log, holds: Callable[[Commit], bool]) -> Commit | None:
    """The first commit for which `holds` is true, given that it stays true from there on."""
    low, high, following = _stretch(log, holds, log.head().seq)
    return next((commit for commit in _commits(log, low, high) if holds(commit)), following)


def _stretch(
    log: Log, holds: Callable[[Commit], bool], last: Seq, near: Seq | None = None
) -> tuple[Seq, Seq, Commit | None]:
    """A binary search up to `last`. `holds` becomes true within the returned stretch, or in the returned commit, which
    follows the stretch (None if the search saw none). `near` is where to look first."""
    low, high = 1, last
    following: Commit | None = None
    step, middle = 0, (low + high) // 2
    if near is not None and high > GUESS_MIN:
        step, middle = STRETCH - 1, near
    while high - low >= STRETCH:
        middle = min(max(middle, low), high)
        # In a damaged session, use the next readable commit instead of one that cannot be read.
        commit = next(_commits(log, middle, high if log.even_damaged else middle), None)
        if commit is None:
            high = middle - 1  # nothing from `middle` on can be read
        elif holds(commit):
            following, high = commit, commit.first - 1
            step = -step
        else:
            low = commit.last + 1
        # A good guess is one step off. After a bad one, continue with plain halving.
        middle = (commit.first if step < 0 else commit.last) + step if step and commit else (low + high) // 2
        step = 0
    return low, high, following


def _commits(log: Log, first: Seq, last: Seq) -> Iterator[Commit]:
    """The commits of these events. Damaged ones are skipped if the log allows reading a damaged session."""
    if not log.even_damaged:
        for commit, _ in read_commits(log.engine, log.segments, after=first - 1, upto=last):
            yield commit
        return
    for segment in log.segments:
        upto = last if segment.last is None else min(segment.last, last)
        for found in commits_around(log.engine, segment.session, after=max(first, segment.first) - 1, upto=upto):
            if not isinstance(found, Hole):
                yield found


def attempts_of(log: Log, turn: int, head: Head | None = None) -> list[Span]:
    """All attempts of a turn, in order. Pass `head` if you have it already."""
    head = head or log.head()
    if not 0 < turn <= head.turn:
        known = f"it has @1..@{head.turn}" if head.turn else "it has no turns yet"
        raise NotFoundError(f"no turn @{turn} in {log.head()} ({known})", kind="turn-not-found")
    near = head.seq * (turn - 1) // head.turn
    start, _, _ = _stretch(log, lambda c: c.turn >= turn, head.seq, near)
    spans: list[Span] = []
    on_hole = (lambda _: None) if log.even_damaged else None
    for entry in log.entries(after=start - 1, upto=head.seq, on_hole=on_hole):
        header = entry.header
        if header.turn > turn:
            break
        if header.turn != turn:
            continue
        if entry.kind == "turn.started":
            spans.append(Span(turn, header.attempt, entry.seq, entry.seq, "open"))
        elif spans:
            outcome = _outcome(entry) if entry.kind == "turn.ended" else spans[-1].outcome
            spans[-1] = msgspec.structs.replace(spans[-1], last=entry.seq, outcome=outcome)
    if not spans:
        raise NotFoundError(f"no turn @{turn} in {log.head()}", kind="turn-not-found")
    return spans


def _outcome(entry: Entry) -> str:
    """How a turn ended; empty if that is encrypted. The position can be found without the key."""
    return "" if is_encrypted(entry.record.body) else str(entry.body.get("outcome", "completed"))


def accepted_attempt(log: Log, spans: list[Span], view: Ranges | None = None) -> Span:
    """The attempt that is in view; when none is, the newest. Pass `view` if you have it already."""
    if len(spans) == 1:
        return spans[0]
    view = log.view() if view is None else view
    seen = [span for span in spans if any(low <= span.first <= high for low, high in view)]
    return (seen or spans)[-1]


def seq_at_time(log: Log, at_us: int) -> Seq:
    """The last event at or before a time; 0 when the session began later."""
    later = first_commit(log, lambda c: c.at > at_us)
    return log.head().seq if later is None else later.first - 1


def read_view(log: Log, at: Seq | None = None, *, first: Seq = 1) -> Iterator[Entry]:
    """The events in view at a point (now, if None), from event `first` on."""
    for low, high in log.view(at):
        if high >= first:
            yield from log.entries(after=max(low, first) - 1, upto=high)


def walk_back(log: Log) -> Iterator[Entry]:
    """Events from the newest to the oldest, read a page at a time."""
    upto = log.head().seq
    while upto > 0:
        after = max(0, upto - PAGE)
        yield from reversed(list(log.entries(after=after, upto=upto)))
        upto = after
