"""Requests to one server, over urllib3's connection pool.

Redirects are not followed, because a key must not go to another server. Nothing is retried here: the engine decides how
long to retry.
"""

from __future__ import annotations

import os
import queue
import ssl
from collections import deque
from typing import Any

import msgspec
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, NewConnectionError, SSLError
from urllib3.util import Url, parse_url

from wakelog.errors import InvalidInputError

CONNECT_S = 5.0
KEPT_MAX = 8
"""How many idle connections to keep."""


class Reply(msgspec.Struct, frozen=True):
    """An HTTP response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes


class NoReplyError(Exception):
    """There is no complete answer. The request may have been processed."""


class UnreachableError(NoReplyError):
    """No connection could be made, so nothing was sent."""


def parse_address(url: str) -> Url:
    """A server's address, such as http://127.0.0.1:8425 or https://host/ns/team-a."""
    try:
        parts = parse_url(url)
    except LocationParseError:
        parts = Url()
    has_more = parts.query or parts.fragment or parts.auth
    if parts.scheme not in ("http", "https") or not parts.host or parts.port == 0 or has_more:
        raise InvalidInputError(
            f"{url!r} is not the address of a server",
            kind="bad-url",
            hint="it looks like http://127.0.0.1:8425 or https://host/ns/NAME; a key goes into key=",
        )
    return parts


class _IdleConnections(queue.LifoQueue[Any]):
    """Idle connections, the newest first, without a lock. urllib3's own queue has one, and an interrupt (Ctrl-C) at the
    wrong moment leaves it locked. urllib3 adds and takes without waiting."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        self._items: deque[Any] = deque(maxlen=maxsize)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if len(self._items) == self._items.maxlen:
            raise queue.Full
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        try:
            return self._items.pop()
        except IndexError:
            raise queue.Empty from None

    def qsize(self) -> int:
        return len(self._items)


class _HttpPool(HTTPConnectionPool):
    QueueCls = _IdleConnections


class _HttpsPool(HTTPSConnectionPool):
    QueueCls = _IdleConnections


class Connections:
    """The connections to one server, shared by threads; after a fork the child makes its own."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._address = parse_address(url)
        self._base = (self._address.path or "").rstrip("/")
        self._headers = headers
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        host, port = self._address.host or "", self._address.port
        self._pool = (
            _HttpsPool(host, port, maxsize=KEPT_MAX, ssl_context=ssl.create_default_context())
            if self._address.scheme == "https"
            else _HttpPool(host, port, maxsize=KEPT_MAX)
        )

    def ask(self, method: str, path: str, body: bytes, timeout_s: float, headers: dict[str, str]) -> Reply:
        if self._pid != os.getpid():
            self._start()  # a forked child must not use its parent's connections
        try:
            response = self._pool.urlopen(
                method,
                self._base + path,
                body,
                self._headers | headers,
                retries=False,
                redirect=False,
                timeout=Timeout(connect=CONNECT_S, read=timeout_s),
                decode_content=False,
            )
        except (NewConnectionError, ConnectTimeoutError) as exc:
            raise UnreachableError(str(exc)) from exc
        except HTTPError as exc:
            if isinstance(exc, SSLError) and isinstance(exc.args[0], ssl.SSLCertVerificationError):
                raise UnreachableError(str(exc)) from exc
            raise NoReplyError(str(exc)) from exc
        return Reply(response.status, {k.lower(): v for k, v in response.headers.items()}, response.data)

    def close(self) -> None:
        self._pool.close()
