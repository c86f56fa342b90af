"""The recording proxy over Streamable HTTP: requests and answers pass unchanged, and streams without delay.

Only three things differ: hop-by-hop headers, the Host of a request, and no compression, so that the traffic can be
read.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from wakelog.codec.lines import TOO_LONG, ServerSentEvents
from wakelog.errors import missing_extra
from wakelog.mcp.frames import frames_of
from wakelog.mcp.recorder import TrafficRecorder

if TYPE_CHECKING:
    import httpx2

BODY_MAX = 64 << 20
_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade".split()
)
_OURS = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})

Headers = list[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class HttpProxy:
    """An ASGI application in front of one MCP endpoint."""

    def __init__(self, url: str, recorder: TrafficRecorder) -> None:
        self._url = urlsplit(url)
        self._recorder = recorder
        self._client = _client()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._forward(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                # Close here: after this answer, a server that was stopped by a signal exits at once.
                await self._client.aclose()
                await anyio.to_thread.run_sync(self._recorder.close)
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _forward(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        import httpx2

        body = await _body(receive)
        if body is None:
            await _answer(send, 413, b"the request is too large for the proxy")
            return
        headers = self._request_headers(scope["headers"])
        session = _header(headers, b"mcp-session-id")
        conversation = session or secrets.token_hex(8)
        for frame in frames_of(body) if body else ():
            self._recorder.add_frame("client", frame, scope=conversation)
        # Built here, because the client would add its own headers.
        request = httpx2.Request(scope["method"], self._target(scope), headers=headers, content=body or None)
        try:
            await _until_disconnect(receive, lambda: self._exchange(request, conversation, send))
        finally:
            # In a session, the answer to a call may still come on another stream. Without one, it cannot come any more.
            if not session or scope["method"] == "DELETE":
                self._recorder.end_conversation(conversation)

    async def _exchange(self, request: httpx2.Request, conversation: str, send: Send) -> None:
        import httpx2

        try:
            response = await self._client.send(request, stream=True)
        except httpx2.HTTPError as exc:
            await _answer(send, 502, f"the server at {self._url.netloc} did not answer: {exc!r}".encode())
            return
        try:
            await self._stream(response, conversation, send)
        except httpx2.HTTPError:
            # The server broke off. An unfinished answer makes our server break off too, as the client should see.
            return
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _stream(self, response: httpx2.Response, conversation: str, send: Send) -> None:
        headers = [(k.lower(), v) for k, v in response.headers.raw if k.lower() not in _HOP]
        name = _header(headers, b"mcp-session-id")
        if name and name != conversation:
            self._recorder.rename_conversation(conversation, name)
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        is_stream = b"text/event-stream" in _raw_header(headers, b"content-type")
        events, whole = ServerSentEvents(lambda: self._recorder.note_skipped(TOO_LONG)), bytearray()
        async for chunk in response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if is_stream:
                for data in events.feed(chunk):
                    self._record(data, conversation)
            elif len(whole) <= BODY_MAX:
                whole += chunk
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if len(whole) > BODY_MAX:
            self._recorder.note_skipped(f"an answer of more than {BODY_MAX:,} bytes")
        elif whole:
            self._record(bytes(whole), conversation)

    def _record(self, text: bytes, conversation: str) -> None:
        for frame in frames_of(text):
            self._recorder.add_frame("server", frame, scope=conversation)

    def _target(self, scope: dict[str, Any]) -> str:
        """The address at the endpoint, with the client's path and query."""
        query = scope.get("query_string", b"").decode("latin-1")
        path = self._url.path if scope["path"] in ("", "/") else scope["path"]
        return f"{self._url.scheme}://{self._url.netloc}{path}" + (f"?{query}" if query else "")

    def _request_headers(self, given: Iterable[tuple[bytes, bytes]]) -> Headers:
        ours = _HOP | {b"accept-encoding", b"content-length"}
        # White space around a value is not part of it (RFC 9110, section 5.5), and a client must not send it.
        headers = [(k, v.strip(b" \t")) for k, v in given if k not in ours]
        host = urlsplit(f"//{_header(headers, b'host')}").hostname or ""
        if host in _OURS:
            # The proxy's own host. Any other is forwarded as it is: the server decides whether to accept it.
            headers = [(k, self._url.netloc.encode() if k == b"host" else v) for k, v in headers]
        return [*headers, (b"accept-encoding", b"identity")]


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    return _raw_header(headers, name).decode("latin-1")


def _raw_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((v for k, v in headers if k == name), b"")


async def _until_disconnect(receive: Receive, exchange: Callable[[], Awaitable[None]]) -> None:
    """Runs an exchange until it is over or the client disconnects. Then the connection to the server is closed too:
    otherwise a stream without a reader would stay open."""
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        await exchange()
        group.cancel_scope.cancel()


async def _body(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_MAX:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _answer(send: Send, status: int, text: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def _client() -> httpx2.AsyncClient:
    try:
        import httpx2
    except ImportError as exc:
        raise missing_extra("the HTTP proxy needs httpx2", "mcp") from exc
    return httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=10.0), follow_redirects=False)
