"""Compare attempts, and adopt the result of a fork."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.compare.comparison import Comparison
from wakelog.compare.trajectory import Course
from wakelog.engines.remote.wire import Question
from wakelog.errors import InvalidInputError
from wakelog.files.file_diff import FileDiff
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import HeadAnswer, NotEmpty, Position, Query, are_absolute
from wakelog.timeline.selectors import parse_selector


class AttemptsQuery(Query, frozen=True):
    turn: Position | None = None
    """By default the newest turn that was tried more than once."""
    forks: bool = False
    """Include what forks did instead."""

    def is_fixed_by_head(self) -> bool:
        return not self.forks


class AttemptsAnswer(msgspec.Struct, frozen=True):
    attempts: tuple[Course, ...]


class CompareQuery(Query, frozen=True):
    side: Annotated[tuple[str, ...], msgspec.Meta(max_length=8)] = ()
    """A session, or a place in one (`fix-bug`, `fix-bug@6.1`, `try-it@3..@7`); repeat it, one for each side. A place
    without a session is in the session of the first side. A single fork is compared with its parent."""


class FileDiffQuery(Query, frozen=True):
    a: str = ""
    b: str = ""
    path: tuple[str, ...] = ()
    """Only these files; may be repeated."""
    other: str = ""
    """Another session that `b` is in."""

    def is_fixed_by_head(self) -> bool:
        return not self.other and are_absolute(self.a, self.b)


class FilesAnswer(msgspec.Struct, frozen=True):
    files: tuple[FileDiff, ...]


class Adopt(Question, frozen=True):
    """The fork to adopt, as it is now or was `at` a point. With `force`, also if this session has moved on."""

    fork: NotEmpty
    at: str = ""
    why: str = ""
    force: bool = False


@route("GET", "/sessions/{session}/attempts", by_head=True)
def attempts(call: VerbRequest, query: AttemptsQuery) -> AttemptsAnswer:
    """Lists all attempts of a turn with outcome, steps, time and cost."""
    return AttemptsAnswer(tuple(call.session().history.attempts(query.turn, forks=query.forks)))


@route("GET", "/compare")
def compare(call: VerbRequest, query: CompareQuery) -> Comparison:
    """Compares attempts, turns or sessions step by step: where they differ, why, and what followed. The others are
    compared with the first side."""
    if not query.side:
        raise InvalidInputError("name two or more sides", kind="nothing-to-compare", hint="?side=A&side=B")
    named = [parse_selector(side).session for side in query.side]
    if not named[0]:
        raise InvalidInputError(
            f"{query.side[0]} names no session", kind="nothing-to-compare", hint=f"write it as SESSION{query.side[0]}"
        )
    sessions = [call.space.session(name or named[0]) for name in named]
    places = [_place(side) for side in query.side]
    if len(places) > 1:
        return sessions[0].history.compare(*zip(sessions, places, strict=True))
    fork = sessions[0].head.fork
    if places[0] or fork is None:
        return sessions[0].history.compare(*filter(None, places))
    return call.space.session(fork.parent).history.compare(sessions[0])


def _place(side: str) -> str:
    selector = parse_selector(side)
    return selector.first + (f"..{selector.last}" if selector.last else "")


@route("GET", "/sessions/{session}/file-diff", by_head=True)
def file_diff(call: VerbRequest, query: FileDiffQuery) -> FilesAnswer:
    """Shows what changed in files between two points, from the contents in the log; by default, in the last turn."""
    session = call.session()
    other = call.space.session(query.other) if query.other else None
    return FilesAnswer(tuple(session.files.diff(query.a or None, query.b or None, paths=query.path, other=other)))


@route("POST", "/sessions/{session}/adopt", scope="write")
def adopt(call: VerbRequest, body: Adopt) -> HeadAnswer:
    """Adopts a fork's result into this session, in one commit. Undo reverts it."""
    fork = call.space.session(body.fork)
    return HeadAnswer.of(call.session().adopt(fork, body.at or None, why=body.why, force=body.force))
