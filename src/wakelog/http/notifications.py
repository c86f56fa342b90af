"""New events of one namespace, for everybody who waits for them.

One thread follows the engine's feed while there are waiters. It reads and encodes new events once, for any number of
watchers, and passes them to the event loop. The loop keeps the newest frames in ring buffers: one for each watched
session, and one for all sessions together.

A watcher has no queue. It keeps the id of the last frame it sent, and takes what the ring has after it. A slow watcher
falls behind the ring and reads from the log until it has caught up. So no watcher misses anything, and a slow one costs
no memory.

The id of a frame in one session is its seq. In the feed it is the feed's cursor. For an event that is not the last of
its commit, it is the cursor before it, a tilde, and how many of the commit's events were sent. So a stream can continue
after any id, without a gap or a repetition.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from wakelog.engine import FeedChange, end_of
from wakelog.errors import NotFoundError, WakelogError
from wakelog.http.namespaces import Namespace
from wakelog.http.shapes import record_of
from wakelog.log.reader import open_commit
from wakelog.model.events import REMOVAL_KINDS
from wakelog.model.ids import Seq, SessionId

RING_FRAMES = 1024
RING_BYTES = 8 << 20
PAGE = 256
WAIT_S = 0.25
"""The feed is read this often even without a notification, in case one was missed between two waits."""
LINGER_S = 10.0
"""The thread stays this long after the last watcher has left."""

_REMOVALS = REMOVAL_KINDS | {"session.deleted"}
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("wakelog.http")


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event as it is sent."""

    id: str
    kind: str
    data: bytes


class EncodedEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a commit, encoded."""

    seq: Seq
    kind: str
    data: bytes


class News(msgspec.Struct, frozen=True):
    """A change, the cursor before it, and its events; None if there was no watcher when it was read."""

    change: FeedChange
    before: str
    events: tuple[EncodedEvent, ...] | None


def make_frame(id: str, kind: str, data: bytes) -> Frame:
    # JSON from msgspec holds no line breaks, so one data line does.
    return Frame(id, kind, b"id: %b\ndata: %b\n\n" % (id.encode(), data))


class Ring:
    """The newest frames, in order, found by the id of the one before."""

    def __init__(self) -> None:
        self.end: str | None = None
        self._frames: deque[Frame] = deque()
        self._numbers: dict[str, int] = {}
        self._first = 0
        self._bytes = 0

    def after(self, place: str) -> list[Frame] | None:
        """The frames after a place; None if the ring does not go back that far."""
        if place == self.end:
            return []
        number = self._numbers.get(place)
        if number is None:
            return None
        return [self._frames[i] for i in range(number - self._first, len(self._frames))]

    def add(self, new: Frame) -> None:
        assert self.end is not None
        # A frame is found by the id of the frame before it.
        self._numbers[self.end] = self._first + len(self._frames)
        self._frames.append(new)
        self._bytes += len(new.data)
        self.end = new.id
        while len(self._frames) > RING_FRAMES or self._bytes > RING_BYTES:
            self._bytes -= len(self._frames.popleft().data)
            del self._numbers[next(iter(self._numbers))]
            self._first += 1

    def reset(self, end: str) -> None:
        """Drops all frames and continues after `end`."""
        self._frames.clear()
        self._numbers.clear()
        self._bytes = self._first = 0
        self.end = end


class Channel:
    """What watchers of one session, or of all sessions, wait for."""

    def __init__(self) -> None:
        self.ring = Ring()
        self.watchers = 0
        self.seen: Seq = 0
        self.event = asyncio.Event()

    def wake_all(self) -> None:
        """Wakes all watchers. They take the event before they check for news, so none of them misses it."""
        old, self.event = self.event, asyncio.Event()
        old.set()


class Notifications:
    """The news of one namespace. Used from the event loop; the thread passes on what it has read."""

    def __init__(self, space: Namespace, loop: asyncio.AbstractEventLoop) -> None:
        self._space = space
        self._loop = loop
        self._channels: dict[SessionId, Channel] = {}
        self.feed = Channel()
        self.any = Channel()
        self.cursor = ""
        self._ready = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._thread_lock = threading.Lock()
        self._waiting = 0
        self._left_at = 0.0
        self._is_closed = False
        self._last_cursor: str | None = None
        self._encodes_feed = False

    async def join(self, session: SessionId | None = None, *, frames: bool = True) -> Channel:
        """The channel of a session, or of all sessions. Nothing after the return is missed. Call `leave` at the end."""
        if session is not None:
            channel = self._channels.setdefault(session, Channel())
        else:
            channel = self.feed if frames else self.any
        channel.watchers += 1
        self._waiting += 1
        self._encodes_feed = self.feed.watchers > 0
        self._start()
        try:
            await self._ready.wait()
        except BaseException:
            self.leave(channel)
            raise
        return channel

    def leave(self, channel: Channel) -> None:
        channel.watchers -= 1
        self._waiting -= 1
        self._left_at = time.monotonic()
        if channel.watchers == 0 and channel not in (self.feed, self.any):
            self._channels = {s: c for s, c in self._channels.items() if c is not channel}
        elif self.feed.watchers == 0:
            self._encodes_feed = False
            # From here on the ring gets no frames, so its end is no longer the feed's position.
            self.feed.ring = Ring()

    @property
    def watchers(self) -> int:
        return self._waiting

    def close(self) -> None:
        """Wakes all watchers, so that they see the server is stopping. The thread then ends."""
        self._is_closed = True
        for channel in (self.feed, self.any, *self._channels.values()):
            channel.wake_all()
        self._ready.set()

    def join_thread(self) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(5.0)

    # On the event loop

    def _publish(self, news: Sequence[News], cursor: str) -> None:
        for each in news:
            self._publish_one(each)
        self.cursor = cursor
        self.any.wake_all()
        if news:
            self.feed.wake_all()

    def _publish_one(self, news: News) -> None:
        channel = self._channels.get(news.change.session)
        if channel is not None:
            channel.seen = max(channel.seen, news.change.seq)
            _add_to_session(channel.ring, news)
            channel.wake_all()
        if self.feed.watchers:
            _add_to_feed(self.feed.ring, news)

    def _set_ready(self, cursor: str) -> None:
        self.cursor = cursor
        self._ready.set()

    # In the thread

    def _start(self) -> None:
        with self._thread_lock:
            if self._thread is None and not self._is_closed:
                self._ready.clear()
                self._thread = threading.Thread(target=self._run, name=f"hub {self._space.name}", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        cursor: str | None = None
        while not self._may_stop():
            try:
                if cursor is None:
                    cursor = self._last_cursor = end_of(self._space.engine, self._last_cursor or "")
                    self._call_on_loop(self._set_ready, cursor)
                page = self._space.engine.changes(cursor, PAGE)
                if not page:
                    self._space.engine.wait(None, after=0, timeout_s=WAIT_S)
                    continue
                news = list(self._read_news(page, cursor))
            except WakelogError as exc:
                _log.warning("news cannot be read", extra={"namespace": self._space.name, "error": str(exc)})
                time.sleep(WAIT_S)
                continue
            cursor = self._last_cursor = page[-1].cursor
            self._call_on_loop(self._publish, news, cursor)

    def _call_on_loop(self, function: object, *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)  # type: ignore[arg-type]

    def _may_stop(self) -> bool:
        with self._thread_lock:
            is_idle = self._waiting == 0 and time.monotonic() - self._left_at > LINGER_S
            if is_idle or self._is_closed:
                self._thread = None
                return True
            return False

    def _read_news(self, page: Sequence[FeedChange], before: str) -> Iterable[News]:
        for change in page:
            wanted = self._encodes_feed or change.session in self._channels
            yield News(change, before, tuple(encode_events(self._space, change)) if wanted else None)
            before = change.cursor


def encode_events(space: Namespace, change: FeedChange) -> list[EncodedEvent]:
    """The events of a change's commit, encoded; none if the session was deleted."""
    try:
        log = space.log(change.session)
        tools: dict[str, str] = {}
        return [
            EncodedEvent(entry.seq, entry.kind, _encode(record_of(log, entry, tools)))
            for commit in space.engine.read(change.session, after=change.seq - 1, upto=change.seq)
            for entry in open_commit(commit)
        ]
    except NotFoundError:
        return []


def feed_frames(events: Sequence[EncodedEvent], before: str, cursor: str) -> list[Frame]:
    """A commit's events as frames of the feed."""
    last = len(events) - 1
    return [
        make_frame(cursor if i == last else f"{before}~{i + 1}", event.kind, event.data)
        for i, event in enumerate(events)
    ]


def _add_to_session(ring: Ring, news: News) -> None:
    for event in news.events or ():
        if ring.end is not None and event.seq <= int(ring.end):
            continue
        if ring.end != str(event.seq - 1):
            ring.reset(str(event.seq - 1))
        ring.add(make_frame(str(event.seq), event.kind, event.data))
    _forget_removed(ring, news, str(news.change.seq))


def _add_to_feed(ring: Ring, news: News) -> None:
    if ring.end != news.before:
        ring.reset(news.before)
    for each in feed_frames(news.events or (), news.before, news.change.cursor):
        ring.add(each)
    _forget_removed(ring, news, news.change.cursor)


def _forget_removed(ring: Ring, news: News, end: str) -> None:
    """After a removal, or a change whose events were not read, older frames may be wrong. The log serves them
    instead."""
    if not news.events or any(event.kind in _REMOVALS for event in news.events):
        ring.reset(end)
