"""The store as a whole: live sessions and what they need, holds, audits, and the store's health."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import Limit, Query
from wakelog.maintenance.audit import Audit, audit_session
from wakelog.maintenance.audit_report import AuditCase, AuditReport
from wakelog.maintenance.audit_report import audit_report as report_on
from wakelog.maintenance.check import StoreCheck, check_store
from wakelog.maintenance.holds import Holds, list_holds
from wakelog.maintenance.info import StoreInfo
from wakelog.maintenance.info import info as store_info_of
from wakelog.maintenance.live_sessions import LiveSession, find_live
from wakelog.session.status import Need


class LiveQuery(Query, frozen=True):
    needs: tuple[Need, ...] = ()
    """Only sessions that need one of these; may be repeated."""
    everything: bool = False
    """Include idle sessions of any age."""
    idle: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 200
    """At most this many idle sessions."""
    failed: bool = False
    """Only sessions whose last turn failed or was interrupted, of any age."""


class LiveAnswer(msgspec.Struct, frozen=True):
    """One session of the fleet."""

    session: str
    name: str
    agent: str
    status: str
    needs: tuple[str, ...]
    """What it needs, most urgent first; never empty."""
    at: int
    """When something last happened."""
    seq: int
    turn: dict[str, Any]
    holder: str
    goal: Any
    labels: dict[str, Any]
    pending: dict[str, Any]
    flags: dict[str, Any]
    budget: dict[str, Any]
    last_error: dict[str, Any] | None
    tokens: int
    usd_micros: int
    about: str

    @classmethod
    def of(cls, live: LiveSession) -> LiveAnswer:
        info, condition, document = live.info, live.condition, live.condition.document
        fields = {name: getattr(info, name) for name in ("name", "agent", "tokens", "usd_micros", "about")}
        fields |= {name: getattr(condition, name) for name in ("status", "needs", "at", "seq", "holder", "pending")}
        fields |= {name: document[name] for name in ("turn", "goal", "labels", "flags", "budget", "last_error")}
        return cls(session=info.id, **fields)


class Unreadable(msgspec.Struct, frozen=True):
    session: str
    name: str
    problem: str


class LiveList(msgspec.Struct, frozen=True):
    """The fleet, the most urgent first."""

    sessions: tuple[LiveAnswer, ...]
    resting: int
    """How many more sessions are idle."""
    unreadable: tuple[Unreadable, ...]
    now: int
    """The server's time, to compute ages from."""


class AuditQuery(Query, frozen=True):
    after: str = ""
    """The `next` of the page before."""
    limit: Limit = 200


class StoreChecks(msgspec.Struct, frozen=True):
    checks: tuple[StoreCheck, ...]


@route("GET", "/live")
def live(call: VerbRequest, query: LiveQuery) -> LiveList:
    """Lists live sessions, the most urgent first: who writes, what is pending, what was spent."""
    fleet = find_live(call.space.store, query.needs, everything=query.everything, idle=query.idle, failed=query.failed)
    unreadable = tuple(Unreadable(info.id, info.name, problem) for info, problem in fleet.unreadable)
    return LiveList(tuple(map(LiveAnswer.of, fleet.found)), fleet.resting, unreadable, call.now)


@route("GET", "/sessions/{session}/audit")
def audit(call: VerbRequest, query: AuditQuery) -> Audit:
    """Lists what was done to a session's record, oldest first: removals, masking, holds, rewinds, marks of trust,
    approvals; with an anchor and the hold in force."""
    return audit_session(call.space.store, call.session(), after=query.after, limit=query.limit)


@route("GET", "/sessions/{session}/audit-report")
def audit_report(call: VerbRequest) -> AuditReport:
    """Reports on a session for an auditor: what happened, who approved it, which effects depend on untrusted input,
    what was removed, whether the log is sound, and what is not proven. Stored anchors are checked too."""
    return report_on(call.space.store, AuditCase((call.session().id,)))


@route("GET", "/holds")
def holds(call: VerbRequest) -> Holds:
    """Lists the sessions of the namespace that are under a hold."""
    return list_holds(call.space.store)


@route("GET", "/store")
def store_info(call: VerbRequest) -> StoreInfo:
    """Counts what is in the namespace: sessions, events, bytes. In a big one, bytes by kind are an estimate. Only keys
    that see all namespaces learn where it is stored."""
    info = store_info_of(call.space.store)
    return info if call.key.sees_all else msgspec.structs.replace(info, path=None, blobs=None)


@route("GET", "/store/check")
def store_check(call: VerbRequest) -> StoreChecks:
    """Checks quickly whether the namespace's store is usable. A fault is part of the answer, not an error."""
    return StoreChecks(tuple(check_store(call.space.store)))
