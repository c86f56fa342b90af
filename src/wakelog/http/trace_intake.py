"""The receiver of spans: OTLP over HTTP, in JSON and protobuf, at /v1/traces.

The answers follow OTLP: 200 when the spans are on disk, with a count of those that were rejected for good; 400 when the
body is not an export, and the sender drops it; 503 with `retry-after` when there is no room, and the sender retries.
Bodies are limited before and after unpacking. A thread imports traces into the store when they are complete.
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
from wakelog.http.server import GRACE_S, listen, run_in_thread, uvicorn_config
from wakelog.importers.event_streams.otel.span_spool import SpanSpool
from wakelog.importers.transcript_import import ImportReport
from wakelog.store import Store

PATH = "/v1/traces"
PORT = 4318
BODY_MAX = 16 << 20
"""Bytes of a body, and of what it unpacks to."""
REQUESTS_MAX = 64
POLL_S = 0.25
RETRY_S = 5.0
_log = logging.getLogger("wakelog.http")
_HEADERS = {401: {"www-authenticate": "Bearer"}, 405: {"allow": "POST"}, 503: {"retry-after": str(int(RETRY_S))}}
_INVALID, _UNAUTHENTICATED, _UNAVAILABLE = 3, 16, 14

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class _RefusedError(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class TraceIntake:
    """The ASGI application. If `token` is set, requests must send it as `Authorization: Bearer`."""

    def __init__(self, spool: SpanSpool, *, token: str = "", host_names: tuple[str, ...] = ()) -> None:
        self._spool, self._token = spool, token
        self._host_guard = HostGuard((*LOOPBACK, *host_names))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        form = otlp.PROTOBUF if media == otlp.PROTOBUF else otlp.JSON
        try:
            self._check(scope, headers, media)
            document = _decode(await _receive(headers, receive), headers, media)
            spans = await asyncio.to_thread(self._spool.take, document)
            status, answer = 200, otlp.accepted_body(form, spans.rejected, spans.why)
        except _RefusedError as exc:
            status, answer = exc.status, otlp.status_body(form, exc.code, str(exc))
        except (InvalidInputError, NotAllowedError) as exc:
            status, answer = 400, otlp.status_body(form, _INVALID, exc.message)
        except UnsupportedError as exc:
            status, answer = 415, otlp.status_body(form, _INVALID, f"{exc.message}; {exc.hint}")
        except WakelogError as exc:
            status, answer = 503, otlp.status_body(form, _UNAVAILABLE, exc.message)
        fields = {"content-type": form, "content-length": str(len(answer)), **_HEADERS.get(status, {})}
        pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": answer})

    def _check(self, scope: MutableMapping[str, Any], headers: dict[str, str], media: str) -> None:
        self._host_guard.check(headers.get("host", ""), headers.get("origin", ""))
        if scope["path"] != PATH:
            raise _RefusedError(404, _INVALID, f"there is nothing at this path: spans go to {PATH}")
        if scope["method"] != "POST":
            raise _RefusedError(405, _INVALID, "spans are sent with POST")
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        if self._token and not hmac.compare_digest(given, self._token.encode()):
            raise _RefusedError(401, _UNAUTHENTICATED, "the token is missing or wrong")
        if media not in (otlp.JSON, otlp.PROTOBUF):
            raise _RefusedError(415, _INVALID, f"send {otlp.JSON} or {otlp.PROTOBUF}, not {media or 'nothing'}")


async def _receive(headers: dict[str, str], receive: Receive) -> bytes:
    length = headers.get("content-length", "")
    body = bytearray()
    while True:
        if len(body) > BODY_MAX or (length.isdigit() and int(length) > BODY_MAX):
            raise _too_large()
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _RefusedError(400, _INVALID, "the sender left")
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def _decode(body: bytes, headers: dict[str, str], media: str) -> dict[str, Any]:
    packed = headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("identity", "gzip", ""):
        raise _RefusedError(415, _INVALID, f"bodies may be packed with gzip, not {packed}")
    if packed == "gzip":
        body = _unpack(body)
    if len(body) > BODY_MAX:
        raise _too_large()
    return otlp.read_json(body) if media == otlp.JSON else otlp.read_protobuf(body)


def _unpack(body: bytes) -> bytes:
    """Unpacks at most BODY_MAX bytes, because a small body can unpack to any size."""
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
    """Imports traces into the store when they are ready: `with` it, in its own thread."""

    def __init__(
        self, spool: SpanSpool, store: Store, on_import: Callable[[ImportReport], None] = lambda _: None
    ) -> None:
        self._spool, self._store, self._on_import = spool, store, on_import
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wakelog otel", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(GRACE_S)

    def step(self) -> int:
        """Imports the traces that are ready and returns their number. A trace that fails is retried later."""
        count = 0
        for trace in self._spool.ready():
            try:
                self._on_import(self._spool.bring_in(self._store, trace))
                count += 1
            except (WakelogError, OSError) as exc:
                _log.warning("trace not imported", extra={"trace": trace, "why": str(exc)})
                self._stop.wait(RETRY_S)
        self._spool.forget()
        return count

    def _run(self) -> None:
        while not self._stop.wait(POLL_S):
            try:
                self.step()
            except Exception:
                _log.exception("intake of traces")


def require_token(host: str, token: str) -> None:
    """Raises if senders on other machines would need no token."""
    if not token and host not in ("127.0.0.1", "::1", "localhost"):
        raise NotAllowedError(
            f"anybody who reaches {host} could write into this store",
            kind="no-keys",
            hint="set WAKELOG_OTEL_TOKEN, and give senders the same token",
        )


def run_intake(app: TraceIntake, sock: socket.socket) -> None:
    """Serves until SIGTERM or SIGINT."""
    _server(app).run([sock])


def _server(app: TraceIntake) -> uvicorn.Server:
    return uvicorn.Server(uvicorn_config(app, lifespan="off", limit_concurrency=REQUESTS_MAX))


@contextlib.contextmanager
def intake_running(app: TraceIntake, *, port: int = 0) -> Iterator[str]:
    """Runs a receiver in a thread and yields its address. For notebooks and tests."""
    sock = listen("127.0.0.1", port)
    with run_in_thread(_server(app), sock, "wakelog otel serve"):
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
