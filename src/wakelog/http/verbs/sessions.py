"""Sessions: open, read, append, export, import, erase and delete."""

from __future__ import annotations

import tempfile
import traceback
from typing import IO, Annotated, Any, cast

import msgspec

from wakelog.engines.remote.wire import Acknowledged, Imported, Question
from wakelog.http.request import NDJSON, SPOOL_MAX
from wakelog.http.routes import Raw, VerbRequest, route
from wakelog.http.shapes import ChosenSessions, EventIn, HeadAnswer, Limit, Limits, NotEmpty, Position, Query
from wakelog.index.results import Page, SessionInfo
from wakelog.log.removal import prune as prune_events
from wakelog.model.ids import SessionId
from wakelog.model.values import Value
from wakelog.store.erasure import scrub_index


class SessionsQuery(ChosenSessions, frozen=True):
    """Which sessions to list; all given filters must match."""

    after: str = ""
    """The `next` of the page before."""
    limit: Limit = 100


class NewSession(Question, frozen=True):
    """A session to open by name. Everything but the name is used only when the session is created."""

    name: NotEmpty
    goal: str | None = None
    agent: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    limits: Limits | None = None
    data: dict[str, Value] = msgspec.field(default_factory=dict)
    spawner: str = ""


class Append(Question, frozen=True):
    """Events to store as one commit. With `expect`, the session must be at that event, else it is a conflict.
    `commit_id` makes the append safe to repeat: the same id with the same events gives the first answer and stores
    nothing. `guard` is the epoch of the writer's lease."""

    events: Annotated[tuple[EventIn, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    expect: Position | None = None
    commit_id: str = ""
    guard: Position | None = None


class DeleteQuery(Query, frozen=True):
    why: str = ""
    keep_totals: bool = False
    """Keep its totals in the tombstone: numbers only."""


class BundleQuery(Query, frozen=True):
    encrypted: bool = False
    """Export from an encrypted store without decrypting. This needs no key."""


class Erase(Question, frozen=True):
    """The events to erase, here and in every fork that shares them."""

    events: Annotated[tuple[Annotated[int, msgspec.Meta(ge=1)], ...], msgspec.Meta(min_length=1, max_length=10_000)]
    why: str = ""
    by: str = ""


class EraseAnswer(HeadAnswer, frozen=True):
    """The session's head after an erasure, and what was erased."""

    events: dict[SessionId, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """The erased events by session, including forks, adopting sessions and events that repeated the content."""
    names: tuple[str, ...] = ()
    """Keys and paths of the erased content. They stay."""
    pending: str = ""
    """Why old bytes are still in files, and how to remove them; empty if there are none."""


class Prune(Question, frozen=True):
    """Bodies of events up to this one are removed; the state there is kept."""

    upto: Annotated[int, msgspec.Meta(ge=1)]
    why: str = ""


class SessionAnswer(msgspec.Struct, frozen=True):
    """A session as it is now."""

    head: HeadAnswer
    holder: str
    """The holder of a lease that has not expired; empty if there is none."""
    goal: Any
    labels: dict[str, Any]
    turn: dict[str, Any]
    view: dict[str, Any]
    pending_actions: dict[str, Any]
    flags: dict[str, Any]
    budget: dict[str, Any]
    last_error: dict[str, Any] | None


@route("GET", "/sessions")
def list_sessions(call: VerbRequest, query: SessionsQuery) -> Page[SessionInfo]:
    """Lists the sessions of the namespace, the last active first."""
    return call.space.store.index.sessions(**call.kwargs(query, name="name_glob"))


@route("POST", "/sessions", scope="write")
def open_session(call: VerbRequest, body: NewSession) -> HeadAnswer:
    """Gets the session of that name, or creates it. Safe to repeat."""
    session = call.space.store.session(
        body.name,
        goal=body.goal,
        agent=body.agent,
        labels=body.labels,
        limits=body.limits.as_dict() if body.limits is not None else None,
        data=body.data or None,
        spawner=body.spawner,
        folder="",
    )
    return HeadAnswer.of(session.head)


@route("GET", "/sessions/{session}")
def get_session(call: VerbRequest) -> SessionAnswer:
    """Shows a session: head, lease holder, goal, labels, turn, pending calls, flags, budget."""
    session = call.session()
    state = session.log.state()
    return SessionAnswer(
        head=HeadAnswer.of(session.head),
        holder=session.log.living_holder(),
        **{name: state[name] for name in SessionAnswer.__struct_fields__ if name in state},
    )


@route("GET", "/sessions/{session}/head", by_head=True)
def head(call: VerbRequest) -> HeadAnswer:
    """Shows a session's head. Its ETag is the same for every answer that depends only on the head."""
    return HeadAnswer.of(call.head())


@route("POST", "/sessions/{session}/events", scope="write")
def append(call: VerbRequest, body: Append) -> HeadAnswer:
    """Appends events as one durable commit. Secrets are removed first, and an event that records this is appended."""
    drafts = [each.draft() for each in body.events]
    found = call.session().append(*drafts, expect=body.expect, commit_id=body.commit_id, guard=body.guard)
    call.server.metrics.commits.inc()
    return HeadAnswer.of(found)


@route("GET", "/sessions/{session}/bundle", media=NDJSON, by_head=True)
def bundle(call: VerbRequest, query: BundleQuery) -> Raw:
    """Exports a session and its ancestry in a portable form that can be verified alone (docs/reference/format.md)."""
    out = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL_MAX))  # noqa: SIM115 - closed after it is sent
    try:
        call.session().export_bundle(out, encrypted=query.encrypted)
        out.seek(0)
    except BaseException:
        out.close()
        raise
    return Raw(out, NDJSON)


@route("POST", "/bundles", scope="admin", status=201)
def take_bundle(call: VerbRequest, body: IO[bytes]) -> Imported:
    """Imports a bundle, plain or gzipped, after verifying it; all of it or nothing. Sessions that already exist stay as
    they are. The imported history is neither redacted nor checked against the rules here, so this needs `admin`."""
    with body, call.server.imports:
        try:
            head = call.space.store.import_bundle(body, size_max=call.server.settings.bundle_max).head
        except Exception as exc:
            # The error keeps its frames alive, and with them everything that was unpacked.
            traceback.clear_frames(exc.__traceback__)
            raise
    call.space.forget(head.session)
    return Imported(head.session, head.name, head)


@route("POST", "/sessions/{session}/erase", scope="admin")
def erase(call: VerbRequest, body: Erase) -> EraseAnswer:
    """Erases the content of events permanently: here, in forks that share them, in sessions that adopted them, in the
    index and in the files."""
    session = call.session()
    erasure = call.space.store.erase(session, body.events, why=body.why, by=body.by or call.key.name)
    head = HeadAnswer.of(session.head)
    return EraseAnswer(
        **msgspec.structs.asdict(head), events=erasure.events, names=erasure.names, pending=erasure.pending
    )


@route("POST", "/sessions/{session}/prune", scope="admin")
def prune(call: VerbRequest, body: Prune) -> HeadAnswer:
    """Prunes a session: removes the bodies of its events up to a point. Headers and the state at that point stay."""
    head = prune_events(call.session().log, body.upto, why=body.why)
    scrub_index(call.space.store)
    return HeadAnswer.of(head)


@route("DELETE", "/sessions/{session}", scope="admin")
def delete(call: VerbRequest, query: DeleteQuery) -> Acknowledged:
    """Deletes a session permanently; a tombstone stays."""
    session = call.session()
    call.space.store.delete(session, why=query.why, keep_totals=query.keep_totals)
    call.space.forget(session.id)
    return Acknowledged()
