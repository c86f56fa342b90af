"""The receiver of spans: OTLP over HTTP, in JSON and protobuf, at /v1/traces.

A request is answered as OTLP asks: 200 when its spans are on disk, with a count of those that never can be taken; 400
for what is no export, which the sender drops; 503 with a time to wait when there is no room, and the sender tries
again. Bodies are bounded before and after they are unpacked. A thread brings traces into the store when they are ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import uvicorn

from wakelog import otlp
from wakelog.errors import InvalidInputError, NotAllowedError, UnsupportedError, WakelogError
from wakelog.http.guards import LOOPBACK, HostGuard
from wakelog.http.server import GRACE_S, in_a_thread, listen, uvicorn_config
from wakelog.importers.event_streams.otel.span_spool import SpanSpool
from wakelog.importers.transcript_import import ImportReport
from wakelog.store import Store

PATH = "/v1/traces"
PORT = 4318
BODY_MAX = 16 << 20
"""Bytes of a body, and of what it unpacks to."""
REQUESTS_MAX = 64
EVERY_S = 0.25
RETRY_S = 5.0
_log = logging.getLogger("wakelog.http")
_INVALID, _UNAUTHENTICATED, _UNAVAILABLE = 3, 16, 14

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class _RefusedError(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class TraceIntake:
    """The application. `token`, when there is one, must come as `Authorization: Bearer`."""

    def __init__(self, spool: SpanSpool, *, token: str = "", host_names: tuple[str, ...] = ()) -> None:
        self._spool, self._token = spool, token
        self._doors = HostGuard((*LOOPBACK, *host_names))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        form = otlp.PROTOBUF if media == otlp.PROTOBUF else otlp.JSON
        extra: dict[str, str] = {}
        try:
            self._check(scope, headers, media)
            document = _document(await _body(headers, receive), headers, media)
            taken = await asyncio.to_thread(self._spool.take, document)
            status, answer = 200, otlp.accepted_body(form, taken.rejected, taken.why)
        except _RefusedError as exc:
            status, answer = exc.status, otlp.status_body(form, exc.code, str(exc))
        except (InvalidInputError, NotAllowedError) as exc:
            status, answer = 400, otlp.status_body(form, _INVALID, exc.message)
        except UnsupportedError as exc:
            status, answer = 415, otlp.status_body(form, _INVALID, f"{exc.message}; {exc.hint}")
        except WakelogError as exc:
            status, answer = 503, otlp.status_body(form, _UNAVAILABLE, exc.message)
        if status == 503:
            extra["retry-after"] = str(int(RETRY_S))
        if status == 401:
            extra["www-authenticate"] = "Bearer"
        if status == 405:
            extra["allow"] = "POST"
        fields = {"content-type": form, "content-length": str(len(answer)), **extra}
        pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": answer})

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, str], media: str) -> None:
        self._doors.check(headers.get("host", ""), headers.get("origin", ""))
        if scope["path"] != PATH:
            raise _RefusedError(404, _INVALID, f"there is nothing at this path: spans go to {PATH}")
        if scope["method"] != "POST":
            raise _RefusedError(405, _INVALID, "spans are sent with POST")
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        if self._token and not hmac.compare_digest(given, self._token.encode()):
            raise _RefusedError(401, _UNAUTHENTICATED, "the token is missing or wrong")
        if media not in (otlp.JSON, otlp.PROTOBUF):
            raise _RefusedError(415, _INVALID, f"send {otlp.JSON} or {otlp.PROTOBUF}, not {media or 'nothing'}")


async def _body(headers: dict[str, str], receive: Receive) -> bytes:
    told = headers.get("content-length", "")
    body = bytearray()
    while True:
        if len(body) > BODY_MAX or (told.isdigit() and int(told) > BODY_MAX):
            raise _too_large()
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, _INVALID, "the sender left")
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def _document(body: bytes, headers: dict[str, str], media: str) -> dict[str, Any]:
    packed = headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise _RefusedError(415, _INVALID, f"bodies may be packed with gzip, not {packed}")
    if packed == "gzip":
        body = _unpacked(body)
    if len(body) > BODY_MAX:
        raise _too_large()
    return otlp.read_json(body) if media == otlp.JSON else otlp.read_protobuf(body)


def _unpacked(body: bytes) -> bytes:
    """Never more than a body may have: a small one can unpack to anything."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        out = unpacker.decompress(body, BODY_MAX + 1)
    except zlib.error as exc:
        raise InvalidInputError("the body is not gzip", kind="bad-otlp") from exc
    if len(out) <= BODY_MAX and not unpacker.eof:
        raise InvalidInputError("the body ends in the middle of its gzip", kind="bad-otlp")
    return out


def _too_large() -> _RefusedError:
    return _RefusedError(413, _INVALID, f"a body may have {BODY_MAX >> 20} MiB: send smaller batches")


class TraceImports:
    """Brings traces into the store as they become ready, in a thread of its own."""

    def __init__(self, spool: SpanSpool, store: Store, told: Callable[[ImportReport], None] = lambda _: None) -> None:
        self._spool, self._store, self._told = spool, store, told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wakelog otel", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(GRACE_S)

    def step(self, *, everything: bool = False) -> int:
        """Imports what is ready; how many traces that were. One that fails is tried again later: nothing is lost."""
        count = 0
        for trace in self._spool.ready(everything=everything):
            try:
                self._told(self._spool.bring_in(self._store, trace))
                count += 1
            except (WakelogError, OSError) as exc:
                _log.warning("trace not imported", extra={"trace": trace, "why": str(exc)})
                self._stop.wait(RETRY_S)
        self._spool.forget()
        return count

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.step()
            except Exception:
                _log.exception("intake of traces")


def run_intake(app: TraceIntake, sock: socket.socket) -> None:
    """Serves until it is told to stop by SIGTERM or SIGINT."""
    _server(app).run([sock])


def _server(app: TraceIntake) -> uvicorn.Server:
    return uvicorn.Server(uvicorn_config(app, lifespan="off", limit_concurrency=REQUESTS_MAX))


@contextlib.contextmanager
def intake_running(app: TraceIntake, *, port: int = 0) -> Iterator[str]:
    """A receiver in a thread of this process, for notebooks and tests; its address."""
    sock = listen("127.0.0.1", port)
    with in_a_thread(_server(app), sock, "wakelog otel serve"):
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"


__all__ = ["BODY_MAX", "PATH", "PORT", "TraceImports", "TraceIntake", "intake_running", "run_intake"]
