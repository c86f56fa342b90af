"""The engine protocol over HTTP, used by `wakelog.open("http://…")`.

Commits come sealed. The server seals each again, and stores it only if the bytes are the same (log/foreign_commits.py):
so a client can store nothing that the rules forbid, and no secret that this server's redaction knows.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

from wakelog.engine import Marks, find_live_sessions, require
from wakelog.engines.remote import wire
from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.http.problems import too_slow
from wakelog.http.routes import VerbRequest, route
from wakelog.log.deleted_origins import MARK
from wakelog.log.foreign_removals import take_deletion, take_surgery
from wakelog.maintenance.scrub import LAST, POSITION
from wakelog.model.ids import SessionId, parse_session_id
from wakelog.model.names import check_name
from wakelog.model.records import Commit, Head
from wakelog.store.erasure import scrub_index, scrub_removed

PAGE_COMMITS = 256
PAGE_BYTES = 4 << 20
WAIT_MAX_S = 25.0


@route("POST", "/engine/submit", scope="write")
async def submit(call: VerbRequest, body: wire.Submit) -> wire.Answers:
    """Stores groups of sealed commits, each group completely or not at all, and waits until they are durable. Safe to
    repeat."""
    try:
        async with asyncio.timeout(call.server.settings.answer_s):
            answers = await call.server.commit_queue(call.space).submit(body.groups)
    except TimeoutError:
        raise too_slow(call.server.settings.answer_s) from None
    call.server.metrics.commits.inc(sum(answer.head is not None for answer in answers.answers))
    return answers


@route("POST", "/engine/read")
def read(call: VerbRequest, body: wire.Read) -> wire.Commits:
    """Returns stored commits in order, page by page."""
    commits: list[Commit] = []
    size = 0
    for commit in call.space.engine.read(body.session, after=body.after, upto=body.upto, payloads=body.payloads):
        if len(commits) == PAGE_COMMITS or size > PAGE_BYTES:
            return wire.Commits(tuple(commits), True)
        commits.append(commit)
        size += sum(len(r.header) + len(r.body) for r in commit.records) + sum(len(p) for _, p in commit.payloads)
    return wire.Commits(tuple(commits), False)


@route("POST", "/engine/head")
def engine_head(call: VerbRequest, body: wire.OfSession) -> Head:
    """Returns a session's head, also of a deleted one."""
    return call.space.engine.head(body.session)


@route("POST", "/engine/known")
def known(call: VerbRequest, body: wire.FindCommit) -> wire.FoundCommit:
    """Returns the first answer to a commit id that its writer chose."""
    return wire.FoundCommit(call.space.engine.known(body.session, body.commit_id))


@route("POST", "/engine/sessions")
def engine_sessions(call: VerbRequest, body: wire.ListSessions) -> wire.Heads:
    """Lists heads in order of id."""
    return wire.Heads(tuple(call.space.engine.sessions(after=body.after, limit=body.limit)))


@route("POST", "/engine/children")
def children(call: VerbRequest, body: wire.Children) -> wire.Heads:
    """Lists a session's direct forks."""
    return wire.Heads(tuple(call.space.engine.children(body.session, deleted=body.deleted)))


@route("POST", "/engine/changes")
def changes(call: VerbRequest, body: wire.ListChanges) -> wire.Changes:
    """Lists sessions with commits since a cursor, in the order they were stored."""
    try:
        return wire.Changes(tuple(call.space.engine.changes(body.cursor, body.limit)))
    except (ValueError, OverflowError):
        raise InvalidInputError(f"{body.cursor!r} is not a cursor of this store", kind="bad-cursor") from None


@route("POST", "/engine/payload")
def engine_payload(call: VerbRequest, body: wire.FindPayload) -> wire.Content:
    """Returns the payload that came with an event's commit."""
    return wire.Content(call.space.engine.payload(body.session, body.seq, body.digest))


@route("POST", "/engine/snapshot")
def snapshot(call: VerbRequest, body: wire.FindSnapshot) -> wire.FoundSnapshot:
    """Returns the newest saved state at or before an event."""
    return wire.FoundSnapshot(call.space.engine.snapshot(body.session, upto=body.upto))


@route("POST", "/engine/drop-snapshots", scope="write")
def drop_snapshots(call: VerbRequest, body: wire.OfSession) -> wire.Acknowledged:
    """Deletes a session's saved states. They are a cache."""
    call.space.engine.head(body.session)
    call.space.engine.drop_snapshots(body.session)
    return wire.Acknowledged()


@route("POST", "/engine/claim", scope="write")
def claim(call: VerbRequest, body: wire.Claim) -> wire.Named:
    """Binds a name to an id if it is free, and returns the id it is bound to."""
    check_name(body.name)
    return wire.Named(call.space.engine.claim(body.name, parse_session_id(body.session)))


@route("POST", "/engine/find")
def find(call: VerbRequest, body: wire.FindName) -> wire.Named:
    """Returns the id bound to a name."""
    return wire.Named(call.space.engine.find(body.name))


@route("POST", "/engine/beat", scope="write")
def beat(call: VerbRequest, body: wire.Beat) -> wire.Acknowledged:
    """Stores a lease holder's heartbeat. Another epoch or another holder is a conflict."""
    if not all(0 <= number <= 1 << 62 for number in (body.beat.epoch, body.beat.until)):
        raise InvalidInputError("an epoch or a time is out of range", kind="bad-request")
    call.space.log(body.session).keep_beat(body.beat)
    return wire.Acknowledged()


@route("POST", "/engine/last-beat")
def last_beat(call: VerbRequest, body: wire.OfSession) -> wire.LastBeat:
    """Returns the last heartbeat of a session's lease holder."""
    return wire.LastBeat(call.space.engine.last_beat(body.session))


@route("POST", "/engine/heard")
def heard(call: VerbRequest, body: wire.HeardSince) -> wire.SessionIds:
    """Lists the sessions whose lease holder's heartbeat is valid until a time or longer."""
    engine = call.space.engine
    session_ids = (engine.abilities.live_sessions or partial(find_live_sessions, engine))(body.since)
    return wire.SessionIds(tuple(session_ids))


@route("POST", "/engine/operate", scope="admin")
def operate(call: VerbRequest, body: wire.Operate) -> Head:
    """Erases or prunes, as planned by the client. Headers stay, new content is refused, and a hold forbids it."""
    head = take_surgery(call.space.checker, body.surgery)
    if body.surgery.stale_from:  # an erasure: the content must leave the files too
        scrub_removed(call.space.store)
    else:
        scrub_index(call.space.store)
    return head


@route("POST", "/engine/delete", scope="admin")
def engine_delete(call: VerbRequest, body: wire.Delete) -> Head:
    """Deletes a session by its last commit."""
    head = take_deletion(call.space.checker, body.commit)
    call.space.forget(body.commit.session)
    scrub_index(call.space.store)
    return head


@route("POST", "/engine/mark")
def mark(call: VerbRequest, body: wire.FindMark) -> wire.MarkValue:
    """Returns the progress of a scrub (`scrub`), what the last complete one found (`scrubbed`), or whether the session
    of a transcript was deleted (`deleted-…`)."""
    return wire.MarkValue(_marks_for(call, body.name).mark(body.name))


@route("POST", "/engine/set-mark", scope="admin")
def set_mark(call: VerbRequest, body: wire.SetMark) -> wire.Acknowledged:
    """Stores the progress of a scrub, which the next one continues on any machine, or that a transcript's session was
    deleted."""
    _marks_for(call, body.name).set_mark(body.name, body.value)
    return wire.Acknowledged()


def _marks_for(call: VerbRequest, name: str) -> Marks:
    if name not in (POSITION, LAST) and not MARK.fullmatch(name):
        raise InvalidInputError(f"{name!r} is not a mark that can be read", kind="bad-request")
    return require(call.space.engine.abilities.marks, UnsupportedError("this store keeps no marks", kind="no-marks"))


@route("POST", "/engine/rewrite", scope="admin")
def rewrite(call: VerbRequest, body: wire.Rewrite) -> wire.Rewritten:
    """Finishes an erasure: rewrites tables that still hold old bytes."""
    rewrite_tables = call.space.engine.abilities.rewrite
    return wire.Rewritten(rewrite_tables is not None and rewrite_tables(most=body.most))


@route("POST", "/engine/wait", waits=True)
async def wait(call: VerbRequest, body: wire.WaitRequest) -> wire.NewsAnswer:
    """Waits until something new is stored, for half a minute at most."""
    deadline = time.monotonic() + min(max(body.timeout_s, 0.0), WAIT_MAX_S)
    if body.session is None:
        return await _wait_for_any(call, body.cursor, deadline)
    return await _wait_for_session(call, body.session, body.after, deadline)


async def _wait_for_session(call: VerbRequest, session: SessionId, after: int, deadline: float) -> wire.NewsAnswer:
    engine, server = call.space.engine, call.server
    if (await call.run(engine.head, session)).seq > after:
        return wire.NewsAnswer(True)
    if time.monotonic() >= deadline:
        return wire.NewsAnswer(False)
    channel = await call.hub.join(session)
    try:
        has_news = (await call.run(engine.head, session)).seq > after
        while not has_news and not server.is_stopping:
            event = channel.event
            if channel.seen > after:
                has_news = True
            elif not await _wait_until(event, deadline):
                break
        return wire.NewsAnswer(has_news)
    finally:
        call.hub.leave(channel)


async def _wait_for_any(call: VerbRequest, cursor: str, deadline: float) -> wire.NewsAnswer:
    hub = call.hub
    channel = await hub.join(frames=False)
    try:
        since = cursor or hub.cursor
        while hub.cursor == since and not call.server.is_stopping:
            event = channel.event
            if hub.cursor == since and not await _wait_until(event, deadline):
                break
        return wire.NewsAnswer(hub.cursor != since, hub.cursor)
    finally:
        hub.leave(channel)


async def _wait_until(event: asyncio.Event, deadline: float) -> bool:
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            await event.wait()
        return True
    except TimeoutError:
        return False
