"""Requests and replies, as a check sees them.

A reply that does not follow the protocol raises a `ServerFault`. It has what was expected, what was received, and the
request, so that the server's author can repeat it by hand.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from wakelog.errors import InvalidInputError, UnavailableError

PROBLEM = "application/problem+json"
TIMEOUT_S = 30.0
_SHOWN = 300
_PROBLEM_FIELDS = ("type", "title", "status", "detail", "kind", "group")


class ServerFault(Exception):
    """A server did not follow the protocol."""

    def __init__(self, expected: str, got: str, request: str = "") -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected, self.got, self.request = expected, got, request


class NotOffered(ServerFault):
    """The server says that it has no such operation, or that this key may not use it."""


class WireReply:
    """An answer, with the request that led to it."""

    def __init__(self, request: str, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.request, self.status, self.headers, self.content = request, status, headers, content

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            raise self.fault("JSON", f"{self.headers.get('content-type', 'no type')}: {self.shown}") from None

    @property
    def etag(self) -> str:
        return self.headers.get("etag", "")

    @property
    def shown(self) -> str:
        text = self.content.decode(errors="replace")
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    def fault(self, expected: str, got: str) -> ServerFault:
        return ServerFault(expected, got, self.request)

    def ok(self, status: int = 200) -> Any:
        """The answer's JSON; ServerFault unless it has this status."""
        self.want(status)
        return self.json

    def want(self, status: int) -> None:
        if self.status == status:
            return
        if self._kind in ("no-such-route", "scope-missing") or self.status in (405, 501):
            raise NotOffered(str(status), f"{self.status} {self._kind}", self.request)
        raise self.fault(str(status), f"{self.status}: {self.shown}")

    @property
    def _kind(self) -> str:
        try:
            return str(json.loads(self.content)["kind"])
        except (ValueError, KeyError, TypeError):
            return ""

    def refused(self, status: int, kind: str = "") -> dict[str, Any]:
        """The problem in this answer; ServerFault unless it has this status and kind, in the right form."""
        wanted = f"{status} {kind}".strip()
        if self.status != status:
            if self.status >= 400:
                self.want(status)
            raise self.fault(wanted, f"{self.status}: {self.shown}")
        media = self.headers.get("content-type", "").partition(";")[0].strip()
        if media != PROBLEM:
            raise self.fault(f"{wanted} as {PROBLEM}", media or "no content type")
        problem = self.json
        if not isinstance(problem, dict) or (missing := [f for f in _PROBLEM_FIELDS if f not in problem]):
            raise self.fault(f"a problem with {', '.join(_PROBLEM_FIELDS)}", f"one without {', '.join(missing)}")
        if kind and problem["kind"] != kind:
            raise self.fault(f"kind {kind}", f"kind {problem['kind']}")
        if problem["status"] != status:
            raise self.fault(f"status {status} inside the problem", str(problem["status"]))
        return problem


class WireClient:
    """Asks one server with one key. Every request has its own connection."""

    def __init__(self, url: str, key: str, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInputError(
                f"{url!r} is not the address of a server", kind="bad-url", hint="it looks like http://127.0.0.1:8425"
            )
        self._secure = parts.scheme == "https"
        self._host = parts.netloc.rpartition("@")[2]
        self.base = quote(parts.path.rstrip("/"), safe="/%")
        self.key, self.timeout_s = key, timeout_s
        self.last = ""

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        with_key: bool = True,
    ) -> WireReply:
        """Sends one request and reads its answer. `body` is sent as JSON, `raw` unchanged."""
        connection, request = self._send(method, path, body, headers or {}, raw, with_key)
        try:
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as exc:
            raise ServerFault("an answer", f"{type(exc).__name__}: {exc}", request) from exc
        finally:
            connection.close()
        return WireReply(request, answer.status, _lower(answer), content)

    def ask_and_hang_up(self, method: str, path: str, body: object) -> None:
        """Sends a request and disconnects without reading the answer."""
        self._send(method, path, body, {}, None, True)[0].close()

    def tail(self, path: str, headers: Mapping[str, str] | None = None) -> Tail:
        """Opens a stream, and returns when its headers have arrived."""
        connection, request = self._send("GET", path, None, headers or {}, None, True)
        try:
            answer = connection.getresponse()
            if answer.status != 200:
                WireReply(request, answer.status, _lower(answer), answer.read()).want(200)
            media = (answer.getheader("content-type") or "").partition(";")[0]
            if media != "text/event-stream":
                raise ServerFault("text/event-stream", media or "no content type", request)
        except BaseException:
            connection.close()
            raise
        return Tail(connection, answer, request, self.timeout_s)

    def _send(
        self, method: str, path: str, body: object, headers: Mapping[str, str], raw: bytes | None, with_key: bool
    ) -> tuple[http.client.HTTPConnection, str]:
        content = json.dumps(body, ensure_ascii=False).encode() if body is not None else raw
        sent = {"authorization": f"Bearer {self.key}"} if with_key and self.key else {}
        if body is not None:
            sent["content-type"] = "application/json"
        sent |= headers
        request = self.last = _request_line(method, self.base + path, headers, content)
        connection = (
            http.client.HTTPSConnection(self._host, timeout=self.timeout_s, context=ssl.create_default_context())
            if self._secure
            else http.client.HTTPConnection(self._host, timeout=self.timeout_s)
        )
        try:
            connection.request(method, self.base + path, content, sent)
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise UnavailableError(
                f"{self._host} does not answer: {exc}", kind="server-unreachable", hint="is the server running?"
            ) from exc
        return connection, request


def _lower(answer: http.client.HTTPResponse) -> dict[str, str]:
    """The headers, with names in lower case."""
    return {name.lower(): value for name, value in answer.getheaders()}


def _request_line(method: str, path: str, headers: Mapping[str, str], content: bytes | None) -> str:
    """A request in one line, without its key."""
    shown = "".join(f" {name}: {value}" for name, value in headers.items() if name.lower() != "authorization")
    text = (content or b"").decode(errors="replace")
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{method} {path}{shown} {text}".rstrip()


class SseFrame(NamedTuple):
    """One server-sent event."""

    id: str
    event: str
    data: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Tail:
    """A stream of server-sent events, read as the HTML standard says."""

    def __init__(
        self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, request: str, timeout_s: float
    ) -> None:
        self._connection, self._answer, self.request, self._timeout_s = connection, answer, request, timeout_s

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def take(self, session: str = "") -> SseFrame:
        """The next frame, of `session` if it is given; ServerFault if there is none in time."""
        until = time.monotonic() + self._timeout_s
        try:
            while frame := self._next(until):
                if not session or frame.json.get("session") == session:
                    return frame
            got = "the end of the stream"
        except (OSError, http.client.HTTPException):
            got = f"nothing for {self._timeout_s:g} s"
        except ValueError as exc:
            got = f"a frame that is not JSON: {exc}"
        raise ServerFault("an event", got, self.request)

    def take_events(self, *seqs: int, session: str = "") -> list[SseFrame]:
        """The frames of these events; ServerFault at the first other event."""
        frames: list[SseFrame] = []
        for seq in seqs:
            frame = self.take(session)
            if frame.json.get("seq") != seq:
                raise ServerFault(f"event {seq} next", f"event {frame.json.get('seq')}", self.request)
            frames.append(frame)
        return frames

    def _next(self, until: float) -> SseFrame | None:
        """The next frame with data; None at the end of the stream."""
        id = event = ""
        data: list[str] = []
        while line := self._answer.readline():
            text = line.decode().rstrip("\r\n")
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if not text and data:
                return SseFrame(id, event, "\n".join(data))
            if name == "data":
                data.append(value)
            elif name == "id":
                id = value
            elif name == "event":
                event = value
            elif time.monotonic() > until:
                raise TimeoutError  # comments only keep the connection alive
        return None
