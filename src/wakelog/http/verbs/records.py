"""Turns, checkpoints, notes and changes of data: records that need more than one event."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import HeadAnswer, NotEmpty, Position
from wakelog.model.events import Trust
from wakelog.model.values import Value
from wakelog.session import turn


class Recorded(msgspec.Struct, frozen=True):
    """The event that was appended."""

    seq: int


class StartTurn(Question, frozen=True):
    """A turn and its input, which becomes its first message."""

    user: Value = None
    source: str = ""
    trust: Trust = "trusted"
    role: str = "user"


class Started(msgspec.Struct, frozen=True):
    """The number of the turn."""

    turn: int


class EndTurn(Question, frozen=True):
    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    why: str = ""


class Checkpoint(Question, frozen=True):
    """A name for a point. With `remove`, the name is removed."""

    name: NotEmpty
    at: str = ""
    remove: bool = False


class Note(Question, frozen=True):
    """A remark on an event, or on the session."""

    text: NotEmpty
    on: str = ""


class Accept(Question, frozen=True):
    """A derived item, by its id from `insight`. If an event has several, `kind` says which."""

    item: NotEmpty
    kind: str = ""


class Patch(Question, frozen=True):
    """A change of `data`: RFC 6902, with paths below /data. `expect` is the event that it is based on."""

    patch: Annotated[list[dict[str, Value]], msgspec.Meta(min_length=1)]
    why: str = ""
    expect: Position | None = None


@route("POST", "/sessions/{session}/start-turn", scope="write")
def start_turn(call: VerbRequest, body: StartTurn) -> Started:
    """Starts a turn. A turn that was left open is first recorded as interrupted, and its calls are settled."""
    session = call.session()
    return Started(turn.start_turn(session, body.user, source=body.source, trust=body.trust, role=body.role))


@route("POST", "/sessions/{session}/end-turn", scope="write")
def end_turn(call: VerbRequest, body: EndTurn) -> HeadAnswer:
    """Ends the open turn."""
    return HeadAnswer.of(turn.end_turn(call.session(), body.outcome, why=body.why))


@route("POST", "/sessions/{session}/checkpoint", scope="write")
def checkpoint(call: VerbRequest, body: Checkpoint) -> Recorded:
    """Gives a point a name, or removes the name."""
    return Recorded(call.session().checkpoint(**call.kwargs(body)))


@route("POST", "/sessions/{session}/note", scope="write")
def note(call: VerbRequest, body: Note) -> Recorded:
    """Adds a remark."""
    return Recorded(call.session().note(**call.kwargs(body)))


@route("POST", "/sessions/{session}/accept", scope="write")
def accept(call: VerbRequest, body: Accept) -> Recorded:
    """Records a derived item as a real decision, dead end or goal, with its evidence."""
    return Recorded(call.session().accept(**call.kwargs(body)))


@route("POST", "/sessions/{session}/patch", scope="write")
def patch(call: VerbRequest, body: Patch) -> Recorded:
    """Changes the session's own data. It is a conflict if another writer changed the session meanwhile."""
    return Recorded(call.session().patch(**call.kwargs(body)))
