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
from wakelog.engines.remote.wire import JSON, MSGPACK, PROBLEM
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.http import problems
from wakelog.http.keys import Key
from wakelog.http.namespaces import DEFAULT, Namespace
from wakelog.http.page import ENTER, LEAVE, PageDoor
from wakelog.http.request import GoneError, Request, decode_query, take_body
from wakelog.http.response import Rendered, rendered, send_answer
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
        self._page = PageDoor(server.tickets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope, receive), send)
        else:
            raise NotImplementedError(f"{scope['type']} is not supported")

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.server.run(self.server.spaces.get, DEFAULT)
        except WakelogError as exc:
            await send({"type": "lifespan.startup.failed", "message": exc.message})
            return
        keeping = asyncio.create_task(self._keep_notes())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        keeping.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.server.close)
        await send({"type": "lifespan.shutdown.complete"})

    async def _keep_notes(self) -> None:
        while True:
            await asyncio.sleep(60)
            try:
                await self.server.run(self.server.keys.note_use)
            except WakelogError as exc:
                _log.warning("keys", extra={"error": exc.message})

    async def _answer(self, request: Request, send: Send) -> None:
        began = time.perf_counter()
        told = _Told(request)
        headers = {"x-request-id": told.id, **self._cross_origin(request)}
        try:
            answer = await self._handle(request, told)
        except WakelogError as exc:
            answer = _as_problem(exc, told)
        except GoneError:
            told.status = 499
            self._note(told, began)
            return
        except Exception as exc:
            _log.exception("fault", extra={"request": told.id})
            answer = _as_problem(
                WakelogError(f"an internal error of the server: {type(exc).__name__}", kind="fault"), told
            )
        answer.headers.update(headers)
        told.status = answer.status
        try:
            await send_answer(answer, request, send, self.server)
        finally:
            self._note(told, began)

    # Step by step

    async def _handle(self, request: Request, told: _Told) -> Rendered:
        server = self.server
        if request.twice:
            raise InvalidInputError(f"the header {request.twice} is given twice", kind="bad-request")
        server.doors.check(request.host, request.origin)
        if (page := await self._page_answer(request, told)) is not None:
            return page
        route, names, space_name = self._find(request, told)
        if request.method == "OPTIONS":
            return Rendered(204, {"access-control-max-age": "600"})
        key = await self._authenticate(request, route)
        told.key = key.id if key else ""
        space = await self._space(route, key, space_name)
        told.space = space.name if space else ""
        if server.is_stopping:
            raise problems.stopping()
        call = VerbRequest(server, route, key or _NOBODY, space, names, request.headers)
        with server.bodies.hold(call.who) as bodies:
            given = await self._take(call, request, bodies)
            # Only now: who sends slowly must not keep others from being answered.
            with (server.tails if route.waits else server.slots).hold(call.who) as slot:
                try:
                    slot.add(1)
                except BaseException:
                    _let_go(given)
                    raise
                server.metrics.pending.inc()
                try:
                    return await self._perform(call, request, given)
                finally:
                    server.metrics.pending.dec()

    async def _take(self, call: VerbRequest, request: Request, bodies: ShareGrant) -> dict[str, Any]:
        """What the verb is given: the query and the body, decoded."""
        route, server = call.route, self.server
        given: dict[str, Any] = {}
        if route.query is not None:
            given["query"] = decode_query(request.query, route.query)
        elif request.query:
            raise InvalidInputError("this route takes no query", kind="bad-request")
        if route.body is not None:
            with server.arrivals.hold(call.who) as arrival:
                arrival.add(1)
                given["body"] = await take_body(request, route, server, call.who, bodies)
        return given

    async def _perform(self, call: VerbRequest, request: Request, given: dict[str, Any]) -> Rendered:
        route, limit_s = call.route, self.server.settings.answer_s
        if route.is_async:
            return rendered(await route.verb(call, **given), route, request)
        # Taken once: by the thread that begins, or by the caller's patience. Who was told that nothing was done is told
        # the truth, also when a thread comes to it later.
        claim = threading.Lock()

        def work() -> Rendered | None:
            return _work(call, request, given) if claim.acquire(blocking=False) else None

        try:
            async with asyncio.timeout(limit_s):
                answer = await call.run(work)
                assert answer is not None
                return answer
        except TimeoutError:
            if not claim.acquire(blocking=False):
                raise problems.too_slow(limit_s) from None
            _let_go(given)
            raise problems.busy() from None

    def _find(self, request: Request, told: _Told) -> tuple[Route, dict[str, str], str]:
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
        told.allow = allowed
        method = request.asked_method if request.method == "OPTIONS" else request.method
        route = routes.get(method)
        if route is None:
            raise problems.no_method(method, request.path[:200], allowed)
        told.route = route.full_path
        return route, dict(zip(route.names, values, strict=True)), space

    async def _page_answer(self, request: Request, told: _Told) -> Rendered | None:
        """The answer to what the page asks beside the API; None: it is the API's to answer."""
        page = self._page
        if request.method == "POST" and request.path in (ENTER, LEAVE):
            told.route = request.path
            if request.path == LEAVE:
                return page.left(request)
            token = page.tickets.take(page.token_of(request))
            told.key = (await self._key(request, token)).id
            return page.entered(request, token)
        found = page.file(request)
        if found is not None:
            told.route = "page"
        return found

    async def _authenticate(self, request: Request, route: Route) -> Key | None:
        if route.reach == "anyone":
            return None
        return await self._key(request, self._page.token_of(request))

    async def _key(self, request: Request, token: str) -> Key:
        server = self.server
        now = server.clock()
        if not token:
            raise problems.key_missing()
        await server.look_for_keys(token)
        key = server.keys.find(token, now)
        if key is None:
            # Counted by address, which others may share: so a valid key is never kept waiting for it.
            if wait := server.failures.take(request.address):
                raise problems.too_many(wait)
            raise problems.key_refused()
        if wait := server.rates.take(key.id):
            raise problems.too_many(wait)
        return key

    async def _space(self, route: Route, key: Key | None, name: str) -> Namespace | None:
        if route.reach == "anyone":
            return None
        assert key is not None
        if route.reach == "server":
            if not key.sees_all:
                raise problems.scope_missing("read for all namespaces", f"{key.scope} for some")
            return None
        wanted = name or (key.namespaces[0] if len(key.namespaces) == 1 and not key.sees_all else DEFAULT)
        if not key.sees(wanted):
            raise problems.no_space(wanted)
        if not key.may(route.scope):
            raise problems.scope_missing(route.scope, key.scope)
        create = route.scope != "read"
        spaces = self.server.spaces
        found = spaces.find(wanted)
        return found or await self.server.run(lambda: spaces.get(wanted, create=create))

    # Telling

    def _cross_origin(self, request: Request) -> dict[str, str]:
        """What a browser needs to hand an answer to a page of another, trusted origin."""
        if not request.origin or request.origin.lower() not in self.server.doors.origins:
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

    def _note(self, told: _Told, began: float) -> None:
        took = time.perf_counter() - began
        self.server.metrics.note(told.method, told.route, told.status, took)
        if told.refused:
            self.server.metrics.refused.labels(told.refused).inc()
        if _log.isEnabledFor(logging.INFO):
            _log.info("request", extra={**told.fields(), "ms": round(took * 1000, 2)})


_NOBODY = Key("", "nobody", "", "read", (), 0)


class _Told:
    """What is noted about a request: never its content, nor its key."""

    __slots__ = ("address", "allow", "id", "key", "method", "refused", "route", "space", "status")

    def __init__(self, request: Request) -> None:
        given = request.headers.get("x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        self.method = request.method if request.method in _METHODS else "other"
        self.address = request.address
        self.route = self.key = self.space = self.allow = self.refused = ""
        self.status = 0

    def fields(self) -> dict[str, Any]:
        names = ("id", "method", "route", "status", "space", "key", "address", "refused")
        return {("request" if n == "id" else n): getattr(self, n) for n in names if getattr(self, n)}


_METHODS = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"})


def _work(call: VerbRequest, request: Request, given: dict[str, Any]) -> Rendered:
    """A verb and its answer's bytes; nothing at all when the caller has it already."""
    tag = _tag(call, request, given) if call.route.by_head else ""
    if tag and tag in request.headers.get("if-none-match", ""):
        return Rendered(304, {"etag": tag})
    try:
        answer = rendered(call.route.verb(call, **given), call.route, request)
    except OverflowError as exc:
        raise InvalidInputError("a number is larger than the store can hold", kind="bad-request") from exc
    if tag:
        answer.headers |= {"etag": tag, "cache-control": "private, no-cache", "vary": "accept"}
    return answer


def _let_go(given: dict[str, Any]) -> None:
    """Closes a body that no verb will read."""
    body = given.get("body")
    if body is not None and hasattr(body, "close"):
        body.close()


def _tag(call: VerbRequest, request: Request, given: dict[str, Any]) -> str:
    """Names the answer by the head it was made on. Everything that changes a session moves its head."""
    query = given.get("query")
    if query is not None and not query.fixed():
        return ""
    head = call.head()
    form = "m" if request.wants_msgpack else "n" if request.wants_ndjson else "j"
    return f'"{head.seq}-{head.hash.hex()[:16]}-{__version__}{form}"'


def _as_problem(error: WakelogError, told: _Told) -> Rendered:
    problem = problems.problem(error)
    headers = {"content-type": PROBLEM}
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    if problem.status == 405:
        headers["allow"] = told.allow
    if problem.status == 429 or problem.kind in ("server-busy", "server-stopping"):
        headers["retry-after"] = "1"
    if problem.kind in problems.KINDS:
        told.refused = problem.kind
    return Rendered(problem.status, headers, msgspec.json.encode(problem))


__all__ = ["JSON", "MSGPACK", "App"]
