"""Our server with one fault each: the application wrapped, so that requests or answers are a little wrong.

A fault is a coroutine that is given the request and a way to pass it on. It returns the answer, or None to let the
request through as it is; of tails it can change the request only.
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


class Asked(msgspec.Struct):
    """A request, whole."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: object) -> "Asked":
        body = json.dumps(value).encode()
        return msgspec.structs.replace(self, body=body, headers={**self.headers, "content-length": str(len(body))})

    @property
    def is_append(self) -> bool:
        return self.method == "POST" and self.path.endswith("/events")


class Given(msgspec.Struct):
    """An answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def with_json(self, value: object) -> "Given":
        return msgspec.structs.replace(self, body=json.dumps(value).encode())


Pass = Callable[[Asked], Awaitable[Given]]
Fault = Callable[[Asked, Pass], Awaitable[Given | Asked | None]]


class Broken:
    """The application with the fault that is set; without one it is as it should be."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.fault: Fault | None = None
        self.keys: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or self.fault is None:
            await self.app(scope, receive, send)
            return
        asked = await self._asked(scope, receive)
        found = await self.fault(asked, lambda changed: self._whole(scope, changed))
        if isinstance(found, Given):
            headers = {**found.headers, "content-length": str(len(found.body))}
            raw = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": found.status, "headers": raw})
            await send({"type": "http.response.body", "body": found.body})
        else:
            await self.app(*self._again(scope, found or asked, receive), send)

    async def _asked(self, scope: Scope, receive: Any) -> Asked:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        return Asked(scope["method"], scope["raw_path"].decode(), query, headers, body)

    def _again(self, scope: Scope, asked: Asked, receive: Any = None) -> tuple[Scope, Any]:
        bodies = [{"type": "http.request", "body": asked.body}]

        async def give() -> Any:
            if bodies:
                return bodies.pop()
            if receive is not None:
                return await receive()
            return await asyncio.Event().wait()

        changed = {
            **scope,
            "query_string": urlencode(asked.query).encode(),
            "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in asked.headers.items()],
        }
        return changed, give

    async def _whole(self, scope: Scope, asked: Asked) -> Given:
        found = Given(0, {}, b"")

        async def take(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                found.status = message["status"]
                found.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                found.body += message.get("body", b"")

        await self.app(*self._again(scope, asked), take)
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
