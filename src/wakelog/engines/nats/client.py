"""A faster client for many small requests: messages are sent together, and an answer goes directly to its handler.

The driver creates a task for each request, passes each message through a queue to another task, and sets a timer for
each answer. Here, a message is appended to the driver's buffer, which is sent once in each round of the loop. The
socket's reader calls the handler of an answer, and one timer checks all pending answers. Connecting, logging in and
reconnecting are still the driver's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any

import msgspec
import nats.errors
from nats.aio.client import Client

LOOK_S = 0.25
"""How often to check for overdue answers."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An answer to a request."""

    data: bytes
    head: bytes = b""
    """Its raw headers: `NATS/1.0 STATUS …` and lines."""

    @property
    def status(self) -> str:
        """The three-digit status, if there is one."""
        return self.head[9:12].decode() if self.head[8:9] == b" " else ""

    def header(self, name: str) -> str:
        begin = self.head.index(b"\r\n%s: " % name.encode()) + len(name) + 4
        return self.head[begin : self.head.index(b"\r\n", begin)].decode("utf-8", "replace")


Handler = Callable[[Answer | Exception], None]


class RequestClient(Client):
    """The driver with handlers for answers. Runs on the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = ""
        self._inbox_sid = 0
        self._count = 0
        self._waiting: dict[bytes, tuple[Handler, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def open_inbox(self) -> None:
        """Subscribes to the subject of all answers. The driver repeats this after a reconnect."""

        async def on(message: Any) -> None:  # not called: see _process_msg
            raise AssertionError(message)

        self.inbox = self.new_inbox()
        subscription = await self.subscribe(f"{self.inbox}.*", cb=on, pending_bytes_limit=0)
        self._inbox_sid = subscription._id

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Called when a server introduces itself, before the login is sent. The driver would send it unencrypted to a
        server that does not demand TLS."""
        assert self._current_server is not None
        if initial_connection and self._current_server.uri.scheme == "tls" and not info.get("tls_required"):
            if not info.get("tls_available"):
                raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the URL begins with tls://, and the server offers none")
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        """Called by the socket's reader for each message."""
        if sid != self._inbox_sid:
            await super()._process_msg(sid, subject, reply, data, headers)
        elif (waiting := self._waiting.get(bytes(subject))) is not None:
            waiting[0](Answer(data, headers or b""))

    # Waiting

    def expect(self, handler: Handler, within_s: float) -> str:
        """A reply subject for an answer. Until it is dropped, `handler` is called with each answer, and with a
        TimeoutError if there is none in time. It must not raise."""
        loop = asyncio.get_running_loop()
        self._count += 1
        place = f"{self.inbox}.{self._count:x}"
        self._waiting[place.encode()] = handler, loop.time() + within_s
        if self._timer is None:
            self._timer = loop.call_later(LOOK_S, self._fail_overdue)
        return place

    def drop(self, place: str) -> None:
        self._waiting.pop(place.encode(), None)

    def fail_all(self, exc: Exception) -> None:
        """Calls all handlers with an error."""
        for handler, _ in tuple(self._waiting.values()):
            handler(exc)

    def _fail_overdue(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for handler, until in tuple(self._waiting.values()):
            if until < now:
                handler(TimeoutError("no answer in time"))
        self._timer = loop.call_later(LOOK_S, self._fail_overdue) if self._waiting else None

    # Sending

    def send(self, subject: str, data: bytes, reply: str = "", lines: str = "") -> None:
        """Sends a message, with header `lines`, together with the others of this round of the loop. The subject is not
        checked."""
        if not self.is_connected:
            raise nats.errors.ConnectionReconnectingError
        if len(data) > self.max_payload:
            raise nats.errors.MaxPayloadError
        to = f"{subject} {reply}" if reply else subject
        if lines:
            head = f"NATS/1.0\r\n{lines}\r\n".encode()
            command = b"HPUB %s %d %d\r\n%s%s\r\n" % (to.encode(), len(head), len(head) + len(data), head, data)
        else:
            command = b"PUB %s %d\r\n%s\r\n" % (to.encode(), len(data), data)
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._write_pending)
        self._pending.append(command)
        self._pending_data_size += len(command)

    def _write_pending(self) -> None:
        """Does what the driver's own task does, without waking it."""
        if self._pending and self.is_connected and self._transport is not None:
            commands, self._pending, self._pending_data_size = self._pending, [], 0
            self._transport.writelines(commands)

    async def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.close(), 5)
        self.fail_all(nats.errors.ConnectionClosedError())
