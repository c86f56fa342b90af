"""Bisection: finds the first bad turn in a few tests, instead of one test for each turn.

The points to test are the turns in view between a known good and a known bad point; in a session without turns, its
events. Each test halves the rest. A point that cannot be tested is skipped, and one near it is tried. If all points in
between are skipped, the result stays open. A `Bisection` is a value, so it can be saved in a file between two tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from wakelog.diff.turn_diff import TurnDiff
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.model.ids import Seq, SessionId

Mark = Literal["good", "bad", "skip"]


class BisectPoint(msgspec.Struct, frozen=True):
    """A point to test: the state after a turn, or after an event."""

    seq: Seq
    turn: int = 0
    attempt: int = 1

    @property
    def place(self) -> str:
        if not self.turn:
            return f"e{self.seq}" if self.seq else "@0"
        return f"@{self.turn}" + (f".{self.attempt}" if self.attempt > 1 else "")


class JudgedPoint(msgspec.Struct, frozen=True):
    """A verdict on a point."""

    seq: Seq
    verdict: Mark


class Bisection(msgspec.Struct, frozen=True):
    """A search in progress. The first of `points` is good, the last one bad."""

    session: SessionId
    points: tuple[BisectPoint, ...]
    judged: tuple[JudgedPoint, ...] = ()

    @property
    def _ends(self) -> tuple[int, int]:
        """The indexes of the last known good and the first known bad point."""
        places = {point.seq: place for place, point in enumerate(self.points)}
        good = [places[each.seq] for each in self.judged if each.verdict == "good"]
        bad = [places[each.seq] for each in self.judged if each.verdict == "bad"]
        return max(good, default=0), min(bad, default=len(self.points) - 1)

    @property
    def good(self) -> BisectPoint:
        return self.points[self._ends[0]]

    @property
    def bad(self) -> BisectPoint:
        return self.points[self._ends[1]]

    @property
    def _untested(self) -> list[int]:
        low, high = self._ends
        skipped = {each.seq for each in self.judged if each.verdict == "skip"}
        return [place for place in range(low + 1, high) if self.points[place].seq not in skipped]

    @property
    def left(self) -> int:
        """How many points could still be tested."""
        return len(self._untested)

    @property
    def next(self) -> BisectPoint | None:
        """The point to test now; None if none is left."""
        if not (untested := self._untested):
            return None
        low, high = self._ends
        return self.points[min(untested, key=lambda place: (abs(2 * place - low - high), place))]

    @property
    def suspects(self) -> tuple[BisectPoint, ...]:
        """The points that may be the first bad one. There are several while the search goes on, or if points were
        skipped."""
        low, high = self._ends
        return self.points[low + 1 : high + 1]

    @property
    def first_bad(self) -> BisectPoint | None:
        """The first bad point; None while it is not decided."""
        low, high = self._ends
        return self.points[high] if high == low + 1 else None

    def mark(self, verdict: Mark, point: BisectPoint | None = None) -> Bisection:
        """Returns the search after one more verdict, on the next point or on another one."""
        point = point or self.next
        if point is None:
            raise NotAllowedError("there is nothing left to test", kind="bisect-over", hint="wakelog bisect reset")
        if verdict not in ("good", "bad", "skip"):
            raise InvalidInputError(f"{verdict!r} is not good, bad or skip", kind="bad-verdict")
        place = self.points.index(point)
        low, high = self._ends
        if (verdict == "good" and place >= high) or (verdict == "bad" and place <= low):
            other, known = (self.bad, "bad") if verdict == "good" else (self.good, "good")
            raise InvalidInputError(
                f"{point.place} cannot be {verdict}: {other.place} is known to be {known}", kind="bad-verdict"
            )
        return msgspec.structs.replace(self, judged=(*self.judged, JudgedPoint(point.seq, verdict)))


class Bisected(msgspec.Struct, frozen=True):
    """The result of a search. `change` is what the first bad turn changed, with event and reason of each change."""

    first_bad: BisectPoint | None
    last_good: BisectPoint
    suspects: tuple[BisectPoint, ...]
    judged: tuple[JudgedPoint, ...]
    change: TurnDiff | None


Judge = Callable[[BisectPoint], "bool | None"]
"""Says whether a point is good; None if it cannot tell."""


def begin(log: Log, bad: Seq, good: Seq) -> Bisection:
    """Starts a search between two points of a session."""
    if good >= bad:
        raise InvalidInputError(
            f"the good point (e{good}) must come before the bad one (e{bad})",
            kind="bad-selector",
            hint="wakelog bisect start BAD GOOD",
        )
    view = log.view(bad)

    def is_in_view(seq: Seq) -> bool:
        return any(low <= seq <= high for low, high in view)

    if good and not is_in_view(good):
        raise InvalidInputError(
            f"e{good} was rewound before e{bad}: what came after it did not lead there",
            kind="bad-selector",
            hint="choose a good point that is in view",
        )
    turns: dict[tuple[int, int], Seq] = {}
    events: list[Seq] = []
    for entry in log.entries(after=good, upto=bad):
        if is_in_view(entry.seq):
            events.append(entry.seq)
            if entry.header.turn:
                turns[entry.header.turn, entry.header.attempt] = entry.seq
    points = [BisectPoint(seq, turn, attempt) for (turn, attempt), seq in turns.items()]
    if not points:
        points = [BisectPoint(seq) for seq in events]
    first = log.entry(good).header if good else None
    start = BisectPoint(good, first.turn, first.attempt) if first is not None else BisectPoint(0)
    # Events after the end of the last turn, such as notes, are tested together with that turn.
    last = msgspec.structs.replace(points[-1], seq=bad)
    return Bisection(log.id, (start, *points[:-1], last))


def finish(session: Any, search: Bisection) -> Bisected:
    """Returns the result of a search so far."""
    point = search.first_bad
    change = session.diff(search.good.seq, point.seq) if point is not None else None
    return Bisected(point, search.good, search.suspects, search.judged, change)
