"""Rewind, undo and fork; a session's status; and leases."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.engines.remote.wire import Acknowledged, Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import HeadAnswer, NotEmpty, Position
from wakelog.maintenance.cancel import CancelledSession, cancel_session

Ttl = Annotated[float, msgspec.Meta(gt=0, le=86400)]


class Rewind(Question, frozen=True):
    """Where to go back to: a selector."""

    to: NotEmpty
    why: str = ""


class UndoAnswer(msgspec.Struct, frozen=True):
    """The operation that was undone, and the session's head."""

    operation: int
    head: HeadAnswer


class Fork(Question, frozen=True):
    """Where to fork (a selector; by default now), and the new session's name."""

    at: str = ""
    name: str = ""
    why: str = ""


class Reason(Question, frozen=True):
    why: str = ""


class Resume(Question, frozen=True):
    host: str = ""
    why: str = ""


class Close(Question, frozen=True):
    outcome: str = "completed"
    why: str = ""


class Cancel(Question, frozen=True):
    why: NotEmpty
    subagents: bool = True
    """Also cancel its live sub-agents."""


class CancelAnswer(msgspec.Struct, frozen=True):
    cancelled: tuple[CancelledSession, ...]


class TakeLease(Question, frozen=True):
    """Who claims the session, and after how many seconds without a heartbeat the lease expires. With `force`, also from
    a living holder."""

    holder: NotEmpty
    ttl_s: Ttl = 30.0
    force: bool = False


class LeaseAnswer(msgspec.Struct, frozen=True):
    """The epoch to pass as `guard`."""

    epoch: int


class BeatLease(Question, frozen=True):
    """A heartbeat of the lease's holder."""

    epoch: Position
    holder: NotEmpty
    ttl_s: Ttl = 30.0


class ReleaseLease(Question, frozen=True):
    epoch: Position


@route("POST", "/sessions/{session}/rewind", scope="write")
def rewind(call: VerbRequest, body: Rewind) -> HeadAnswer:
    """Goes back to an earlier point, by an event; nothing is removed, and undo reverts it."""
    return HeadAnswer.of(call.session().rewind(**call.kwargs(body)))


@route("POST", "/sessions/{session}/undo", scope="write")
def undo(call: VerbRequest) -> UndoAnswer:
    """Reverts the newest rewind that was not undone yet."""
    # Without files: they are on the agent's machine, not on the server.
    undone = call.session().undo(files=False)
    return UndoAnswer(undone.operation, HeadAnswer.of(undone.head))


@route("POST", "/sessions/{session}/redo", scope="write")
def redo(call: VerbRequest) -> UndoAnswer:
    """Reverts the newest undo."""
    undone = call.session().redo(files=False)
    return UndoAnswer(undone.operation, HeadAnswer.of(undone.head))


@route("POST", "/sessions/{session}/fork", scope="write", status=201)
def fork(call: VerbRequest, body: Fork) -> HeadAnswer:
    """Creates a new session that shares the history up to a point. The cost does not depend on its length."""
    return HeadAnswer.of(call.session().fork(**call.kwargs(body)).head)


@route("POST", "/sessions/{session}/pause", scope="write")
def pause(call: VerbRequest, body: Reason) -> HeadAnswer:
    """Pauses a session: no new call runs until it is resumed. Outcomes of running calls are still accepted."""
    return HeadAnswer.of(call.session().life.pause(**call.kwargs(body)))


@route("POST", "/sessions/{session}/resume", scope="write")
def resume(call: VerbRequest, body: Resume) -> HeadAnswer:
    """Continues a paused session."""
    return HeadAnswer.of(call.session().life.unpause(**call.kwargs(body)))


@route("POST", "/sessions/{session}/close", scope="write")
def close(call: VerbRequest, body: Close) -> HeadAnswer:
    """Ends a session; open calls are settled first."""
    return HeadAnswer.of(call.session().life.end(**call.kwargs(body)))


@route("POST", "/sessions/{session}/cancel", scope="write")
def cancel(call: VerbRequest, body: Cancel) -> CancelAnswer:
    """Stops a session that must not continue, and its live sub-agents. Running calls become uncertain."""
    return CancelAnswer(cancel_session(call.space.store, call.session(), why=body.why, subagents=body.subagents))


@route("POST", "/sessions/{session}/reopen", scope="write")
def reopen(call: VerbRequest, body: Reason) -> HeadAnswer:
    """Reopens a closed or archived session."""
    return HeadAnswer.of(call.session().life.reopen(**call.kwargs(body)))


@route("POST", "/sessions/{session}/archive", scope="write")
def archive(call: VerbRequest, body: Reason) -> HeadAnswer:
    """Archives a closed session."""
    return HeadAnswer.of(call.session().life.archive(**call.kwargs(body)))


@route("POST", "/sessions/{session}/lease", scope="write")
def take_lease(call: VerbRequest, body: TakeLease) -> LeaseAnswer:
    """Claims a session for one writer. Appends guarded by an older epoch are refused from now on."""
    return LeaseAnswer(call.session().life.take_lease(**call.kwargs(body)))


@route("POST", "/sessions/{session}/lease/beat", scope="write")
def beat_lease(call: VerbRequest, body: BeatLease) -> Acknowledged:
    """Reports that the holder is alive. Nothing is appended."""
    call.session().log.beat(body.epoch, body.holder, ttl_s=body.ttl_s)
    return Acknowledged()


@route("POST", "/sessions/{session}/lease/release", scope="write")
def release_lease(call: VerbRequest, body: ReleaseLease) -> HeadAnswer:
    """Releases a lease."""
    return HeadAnswer.of(call.session().life.release_lease(**call.kwargs(body)))
