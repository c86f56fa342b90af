"""Leases: one writer at a time, for those who want it. The epoch shuts out whoever had it before."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wakelog.engines.remote.wire import Done, Question
from wakelog.http.routes import Call, route
from wakelog.http.shapes import HeadAnswer, NotEmpty, Position

Ttl = Annotated[float, msgspec.Meta(gt=0, le=86400)]


class TakeLease(Question, frozen=True):
    """Who claims the session, and for how long silence is believed. With `force`, also from one who is alive."""

    holder: NotEmpty
    ttl_s: Ttl = 30.0
    force: bool = False


class Lease(msgspec.Struct, frozen=True):
    """The epoch to pass as `guard`."""

    epoch: int


class BeatLease(Question, frozen=True):
    """A sign of life of the lease's holder."""

    epoch: Position
    holder: NotEmpty
    ttl_s: Ttl = 30.0


class ReleaseLease(Question, frozen=True):
    epoch: Position


@route("POST", "/sessions/{session}/lease", scope="write")
def take_lease(call: Call, body: TakeLease) -> Lease:
    """Claims a session for one writer. Appends guarded by an older epoch are refused from now on."""
    return Lease(call.session().take_lease(body.holder, ttl_s=body.ttl_s, force=body.force))


@route("POST", "/sessions/{session}/lease/beat", scope="write")
def beat_lease(call: Call, body: BeatLease) -> Done:
    """Says that the holder is alive. Nothing is appended."""
    call.session().log.beat(body.epoch, body.holder, ttl_s=body.ttl_s)
    return Done()


@route("POST", "/sessions/{session}/lease/release", scope="write")
def release_lease(call: Call, body: ReleaseLease) -> HeadAnswer:
    """Gives a lease back."""
    return HeadAnswer.of(call.session().release_lease(body.epoch))
