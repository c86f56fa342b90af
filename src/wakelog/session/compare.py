"""Verbs about tries: a turn tried again, its attempts side by side, what made them differ, a fork's result taken
back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from wakelog.errors import InvalidInputError
from wakelog.model.events import Trust
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.session.base import Base, S, Where

# What compares is imported when it is called for: most programs that hold a session never do.
if TYPE_CHECKING:
    from wakelog.compare.comparison import Comparison
    from wakelog.compare.trajectory import Course, Extent
    from wakelog.session.attempt import Attempt, Errors
    from wakelog.session.session import Session

Side = str | Base[Any]
"""One side of a comparison: a place in this session ("@5.1", "@3..@7"), or a whole session (a fork, or any other)."""


class Comparing(Base[S]):
    """Attempts, and what they came to."""

    def attempts(
        self,
        times: int = 3,
        *,
        on: Errors = Exception,
        user: Value = None,
        source: str = "",
        trust: Trust = "trusted",
        role: str = "user",
    ) -> Iterator[Attempt[S]]:
        """Tries a turn up to `times` times: `for attempt in session.attempts(3, on=TimeoutError): with attempt as
        turn: …`. Each try is an attempt of its own, @5.1, @5.2; the last one's error is raised.

        A try calls everything anew: give calls with effects a key, and they are answered from the record. There is no
        pause between tries: sleep in the loop if the other side needs one.
        """
        from wakelog.session.attempt import attempts

        session = cast("Session[S]", self)
        return attempts(lambda again: session.turn(user, source=source, trust=trust, role=role, retry=again), times, on)

    def attempts_of(self, turn: int | None = None, *, forks: bool = False) -> list[Course]:
        """All attempts of a turn, side by side, with outcome, steps, time and cost; by default of the newest turn that
        was tried more than once. With `forks`, also what forks did in its place."""
        from wakelog.compare.trajectory import attempts, read_course, tried_again

        number = tried_again(self.log) if turn is None else turn
        return [read_course(extent) for extent in attempts(self.log, number, self.name, forks=forks)]

    def compare(self, *sides: Side, other: Base[Any] | None = None) -> Comparison:
        """Lays attempts, turns, forks or sessions side by side, step by step; pins the first divergence, says what lay
        behind it and what followed. The first side is what the others are held against.

        Without sides: the attempts of the newest turn that was tried again. One session: this one against it. With
        `other`, all places but the first are in that session; a place given once is meant in both.
        """
        from wakelog.compare.comparison import compare

        return compare(*self._extents(sides, other))

    def _extents(self, sides: tuple[Side, ...], other: Base[Any] | None) -> list[Extent]:
        if other is not None:
            first = sides[0] if sides else ""
            rest = sides[1:] or (first if isinstance(first, str) else "",)
            return [_in(self, first), *(_in(other, side) for side in rest)]
        if not sides:
            from wakelog.compare.trajectory import attempts, tried_again

            return attempts(self.log, tried_again(self.log), self.name, forks=True)
        if len(sides) == 1 and not isinstance(sides[0], str):
            return [_in(self, ""), _in(self, sides[0])]
        return [_in(self, side) for side in sides]

    def adopt(self, fork: Base[Any], at: Where = None, *, why: str = "", force: bool = False) -> Head:
        """Takes a fork's result, as it is or was `at` a point of it, back into this session, in one commit.

        The view goes back to the fork point; goal, facts, decisions, working set, artefacts and data become the
        fork's, and its messages follow. The fork stays as it is and may be deleted. ConflictError when this session has
        gone on since, unless forced: nothing is lost, and `undo` takes it back.
        """
        return self.log.adopt(fork.log, None if at is None else fork.seq(at), why=why, force=force)


def _in(session: Base[Any], side: Side) -> Extent:
    from wakelog.compare.trajectory import select_extent
    from wakelog.timeline.selectors import parse_selector

    if not isinstance(side, str):
        return select_extent(side.log, name=side.name)
    named = parse_selector(side).session if side else ""
    if named and named not in (session.name, session.id):
        raise InvalidInputError(
            f"{side!r} names another session than {session.name or session.id}",
            kind="bad-selector",
            hint=f"pass it as a session: session.compare(store.resume({named!r}))",
        )
    return select_extent(session.log, side, session.name)
