"""What a route is, and how a verb becomes one.

A verb is a plain function: it takes a `VerbRequest`, and, by name, the decoded `query` and `body`; what it returns is
encoded. The types are read from its annotations and its docstring is its documentation, so a route says everything
once. Where the fields of the query or body are the keywords of a verb of the library, `call.kwargs` passes them on:

    @route("GET", "/sessions/{session}/why", by_head=True)
    def why(call: VerbRequest, query: WhyQuery) -> Why:
        \"\"\"Shows where something came from.\"\"\"
        return call.session().why(**call.kwargs(query))

Verbs that are coroutines run on the event loop and must not block it; all others run in a thread.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from wakelog.http.keys import Key, Scope
from wakelog.http.shares import Requester
from wakelog.model.records import Head
from wakelog.session import Session
from wakelog.timeline.selectors import parse_time

if TYPE_CHECKING:
    from wakelog.http.namespaces import Namespace
    from wakelog.http.notifications import Notifications
    from wakelog.http.state import Server

T = TypeVar("T")
_TIMES = ("since", "until", "as_of", "known_at")
Method = Literal["GET", "POST", "DELETE"]
Reach = Literal["space", "server", "anyone"]


class Route(msgspec.Struct, frozen=True):
    """One method of one path, and all there is to know about it."""

    method: Method
    path: str
    """Names in braces match one segment each. The path of a route about a namespace starts after /v1."""
    scope: Scope
    verb: Callable[..., Any]
    query: type | None
    body: type | None
    """What the body decodes to. `IO[bytes]` is not decoded: the verb gets it as a file."""
    answer: Any
    media: str
    """The type of an answer that is not a struct: text/event-stream, application/x-ndjson …; else empty."""
    by_head: bool
    """The answer depends only on the session's head and the query, so it has an ETag."""
    status: int
    reach: Reach
    """Who it is about: one namespace; the whole server, for keys that see all of it; or anyone may ask."""
    waits: bool = False
    """It mostly waits for news, so it counts as a tail and not as a running request."""

    @property
    def name(self) -> str:
        return self.verb.__name__.removesuffix("_")

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.verb.__doc__ or "")

    @property
    def group(self) -> str:
        return self.verb.__module__.rpartition(".")[2].removesuffix("_")

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.verb)

    @property
    def takes_file(self) -> bool:
        return self.body == IO[bytes]

    @property
    def full_path(self) -> str:
        return f"/v1{self.path}" if self.reach == "space" else self.path

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


ROUTES: list[Route] = []
"""The table. Filled when wakelog.http.verbs is imported."""


class Raw(msgspec.Struct, frozen=True):
    """An answer that needs no encoding: bytes, or a file that is sent in pieces."""

    content: bytes | IO[bytes]
    media: str
    headers: dict[str, str] = {}


class VerbRequest(msgspec.Struct, frozen=True):
    """One request, as a verb sees it."""

    server: Server
    route: Route
    key: Key
    _space: Namespace | None
    path: Mapping[str, str]
    headers: Mapping[str, str]

    @property
    def space(self) -> Namespace:
        assert self._space is not None, "this route is not about a namespace"
        return self._space

    @property
    def hub(self) -> Notifications:
        return self.server.hub(self.space)

    @property
    def who(self) -> Requester:
        """Whose share of threads and other limited resources this request uses."""
        return Requester(self.key.id, self._space.name if self._space is not None else "")

    def run(self, function: Callable[..., T], *args: object) -> Awaitable[T]:
        """Runs a blocking function in a thread of the caller's share."""
        return self.server.work(self.who, function, *args)

    @property
    def now(self) -> int:
        return self.server.clock()

    def kwargs(self, struct: msgspec.Struct, **renamed: str) -> dict[str, Any]:
        """The fields of a query or body as keyword arguments; `renamed` maps a field to another keyword. Times are
        parsed, an empty `by` becomes the key's name, and other empty fields are left out, so that the verb's default
        applies."""
        results: dict[str, Any] = {}
        for field in msgspec.structs.fields(struct):
            value = getattr(struct, field.name)
            if value in ("", None, ()) and value == field.default and field.name != "by":
                continue
            if field.name in _TIMES:
                value = time_of(value, self.now)
            elif field.name == "by":
                value = value or self.key.name
            results[renamed.get(field.name, field.name)] = value
        return results

    def session(self) -> Session[Any]:
        """The session that the path names, by name, id, or the start of its id."""
        return self.space.session(self.path["session"])

    def head(self) -> Head:
        return self.space.head(self.path["session"])


def route(
    method: Method,
    path: str,
    *,
    scope: Scope = "read",
    by_head: bool = False,
    status: int = 200,
    media: str = "",
    reach: Reach = "space",
    waits: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a verb to the table."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        hints = typing.get_type_hints(verb)
        query, body, answer = hints.get("query"), hints.get("body"), hints["return"]
        ROUTES.append(Route(method, path, scope, verb, query, body, answer, media, by_head, status, reach, waits))
        return verb

    return add


def all_routes() -> tuple[Route, ...]:
    """The whole table, in the order of the reference page."""
    import wakelog.http.verbs  # noqa: F401 - fills it

    return tuple(ROUTES)


def time_of(text: str, now: int) -> int | None:
    """Parses a time in a query: microseconds, or as in selectors: "2h", "today", ISO 8601. None if it is empty."""
    if not text:
        return None
    if text.isdecimal() and len(text) <= 16:
        return int(text)
    return parse_time(text, now)


class RouteTree:
    """Finds the route of a path, segment by segment. A name in braces matches any segment; a literal segment wins."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._root: _Node = _Node()
        for each in routes:
            node = self._root
            for part in each.full_path.strip("/").split("/"):
                key = "{}" if part.startswith("{") else part
                node = node.below.setdefault(key, _Node())
            node.routes[each.method] = each

    def find(self, segments: list[str]) -> tuple[dict[str, Route], list[str]] | None:
        """The routes of a path by method, and the segments that names matched."""
        return _find_below(self._root, segments, 0)


class _Node:
    __slots__ = ("below", "routes")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.routes: dict[str, Route] = {}


def _find_below(node: _Node, segments: list[str], at: int) -> tuple[dict[str, Route], list[str]] | None:
    if at == len(segments):
        return (node.routes, []) if node.routes else None
    known = node.below.get(segments[at]) if segments[at] != "{}" else None
    if known is not None and (found := _find_below(known, segments, at + 1)) is not None:
        return found
    named = node.below.get("{}")
    if named is not None and segments[at] and (found := _find_below(named, segments, at + 1)) is not None:
        return found[0], [segments[at], *found[1]]
    return None
