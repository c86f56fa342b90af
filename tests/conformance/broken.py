"""Our server with one fault at a time: a wrapper around the application that changes requests or answers.

A fault is a coroutine that gets the request and a function that forwards it. It returns an answer, a changed request,
or None to pass the request on unchanged. For tails it can only change the request.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
import uvicorn

from wakelog.http.app import App
from wakelog.http.keys import make_key
from wakelog.http.server import listen
from wakelog.http.state import Server, Settings

Scope = MutableMapping[str, Any]


class WholeRequest(msgspec.Struct):
    """A request with its complete body."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: object) -> "WholeRequest":
        body = json.dumps(value).encode()
        return msgspec.structs.replace(self, body=body, headers={**self.headers, "content-length": str(len(body))})

    @property
    def is_append(self) -> bool:
        return self.method == "POST" and self.path.endswith("/events")


class WholeAnswer(msgspec.Struct):
    """An answer with its complete body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: object) -> "WholeAnswer":
        return msgspec.structs.replace(self, body=json.dumps(value).encode())


Forward = Callable[[WholeRequest], Awaitable[WholeAnswer]]
Fault = Callable[[WholeRequest, Forward], Awaitable[WholeAnswer | WholeRequest | None]]


class Broken:
    """The application with the fault that is set; without one it works correctly."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.fault: Fault | None = None
        self.keys: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or self.fault is None:
            await self.app(scope, receive, send)
            return
        request = await self._read_request(scope, receive)
        found = await self.fault(request, lambda changed: self._forward(scope, changed))
        if isinstance(found, WholeAnswer):
            headers = {**found.headers, "content-length": str(len(found.body))}
            raw = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": found.status, "headers": raw})
            await send({"type": "http.response.body", "body": found.body})
        else:
            await self.app(*self._replay(scope, found or request, receive), send)

    async def _read_request(self, scope: Scope, receive: Any) -> WholeRequest:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        return WholeRequest(scope["method"], scope["raw_path"].decode(), query, headers, body)

    def _replay(self, scope: Scope, request: WholeRequest, receive: Any = None) -> tuple[Scope, Any]:
        bodies = [{"type": "http.request", "body": request.body}]

        async def give() -> Any:
            if bodies:
                return bodies.pop()
            if receive is not None:
                return await receive()
            return await asyncio.Event().wait()

        changed = {
            **scope,
            "query_string": urlencode(request.query).encode(),
            "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in request.headers.items()],
        }
        return changed, give

    async def _forward(self, scope: Scope, request: WholeRequest) -> WholeAnswer:
        found = WholeAnswer(0, {}, b"")

        async def take(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                found.status = message["status"]
                found.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                found.body += message.get("body", b"")

        await self.app(*self._replay(scope, request), take)
        return found


class Serving(msgspec.Struct):
    url: str
    key: str
    other_key: str
    broken: Broken


@contextmanager
def serving_broken(url: str) -> Iterator[Serving]:
    """A server in a thread whose fault can be set."""
    server = Server(Settings(url=url, rate=0))
    other, token = make_key("other", "admin", ("other",), now=1)
    server.keys._launch[other.id] = other
    broken = Broken(App(server))
    broken.keys = {"one": server.launch_token, "two": token}
    sock = listen("127.0.0.1", 0)
    running = uvicorn.Server(uvicorn.Config(broken, log_config=None, access_log=False, ws="none"))
    thread = threading.Thread(target=running.run, args=([sock],), daemon=True)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            thread.join(0.005)
        yield Serving(f"http://127.0.0.1:{sock.getsockname()[1]}", server.launch_token, token, broken)
    finally:
        server.stop()
        running.should_exit = True
        thread.join(180)
        sock.close()
