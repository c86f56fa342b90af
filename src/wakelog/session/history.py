"""`session.history`: who wrote what, comparisons of attempts and sessions, the first bad turn, and previews.

Compare and replay are imported when a verb needs them, because few programs do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.diff.writers import Blame, blame
from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model.records import Commit
from wakelog.session.base import Base, Where
from wakelog.timeline.points import commit_at
from wakelog.timeline.selectors import parse_selector, resolve_range
from wakelog.timeline.session_names import name_of_session
from wakelog.timeline.slices import tool_of

if TYPE_CHECKING:
    from wakelog.compare.adoption_preview import AdoptionPreview
    from wakelog.compare.comparison import Comparison
    from wakelog.compare.trajectory import Course, Extent
    from wakelog.diff.rewind_preview import RewindPreview
    from wakelog.replay.recording import Recording
    from wakelog.session.bisection import Bisected, Bisection, Judge

Side = str | Base[Any] | tuple[Base[Any], str]
"""One side of a comparison: a place in this session ("@5.1", "@3..@7"), a whole session, or a place in another
session."""


class SessionHistory:
    """Examines what was recorded, and previews a rewind or an adoption."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def blame(self, pointer: str = "", at: Where = None) -> list[Blame]:
        """Shows who last wrote each key below a JSON Pointer: event, turn, tool and reason."""
        if pointer and not str(pointer).startswith("/"):
            raise InvalidInputError(
                f"{pointer!r} is not a key of the state", kind="bad-key", hint="a key starts with /, such as /data/plan"
            )
        return blame(self._session.log, pointer, self._session.seq(at))

    def commit(self, at: Where = None) -> Commit:
        """Returns the commit that holds an event: what was stored together with it."""
        return commit_at(self._session.log, self._session._existing(at))

    def tool_of(self, entry: Entry, known: dict[str, str] | None = None) -> str:
        """Returns the tool that an event is about; empty for most kinds. An outcome names only its action, so its
        request is looked up: pass the same `known` for all events of a list, to look it up once."""
        return tool_of(self._session.log, entry, {} if known is None else known)

    def name_of(self, session: str) -> str:
        """Returns the name of another session of the store, such as a sub-agent; its id if it has no name, and
        `ID (not in this store)` if it does not exist."""
        return name_of_session(self._session.log, session)

    def attempts(self, turn: int | None = None, *, forks: bool = False) -> list[Course]:
        """Lists all attempts of a turn with outcome, steps, time and cost; by default, of the newest turn with more
        than one attempt. With `forks`, forks of the turn are included."""
        from wakelog.compare.trajectory import attempts, newest_retried_turn, read_course

        number = newest_retried_turn(self._session.log) if turn is None else turn
        return [read_course(extent) for extent in attempts(self._session.log, number, self._session.name, forks=forks)]

    def compare(self, *sides: Side, other: Base[Any] | None = None) -> Comparison:
        """Compares attempts, turns, forks or sessions, step by step: the first difference, its cause, and what
        followed. Each side is compared with the first.

        Without sides, compares the attempts of the newest turn that was retried; with one place, the attempts of that
        turn; with one session, this session against it. With `other`, all places but the first are in that session; a
        single place is taken from both.
        """
        from wakelog.compare.comparison import compare

        return compare(*self._extents(sides, other))

    def bisect(self, bad: Where, good: Where, is_good: Judge) -> Bisected:
        """Finds the first bad turn between a good and a bad point, in a few tests: `is_good(point)` returns True,
        False, or None if it cannot tell. The state to test is `session.state(point.seq)`."""
        from wakelog.session.bisection import begin, finish

        search = begin(self._session.log, self._session.seq(bad), self._session.seq(good))
        while (point := search.next) is not None:
            verdict = is_good(point)
            search = search.mark("skip" if verdict is None else "good" if verdict else "bad")
        return finish(self._session, search)

    def start_bisect(self, bad: Where, good: Where) -> Bisection:
        """Starts the same search step by step: `search.next` is the point to test, `search.mark("bad")` returns the
        search after that verdict."""
        from wakelog.session.bisection import begin

        return begin(self._session.log, self._session.seq(bad), self._session.seq(good))

    def end_bisect(self, search: Bisection) -> Bisected:
        """Returns the result of such a search: the first bad turn and what it changed, or the candidates."""
        from wakelog.session.bisection import finish

        return finish(self._session, search)

    def recording(self, where: Where = None) -> Recording:
        """Returns what a replay would run again: the turns and calls of a turn, an attempt or a range, with inputs and
        outcomes; by default, of the whole session."""
        from wakelog.replay.recording import read_recording

        return read_recording(self._session.log, where)

    def preview_rewind(self, to: Where) -> RewindPreview:
        """Shows what `rewind` would do: what returns, what stays, and which effects cannot be undone. Raises the same
        errors as the rewind."""
        from wakelog.diff.rewind_preview import preview_rewind

        return preview_rewind(self._session.log, self._session.seq(to))

    def preview_adopt(self, fork: Base[Any], at: Where = None, *, force: bool = False) -> AdoptionPreview:
        """Shows what `adopt` would do: what is copied, what changes, and what leaves the view. Raises the same errors
        as the adoption."""
        from wakelog.compare.adoption_preview import preview_adoption

        return preview_adoption(self._session.log, fork.log, None if at is None else fork.seq(at), force=force)

    def _extents(self, sides: tuple[Side, ...], other: Base[Any] | None) -> list[Extent]:
        if other is not None:
            first = sides[0] if sides else ""
            rest = sides[1:] or (first if isinstance(first, str) else "",)
            return [_extent(self._session, first), *(_extent(other, side) for side in rest)]
        if len(sides) == 1 and not isinstance(sides[0], str):
            return [_extent(self._session, ""), _extent(self._session, sides[0])]
        if len(sides) > 1:
            return [_extent(self._session, side) for side in sides]
        from wakelog.compare.trajectory import attempts, newest_retried_turn

        number = _turn_at(self._session, str(sides[0])) if sides else newest_retried_turn(self._session.log)
        return attempts(self._session.log, number, self._session.name, forks=True) if number else []


def _turn_at(session: Base[Any], place: str) -> int:
    """Returns the turn of a place; 0 for a whole session. @6 may be a turn that only forks have."""
    _refuse_other(session, place)
    if place.startswith("@") and place[1:].isdigit():
        return int(place[1:])
    first = parse_selector(place).first
    return session.log.entry(resolve_range(session.log, first).last).header.turn if first else 0


def _extent(session: Base[Any], side: Side) -> Extent:
    from wakelog.compare.trajectory import select_extent

    if isinstance(side, tuple):
        return select_extent(side[0].log, side[1], side[0].name)
    if not isinstance(side, str):
        return select_extent(side.log, name=side.name)
    _refuse_other(session, side)
    return select_extent(session.log, side, session.name)


def _refuse_other(session: Base[Any], side: str) -> None:
    """Raises InvalidInputError for a place in another session."""
    named = parse_selector(side).session if side else ""
    if named and named not in (session.name, session.id):
        raise InvalidInputError(
            f"{side!r} names another session than {session}",
            kind="bad-selector",
            hint=f"pass it as a session: session.history.compare(store.resume({named!r}))",
        )
