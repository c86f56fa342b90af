"""The client of a cluster, for one who asks much: what is sent goes out together, and an answer goes straight to who
waits for it.

The driver makes a task of each thing that is sent or asked, hands each message over a queue to another task, and sets a
timer for each answer. Here, a message is bytes in the driver's buffer, which goes to the server once in each round of
the loop; an answer is given to its handler by whoever reads the socket; and one timer looks after all who wait.
Connecting, logging in and coming back stay the driver's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
import nats.errors
from nats.aio.client import Client

LOOK_S = 0.25
"""How often is looked for answers that are overdue."""
_NEWLINES = str.maketrans("\r\n", "  ")


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A message that was asked for."""

    data: bytes
    head: bytes = b""
    """Its headers, as they came: `NATS/1.0 STATUS …` and lines."""

    @property
    def status(self) -> str:
        """Three digits, when that is what the server has to say."""
        return self.head[9:12].decode() if self.head[8:9] == b" " else ""

    def header(self, name: str) -> str:
        begin = self.head.index(b"\r\n%s: " % name.encode()) + len(name) + 4
        return self.head[begin : self.head.index(b"\r\n", begin)].decode("utf-8", "replace")


Handler = Callable[[Answer | Exception], None]


class AskingClient(Client):
    """The driver, and who waits for an answer. Lives on the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = ""
        self._inbox_sid = 0
        self._count = 0
        self._waiting: dict[bytes, tuple[Handler, float]] = {}
        self._look: asyncio.TimerHandle | None = None

    async def open_inbox(self) -> None:
        """Where answers come to. The server hears of it again when the connection was lost and is back."""

        async def on(message: Any) -> None:  # not called: see _process_msg
            raise AssertionError(message)

        self.inbox = self.new_inbox()
        subscription = await self.subscribe(f"{self.inbox}.*", cb=on, pending_bytes_limit=0)
        self._inbox_sid = subscription._id

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        """What came, told by the reader of the socket."""
        if sid != self._inbox_sid:
            await super()._process_msg(sid, subject, reply, data, headers)
        elif (waiting := self._waiting.get(bytes(subject))) is not None:
            waiting[0](Answer(data, headers or b""))

    # Waiting

    def expect(self, handler: Handler, within_s: float) -> str:
        """A place for an answer. Until it is dropped, `handler` is called with each that comes, and with a TimeoutError
        when none came in time. It must not raise."""
        loop = asyncio.get_running_loop()
        self._count += 1
        place = f"{self.inbox}.{self._count:x}"
        self._waiting[place.encode()] = handler, loop.time() + within_s
        if self._look is None:
            self._look = loop.call_later(LOOK_S, self._look_for_late)
        return place

    def drop(self, place: str) -> None:
        self._waiting.pop(place.encode(), None)

    def tell_all(self, exc: Exception) -> None:
        """Nobody will get an answer."""
        for handler, _ in tuple(self._waiting.values()):
            handler(exc)

    def _look_for_late(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for handler, until in tuple(self._waiting.values()):
            if until < now:
                handler(TimeoutError("no answer in time"))
        self._look = loop.call_later(LOOK_S, self._look_for_late) if self._waiting else None

    # Sending

    def send(self, subject: str, data: bytes, reply: str = "", headers: dict[str, str] | None = None) -> None:
        """Sends a message with the others of this round of the loop. Its subject is taken to be one."""
        if not self.is_connected:
            raise nats.errors.ConnectionReconnectingError
        if len(data) > self.max_payload:
            raise nats.errors.MaxPayloadError
        to = f"{subject} {reply}" if reply else subject
        if headers:
            lines = "".join(f"{key}: {value.translate(_NEWLINES)}\r\n" for key, value in headers.items())
            head = f"NATS/1.0\r\n{lines}\r\n".encode()
            command = b"HPUB %s %d %d\r\n%s%s\r\n" % (to.encode(), len(head), len(head) + len(data), head, data)
        else:
            command = b"PUB %s %d\r\n%s\r\n" % (to.encode(), len(data), data)
        self._pending.append(command)
        self._pending_data_size += len(command)
        assert self._flush_queue is not None
        if self._flush_queue.empty():
            self._flush_queue.put_nowait(asyncio.get_running_loop().create_future())

    async def end(self) -> None:
        if self._look is not None:
            self._look.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.close(), 5)
        self.tell_all(nats.errors.ConnectionClosedError())
