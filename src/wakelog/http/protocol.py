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
"""How long a refused connection stays open: closed at once, what the caller sends meanwhile would wipe out the
answer."""


class _HeadRefusedError(Exception):
    """Raised in a callback, so that the parser stops."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    head_s = HEAD_S
    _limit: asyncio.TimerHandle | None = None
    _size = 0
    """Bytes of the lines of this head."""
    _count = 0
    _loose = 0
    """Bytes that came since the parser last found a part of a body, or the end of something."""
    _is_refused = False
    _counted: str | None = None
    """The address that this connection is counted for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        most = self._connections.enter(address)
        if most:
            self._is_refused = True
            transport.write(_refusal(too_many_connections(most), "retry-after: 1"))
            self._limit = self.loop.call_later(LINGER_S, transport.close)
            return
        self._counted = address
        self._start_limit()

    @property
    def _connections(self) -> ConnectionCount:
        app: App = self.config.app  # type: ignore[assignment]
        return app.server.connections

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._loose += len(data)
        super().data_received(data)
        if self._loose > HEAD_MAX and not self._is_refused:
            self._refuse()

    def on_message_begin(self) -> None:
        self._start_limit()
        self._size = self._count = self._loose = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._add(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        self._add(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_limit()
        self._loose = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._loose = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._loose = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_limit()
        if self._counted is not None:
            self._connections.leave(self._counted)
            self._counted = None
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:  # which the parser takes for a fault in the request
            super().send_400_response(msg)

    def _add(self, size: int) -> None:
        self._size += size
        if self._size > HEAD_MAX or self._count > HEADERS_MAX:
            self._refuse()
            raise _HeadRefusedError

    def _refuse(self) -> None:
        """Says so, if nothing else is being said on this connection, and ends it."""
        self._is_refused = True
        self._end_limit()
        if self.transport.is_closing():
            return
        is_answering = bool(self.cycle) and not self.cycle.response_complete
        if not is_answering:
            told = f"is larger than {HEAD_MAX:,} bytes or has more than {HEADERS_MAX} headers"
            error = InvalidInputError(f"the head of the request {told}", kind="head-too-large")
            self.transport.write(_refusal(error))
        self.transport.close()

    def _start_limit(self) -> None:
        self._end_limit()
        self._limit = self.loop.call_later(self.head_s, self.timeout_keep_alive_handler)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _refusal(error: WakelogError, *headers: str) -> bytes:
    told = problem(error)
    body = msgspec.json.encode(told)
    status = HTTPStatus(told.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {PROBLEM}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n"
    )
    return "".join([head, *(f"{line}\r\n" for line in headers), "\r\n"]).encode() + body
