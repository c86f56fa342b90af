"""How a connection is read: uvicorn's protocol, with a limit to the connections of one address, and limits to the head
of a request.

All of this happens before any key is checked. The parser collects a head of any length and at any speed, and calls back
for each complete line. So lines are counted in the callbacks, and incomplete lines by the bytes since the last
callback. The same limits apply to trailers after a chunked body, because the parser treats them alike.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakelog.engines.remote.wire import PROBLEM
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.http.guards import ConnectionCount
from wakelog.http.problems import problem, too_many_connections

if TYPE_CHECKING:
    from wakelog.http.app import App

HEAD_MAX = 64 << 10
"""Bytes of a head: the address and all headers."""
HEADERS_MAX = 100
HEAD_S = 30.0
"""How long a head may take to arrive."""
LINGER_S = 1.0
"""How long a refused connection stays open. If it closed at once, data that is still arriving would reset the
connection, and the caller would lose the answer."""


class _HeadRefusedError(Exception):
    """Raised in a callback, so that the parser stops."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    head_s = HEAD_S
    _deadline: asyncio.TimerHandle | None = None
    _size = 0
    """Bytes of this head so far, in complete lines."""
    _count = 0
    _unparsed = 0
    """Bytes received since the parser's last callback for a body part or an end."""
    _is_refused = False
    _counted_address: str | None = None
    """The address that this connection is counted for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        most = self._connections.enter(address)
        if most:
            self._is_refused = True
            transport.write(_refusal(too_many_connections(most), "retry-after: 1"))
            self._deadline = self.loop.call_later(LINGER_S, transport.close)
            return
        self._counted_address = address
        self._start_deadline()

    @property
    def _connections(self) -> ConnectionCount:
        app: App = self.config.app  # type: ignore[assignment]
        return app.server.connections

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_MAX and not self._is_refused:
            self._refuse()

    def on_message_begin(self) -> None:
        self._start_deadline()
        self._size = self._count = self._unparsed = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._add(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        self._add(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_deadline()
        self._unparsed = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        if self._counted_address is not None:
            self._connections.leave(self._counted_address)
            self._counted_address = None
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:  # our own exception looks like a parse error
            super().send_400_response(msg)

    def _add(self, size: int) -> None:
        self._size += size
        if self._size > HEAD_MAX or self._count > HEADERS_MAX:
            self._refuse()
            raise _HeadRefusedError

    def _refuse(self) -> None:
        """Sends the error unless an answer is being sent on this connection, and closes it."""
        self._is_refused = True
        self._end_deadline()
        if self.transport.is_closing():
            return
        is_answering = bool(self.cycle) and not self.cycle.response_complete
        if not is_answering:
            excess = f"is larger than {HEAD_MAX:,} bytes or has more than {HEADERS_MAX} headers"
            error = InvalidInputError(f"the head of the request {excess}", kind="head-too-large")
            self.transport.write(_refusal(error))
        self.transport.close()

    def _start_deadline(self) -> None:
        self._end_deadline()
        self._deadline = self.loop.call_later(self.head_s, self.timeout_keep_alive_handler)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _refusal(error: WakelogError, *headers: str) -> bytes:
    answer = problem(error)
    body = msgspec.json.encode(answer)
    status = HTTPStatus(answer.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {PROBLEM}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n"
    )
    return "".join([head, *(f"{line}\r\n" for line in headers), "\r\n"]).encode() + body
