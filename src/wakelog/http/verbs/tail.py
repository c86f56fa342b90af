"""Events streamed live, as server-sent events, of one session or of all.

After a dropped connection, a stream continues where it was: browsers send the id of their last event as
`Last-Event-ID`, and so should every client. Nothing is missed and nothing is repeated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from wakelog.engine import end_of
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.http.namespaces import Namespace
from wakelog.http.notifications import PAGE, Channel, Frame, encode_events, feed_frames, make_frame
from wakelog.http.problems import problem
from wakelog.http.response import Stream
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import Position, Query, record_of
from wakelog.model.ids import SessionId

_encode = msgspec.json.Encoder().encode

Read = Callable[[str], Sequence[Frame]]
"""Reads the next frames after a place from the log: not necessarily all, and none only at the end."""


class TailQuery(Query, frozen=True):
    after: Position | None = None
    """Begin after this event; by default, only new events. `Last-Event-ID` takes precedence."""
    kind: tuple[str, ...] = ()
    """Only these kinds, by name or first word; may be repeated."""


class TailAllQuery(Query, frozen=True):
    after: str | None = None
    """Begin after this id; empty means from the first event. By default, only new events."""
    kind: tuple[str, ...] = ()


@route("GET", "/sessions/{session}/tail", media="text/event-stream")
async def tail(call: VerbRequest, query: TailQuery) -> Stream:
    """Streams the events of a session live, each once and in order. The id of an event is its seq."""
    head = await call.run(call.head)
    place = call.headers.get("last-event-id", "")
    if place and not (place.isdecimal() and len(place) <= 15):
        raise InvalidInputError(f"{place!r} is not the id of an event here", kind="bad-request")
    if not place:
        place = str(head.seq if query.after is None else query.after)
    session = head.session

    def read(after: str) -> Sequence[Frame]:
        return _session_frames(call.space, session, int(after))

    return await _stream(call, session, str(int(place)), query.kind, read)


@route("GET", "/tail", media="text/event-stream")
async def tail_all(call: VerbRequest, query: TailAllQuery) -> Stream:
    """Streams the events of all sessions live, in order within each session. An id is a position in the feed."""
    place = call.headers.get("last-event-id", query.after)
    if place:
        await call.run(_feed_frames, call.space, place)  # so that a wrong id is an error, and not the end of a stream

    def read(after: str) -> Sequence[Frame]:
        return _feed_frames(call.space, after)

    return await _stream(call, None, place, query.kind, read)


async def _stream(
    call: VerbRequest, session: SessionId | None, place: str | None, kinds: tuple[str, ...], read: Read
) -> Stream:
    call.server.tails.check(call.who)
    if place is None:
        # Start at the end of the store: this server's own position may lag behind it.
        place = await call.run(end_of, call.space.engine, call.hub.cursor)
    channel = await call.hub.join(session)
    return Stream(_watch(call, channel, place, kinds, read))


async def _watch(
    call: VerbRequest, channel: Channel, place: str, kinds: tuple[str, ...], read: Read
) -> AsyncGenerator[bytes, None]:
    server = call.server
    server.metrics.watchers.inc()
    checked = time.monotonic()
    hold = server.tails.hold(call.who)
    try:
        hold.add(1)
        yield b"retry: 1000\n\n"
        while not server.is_stopping:
            if time.monotonic() - checked > server.settings.keepalive_s:
                checked = time.monotonic()
                if not await server.is_valid(call.key):
                    return
            event = channel.event
            frames: Sequence[Frame] | None = channel.ring.after(place)
            if frames is None:
                frames = await call.run(read, place)
            if frames:
                place = frames[-1].id
                if wanted := b"".join(f.data for f in frames if _is_wanted(f.kind, kinds)):
                    yield wanted
                continue
            try:
                async with asyncio.timeout(server.settings.keepalive_s):
                    await event.wait()
            except TimeoutError:
                yield b": nothing new\n\n"
    except WakelogError as exc:
        yield b"event: end\ndata: %b\n\n" % _encode(problem(exc))
    finally:
        hold.release()
        server.metrics.watchers.dec()
        call.hub.leave(channel)


def _is_wanted(kind: str, kinds: tuple[str, ...]) -> bool:
    return not kinds or any(kind == each or kind.startswith(each + ".") for each in kinds)


def _session_frames(space: Namespace, session: SessionId, after: int) -> list[Frame]:
    """The next events of a session, from its log."""
    log = space.log(session)
    tools: dict[str, str] = {}
    entries = log.entries(after=after, upto=after + PAGE)
    return [make_frame(str(e.seq), e.kind, _encode(record_of(log, e, tools))) for e in entries]


def _feed_frames(space: Namespace, place: str) -> list[Frame]:
    """The next events of the feed: the rest of the commit that the place is in, or some commits after it."""
    before, within, passed = place.partition("~")
    try:
        skip = int(passed) if within else 0
        changes = space.engine.changes(before, PAGE if not skip else 1)
    except (ValueError, OverflowError):
        raise InvalidInputError(f"{place!r} is not the id of an event here", kind="bad-request") from None
    frames: list[Frame] = []
    for change in changes:
        events = encode_events(space, change)
        frames += feed_frames(events, before, change.cursor)[skip:]
        if not events:
            # The session was deleted. An empty frame moves the position past this change.
            frames.append(Frame(change.cursor, "", b""))
        skip, before = 0, change.cursor
    return frames
