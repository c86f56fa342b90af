"""From a request to an answer: an ASGI application over the table of routes.

The checks come in this order: host and origin, route, key, scope, rate, query and body. Then the verb runs in a thread,
and its answer is sent as JSON or MessagePack. Every error is answered as a problem (problems.py).
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

import msgspec

from wakelog import __version__
from wakelog.engines.remote.wire import PROBLEM
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.http import problems
from wakelog.http.keys import Key
from wakelog.http.namespaces import DEFAULT, Namespace
from wakelog.http.page import ENTER, LEAVE, PageRoutes
from wakelog.http.request import GoneError, Request, decode_query, receive_body
from wakelog.http.response import Rendered, render, send_answer
from wakelog.http.routes import Route, RouteTree, VerbRequest, all_routes
from wakelog.http.shares import ShareGrant
from wakelog.http.state import Server

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("wakelog.http")


class App:
    """The application. `server` holds everything that outlives a request."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._tree = RouteTree(all_routes())
        self._page = PageRoutes(server.tickets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope, receive), send)
        else:
            raise ValueError(f"this application answers http, not {scope['type']}")  # as ASGI asks of applications

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.server.run(self.server.spaces.get, DEFAULT)
        except WakelogError as exc:
            await send({"type": "lifespan.startup.failed", "message": exc.message})
            return
        noting = asyncio.create_task(self._note_key_use())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        noting.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.server.close)
        await send({"type": "lifespan.shutdown.complete"})

    async def _note_key_use(self) -> None:
        while True:
            await asyncio.sleep(60)
            try:
                await self.server.run(self.server.keys.note_use)
            except WakelogError as exc:
                _log.warning("keys", extra={"error": exc.message})

    async def _answer(self, request: Request, send: Send) -> None:
        began = time.perf_counter()
        record = _AccessRecord(request)
        headers = {"x-request-id": record.id, **self._cross_origin(request)}
        try:
            answer = await self._handle(request, record)
        except WakelogError as exc:
            answer = _render_problem(exc, record)
        except GoneError:
            record.status = 499
            self._log_request(record, began)
            return
        except Exception as exc:
            _log.exception("fault", extra={"request": record.id})
            answer = _render_problem(
                WakelogError(f"an internal error of the server: {type(exc).__name__}", kind="fault"), record
            )
        answer.headers.update(headers)
        record.status = answer.status
        try:
            await send_answer(answer, request, send, self.server)
        finally:
            self._log_request(record, began)

    async def _handle(self, request: Request, record: _AccessRecord) -> Rendered:
        server = self.server
        if request.repeated:
            raise InvalidInputError(f"the header {request.repeated} is sent twice", kind="bad-request")
        server.host_guard.check(request.host, request.origin)
        if (page := await self._answer_page(request, record)) is not None:
            return page
        route, names, space_name = self._find_route(request, record)
        if request.method == "OPTIONS":
            return Rendered(204, {"access-control-max-age": "600"})
        key = await self._authenticate(request, route)
        record.key = key.id if key else ""
        space = await self._find_space(route, key, space_name)
        record.space = space.name if space else ""
        if server.is_stopping:
            raise problems.stopping()
        call = VerbRequest(server, route, key or _NOBODY, space, names, request.headers)
        with server.bodies.hold(call.who) as bodies:
            inputs = await self._decode_inputs(call, request, bodies)
            # Take the slot only after the body has arrived, so that slow senders do not block other requests.
            try:
                slot = (server.tails if route.waits else server.slots).hold(call.who, 1)
            except BaseException:
                _close_body(inputs)
                raise
            with slot, server.metrics.pending.track_inprogress():
                return await self._perform(call, request, inputs)

    async def _decode_inputs(self, call: VerbRequest, request: Request, bodies: ShareGrant) -> dict[str, Any]:
        """The verb's `query` and `body`, decoded."""
        route, server = call.route, self.server
        inputs: dict[str, Any] = {}
        if route.query is not None:
            inputs["query"] = decode_query(request.query, route.query)
        elif request.query:
            raise InvalidInputError("this route takes no query", kind="bad-request")
        if route.body is not None:
            with server.arrivals.hold(call.who, 1):
                inputs["body"] = await receive_body(request, route, server, call.who, bodies)
        return inputs

    async def _perform(self, call: VerbRequest, request: Request, inputs: dict[str, Any]) -> Rendered:
        route, limit_s = call.route, self.server.settings.answer_s
        if route.is_async:
            return render(await route.verb(call, **inputs), route, request)
        # Acquired once: by the thread that starts the verb, or by the timeout. If the timeout wins, the verb never
        # runs, so "busy" can promise that nothing was done.
        claim = threading.Lock()

        def work() -> Rendered | None:
            return _run_verb(call, request, inputs) if claim.acquire(blocking=False) else None

        try:
            async with asyncio.timeout(limit_s):
                answer = await call.run(work)
                assert answer is not None
                return answer
        except TimeoutError:
            if not claim.acquire(blocking=False):
                raise problems.too_slow(limit_s) from None
            _close_body(inputs)
            raise problems.busy() from None

    def _find_route(self, request: Request, record: _AccessRecord) -> tuple[Route, dict[str, str], str]:
        """The route, the names in its path, and the namespace that the path names, if any."""
        try:
            segments = [unquote(part, errors="strict") for part in request.path.split("/")[1:]]
        except UnicodeDecodeError:
            raise problems.no_route("a path that is not text") from None
        space = ""
        if len(segments) > 2 and segments[0] == "ns" and segments[1]:
            space, segments = segments[1], segments[2:]
        found = self._tree.find(segments)
        if found is None or (space and any(r.reach != "space" for r in found[0].values())):
            raise problems.no_route(unquote(request.path, errors="replace")[:200])
        routes, values = found
        allowed = ", ".join(sorted(routes))
        record.allow = allowed
        method = request.asked_method if request.method == "OPTIONS" else request.method
        route = routes.get(method)
        if route is None:
            raise problems.no_method(method, request.path[:200], allowed)
        record.route = route.full_path
        return route, dict(zip(route.names, values, strict=True)), space

    async def _answer_page(self, request: Request, record: _AccessRecord) -> Rendered | None:
        """The answer if the request is for the web page; None if it is for the API."""
        page = self._page
        if request.method == "POST" and request.path in (ENTER, LEAVE):
            record.route = request.path
            if request.path == LEAVE:
                return page.answer_leave(request)
            token = page.tickets.take(page.token_of(request))
            record.key = (await self._find_key(request, token)).id
            return page.answer_enter(request, token)
        rendered = page.find_file(request)
        if rendered is not None:
            record.route = "page"
        return rendered

    async def _authenticate(self, request: Request, route: Route) -> Key | None:
        if route.reach == "anyone":
            return None
        return await self._find_key(request, self._page.token_of(request))

    async def _find_key(self, request: Request, token: str) -> Key:
        server = self.server
        now = server.clock()
        if not token:
            raise problems.key_missing()
        await server.refresh_keys(token)
        key = server.keys.find(token, now)
        if key is None:
            # Failures are counted by address, which others may share. So a valid key is never limited by them.
            if wait := server.failures.take(request.address):
                raise problems.too_many(wait)
            raise problems.key_refused()
        if wait := server.rates.take(key.id):
            raise problems.too_many(wait)
        return key

    async def _find_space(self, route: Route, key: Key | None, name: str) -> Namespace | None:
        if route.reach == "anyone":
            return None
        assert key is not None
        if route.reach == "server":
            if not key.sees_all:
                raise problems.scope_missing(route.scope, key.scope, "")
            return None
        wanted = name or (key.namespaces[0] if len(key.namespaces) == 1 and not key.sees_all else DEFAULT)
        if not key.sees(wanted):
            raise problems.no_space(wanted)
        if not key.may(route.scope):
            raise problems.scope_missing(route.scope, key.scope, wanted)
        create = route.scope != "read"
        spaces = self.server.spaces
        namespace = spaces.find(wanted)
        return namespace or await self.server.run(lambda: spaces.get(wanted, create=create))

    def _cross_origin(self, request: Request) -> dict[str, str]:
        """The CORS headers for a page of a trusted origin."""
        if not request.origin or request.origin.lower() not in self.server.host_guard.origins:
            return {}
        headers = {
            "access-control-allow-origin": request.origin,
            "access-control-expose-headers": "etag, retry-after, x-request-id",
            "vary": "origin",
        }
        if request.method == "OPTIONS":
            headers["access-control-allow-methods"] = "GET, POST, DELETE"
            headers["access-control-allow-headers"] = "authorization, content-type, if-none-match, last-event-id"
        return headers

    def _log_request(self, record: _AccessRecord, began: float) -> None:
        took = time.perf_counter() - began
        self.server.metrics.count_request(record.method, record.route, record.status, took)
        if record.refused:
            self.server.metrics.refused.labels(record.refused).inc()
        if _log.isEnabledFor(logging.INFO):
            _log.info("request", extra={**record.fields(), "ms": round(took * 1000, 2)})


_NOBODY = Key("", "nobody", "", "read", (), 0)


class _AccessRecord:
    """What the log says about a request: never its content or its key."""

    __slots__ = ("address", "allow", "id", "key", "method", "refused", "route", "space", "status")

    def __init__(self, request: Request) -> None:
        x_request_id = request.headers.get("x-request-id", "")
        self.id = x_request_id if _REQUEST_ID.fullmatch(x_request_id) else secrets.token_hex(8)
        self.method = request.method if request.method in _METHODS else "other"
        self.address = request.address
        self.route = self.key = self.space = self.allow = self.refused = ""
        self.status = 0

    def fields(self) -> dict[str, Any]:
        names = ("id", "method", "route", "status", "space", "key", "address", "refused")
        return {("request" if n == "id" else n): getattr(self, n) for n in names if getattr(self, n)}


_METHODS = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"})


def _run_verb(call: VerbRequest, request: Request, inputs: dict[str, Any]) -> Rendered:
    """Runs the verb and encodes its answer. If the caller has the answer already (ETag), the verb does not run."""
    tag = _etag(call, request, inputs) if call.route.by_head else ""
    if tag and tag in request.headers.get("if-none-match", ""):
        return Rendered(304, {"etag": tag})
    try:
        answer = render(call.route.verb(call, **inputs), call.route, request)
    except OverflowError as exc:
        raise InvalidInputError("a number is larger than the store can hold", kind="bad-request") from exc
    if tag:
        answer.headers |= {"etag": tag, "cache-control": "private, no-cache", "vary": "accept"}
    return answer


def _close_body(inputs: dict[str, Any]) -> None:
    """Closes the file of a body that no verb will read."""
    body = inputs.get("body")
    if body is not None and hasattr(body, "close"):
        body.close()


def _etag(call: VerbRequest, request: Request, inputs: dict[str, Any]) -> str:
    """An ETag from the session's head. Everything that changes a session moves its head."""
    query = inputs.get("query")
    if query is not None and not query.is_fixed_by_head():
        return ""
    head = call.head()
    form = "m" if request.wants_msgpack else "n" if request.wants_ndjson else "j"
    return f'"{head.seq}-{head.hash.hex()[:16]}-{__version__}{form}"'


def _render_problem(error: WakelogError, record: _AccessRecord) -> Rendered:
    problem = problems.problem(error)
    headers = {"content-type": PROBLEM}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    if problem.status == 405:
        headers["allow"] = record.allow
    if problem.status == 429 or problem.kind in ("server-busy", "server-stopping"):
        headers["retry-after"] = "1"
    if problem.kind in problems.KINDS:
        record.refused = problem.kind
    return Rendered(problem.status, headers, msgspec.json.encode(problem))
