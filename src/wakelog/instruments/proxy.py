"""The recording proxy for model APIs: listens on loopback, in front of the providers, while a command runs.

Requests and answers pass unchanged, streams as they come. Only these differ: hop-by-hop headers, the Host, and that
providers are asked for answers without compression. An answer that is compressed all the same is decoded to record it.
Only the bodies of model calls and their answers
are recorded; never a header or a query, which hold keys. The traffic never waits for the store.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import msgspec
import urllib3

from wakelog.codec.lines import TOO_LONG, ServerSentEvents
from wakelog.errors import UnsupportedError
from wakelog.instruments.compressed_body import decoded_body, stream_decoder
from wakelog.instruments.endpoints import Endpoints
from wakelog.instruments.model_request import read_request, shape_of
from wakelog.instruments.recorder import ConversationRecorder, PassingCall
from wakelog.model.events import Failure
from wakelog.model.json_fields import as_dict, text_in
from wakelog.runtime.streams import StreamRecord

BODY_MAX = 64 << 20
"""A larger answer is passed on but not recorded, and so is a request that decodes to more."""
PIECE = 1 << 16
_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "expect"),
    }
)
_LAST = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})
"""Events after which a client may stop reading."""
_RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class ModelProxy:
    """Listens on a loopback port while it is open."""

    def __init__(self, endpoints: Endpoints, recorder: ConversationRecorder) -> None:
        handler = type(
            "Handler", (_Exchange,), {"endpoints": endpoints, "recorder": recorder, "upstreams": _Upstreams()}
        )
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="wakelog proxy", daemon=True
        )
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that disconnects is not an error


class _Upstreams:
    """Connections to the providers, through the proxy of the environment if there is one."""

    def __init__(self) -> None:
        self._how: dict[str, Any] = {"maxsize": 64, "retries": False, "ssl_context": ssl.create_default_context()}
        self._pools: dict[str, urllib3.PoolManager] = {"": urllib3.PoolManager(**self._how)}

    def for_url(self, url: str) -> urllib3.PoolManager:
        parts, proxies = urlsplit(url), urllib.request.getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
        if proxy and urllib.request.proxy_bypass(parts.hostname or ""):
            proxy = ""
        if proxy not in self._pools:
            self._pools[proxy] = urllib3.ProxyManager(proxy, **self._how)
        return self._pools[proxy]


class _Exchange(BaseHTTPRequestHandler):
    """One client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoints: ClassVar[Endpoints]
    recorder: ClassVar[ConversationRecorder]
    upstreams: ClassVar[_Upstreams]

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _forward(self) -> None:
        target = self.endpoints.target(self.path)
        if target is None:
            self._send_text(404, "this address belongs to a command that wakelog records")
            return
        if self.headers.get("upgrade"):
            self._tunnel(target)
            return
        body = self._body()
        call = self._begin_record(target, body)
        try:
            answer = self._send_request(target, body)
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            if call is not None:
                call.failed(exc)
            self._send_text(502, f"{urlsplit(target).netloc} did not answer: {exc!r}")
            return
        record = _AnswerRecord(call, self.recorder, answer)
        try:
            self._send_head(answer)
            while piece := answer.read1(PIECE, decode_content=False):
                record.take(piece)  # first, so that what the client does next is recorded later
                self._send(piece)
        except (urllib3.exceptions.HTTPError, http.client.HTTPException) as exc:
            record.broke(exc)
            self.close_connection = True  # an incomplete answer, as it came to us
        except OSError:
            record.left()
            self.close_connection = True
            raise
        else:
            record.ended()
            if self._is_chunked:
                self.wfile.write(b"0\r\n\r\n")
        finally:
            answer.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _forward

    # The request

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = bytearray()
        while size := int(self.rfile.readline(1024).partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline(1024)
        while self.rfile.readline(65537).strip():
            pass
        return bytes(body)

    def _begin_record(self, target: str, body: bytes) -> PassingCall | None:
        path = urlsplit(target).path
        if self.command != "POST" or shape_of(path) is None:
            return None
        try:
            said = decoded_body(body, ",".join(self.headers.get_all("content-encoding", [])), BODY_MAX)
            request = read_request(path, msgspec.json.decode(said))
            return self.recorder.asked(request) if request is not None else None
        except UnsupportedError as exc:
            self.recorder.missed(exc.message)
            return None
        except Exception:  # whatever the body, the traffic must not be disturbed
            self.recorder.missed("a request that could not be read")
            return None

    def _send_request(self, target: str, body: bytes) -> urllib3.BaseHTTPResponse:
        headers = urllib3.HTTPHeaderDict()
        for name, value in self.headers.items():
            if name.lower() not in _HOP | {"host", "accept-encoding", "content-length"}:
                headers.add(name, value)
        headers.add("accept-encoding", "identity")
        if "user-agent" not in headers:
            headers.add("user-agent", urllib3.util.SKIP_HEADER)
        return self.upstreams.for_url(target).urlopen(
            self.command,
            target,
            body=body or (b"" if self.command in ("POST", "PUT", "PATCH") else None),
            headers=headers,
            preload_content=False,
            decode_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=30.0, read=None),
        )

    # The answer

    def _send_head(self, answer: urllib3.BaseHTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        has_body = self.command != "HEAD" and answer.status not in (204, 304)
        self._is_chunked = has_body and "content-length" not in answer.headers
        if self._is_chunked and self.request_version == "HTTP/1.0":
            self._is_chunked, self.close_connection = False, True
        if self._is_chunked:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def _send_text(self, status: int, text: str) -> None:
        data = text.encode()
        self.close_connection = True  # its body may be unread
        self.send_response_only(status)
        self.send_header("connection", "close")
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # Protocol upgrades

    def _tunnel(self, target: str) -> None:
        """Passes a connection that switches to another protocol through, unrecorded."""
        url = urlsplit(target)
        self.close_connection = True
        self.recorder.missed(f"a {self.headers.get('upgrade')} connection")
        try:
            there: socket.socket = socket.create_connection(
                (url.hostname or "", url.port or (443 if url.scheme == "https" else 80)), timeout=30
            )
            if url.scheme == "https":
                there = ssl.create_default_context().wrap_socket(there, server_hostname=url.hostname)
        except OSError as exc:
            self._send_text(502, f"{url.netloc} did not answer: {exc!r}")
            return
        there.settimeout(None)
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        lines = [f"{self.command} {path} HTTP/1.1", f"host: {url.netloc}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items() if name.lower() != "host"]
        with there:
            there.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
            up = threading.Thread(target=_copy, args=(self.connection, there), daemon=True)
            up.start()
            _copy(there, self.connection)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _AnswerRecord:
    """Records an answer as it passes. Nothing here raises."""

    def __init__(
        self, call: PassingCall | None, recorder: ConversationRecorder, answer: urllib3.BaseHTTPResponse
    ) -> None:
        self._call = call
        self._recorder = recorder
        self._status = answer.status
        self._whole = bytearray()
        self._length = answer.headers.get("content-length", "")
        self._events = ServerSentEvents(lambda: self._give_up(TOO_LONG))
        is_stream = "text/event-stream" in answer.headers.get("content-type", "")
        self._stream: StreamRecord | None = call.stream() if call is not None and is_stream else None
        self._encodings = answer.headers.get("content-encoding", "")
        try:
            self._decode = stream_decoder(self._encodings if is_stream else "", BODY_MAX)
        except UnsupportedError as exc:
            self._give_up(exc.message)

    def take(self, piece: bytes) -> None:
        if self._call is None:
            return
        if self._stream is None:
            self._whole += piece
            if len(self._whole) > BODY_MAX:
                self._give_up(f"an answer of more than {BODY_MAX:,} bytes")
            elif str(len(self._whole)) == self._length:
                self.ended()
            return
        try:
            for data in self._events.feed(self._decode(piece)):
                part = None if data.strip() == b"[DONE]" else msgspec.json.decode(data)
                if part is not None:
                    self._stream.take(part)
                if part is None or (isinstance(part, dict) and part.get("type") in _LAST):
                    self.ended()
        except Exception:  # not what its content type says
            self._give_up("a stream that could not be read")

    def ended(self) -> None:
        call = self._call
        if call is not None:
            self._end(call)
            if self._recorder.holds_answers:
                self._recorder.writer.wait(call.last)

    def _end(self, call: PassingCall) -> None:
        if self._stream is not None:
            self._stream.ended()()
            return
        try:
            said = msgspec.json.decode(decoded_body(bytes(self._whole), self._encodings, BODY_MAX))
            if self._status >= 400:
                call.refused(_failure(self._status, said))
            elif isinstance(said, list):  # Google's stream without server-sent events
                stream = call.stream()
                for part in said:
                    stream.take(part)
                stream.ended()()
            else:
                call.answered(said)
        except UnsupportedError as exc:
            self._give_up(exc.message)
        except Exception:
            self._give_up("an answer that could not be read")

    def broke(self, error: BaseException) -> None:
        if self._stream is not None:
            self._stream.broke(error)()
        elif self._call is not None:
            self._call.failed(error)

    def left(self) -> None:
        if self._stream is not None:
            self._stream.left()()
        elif self._call is not None:
            self._call.refused(Failure("abandoned", "its reader left before the answer was whole"))

    def _give_up(self, what: str) -> None:
        call, self._call, self._stream = self._call, None, None
        self._recorder.missed(what)
        if call is not None:
            call.refused(Failure("not-read", f"{what} passed and could not be recorded"))


def _failure(status: int, said: Any) -> Failure:
    """The failure that a provider reports."""
    error = as_dict(as_dict(said).get("error"))
    name = next(filter(None, (text_in(error, field) for field in ("type", "status", "code"))), f"http-{status}")
    return Failure(name, f"{status}: {text_in(error, 'message')}"[:2000], retryable=status in _RETRYABLE)
