"""A request, decoded by the types of its route: headers, query, body."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect as shape

from wakelog.codec.value_count import VALUES_MAX, is_heavy_json, is_heavy_msgpack
from wakelog.engines.remote.wire import JSON, MSGPACK
from wakelog.errors import InvalidInputError
from wakelog.http.routes import Route
from wakelog.http.shares import Requester, ShareGrant
from wakelog.http.state import Server, Settings
from wakelog.model.described import described

NDJSON = "application/x-ndjson"
SPOOL_MAX = 8 << 20
"""Bodies and answers that are files stay in memory up to this size."""
QUESTION_MAX = 1 << 20
"""The largest body of a route that only reads."""
BODY_RATE = 64 << 10
"""A body gets one more second for each of these bytes received."""
DECODED_AT_ONCE = 32 << 10
"""A larger body is decoded in a thread of its key's share."""

_UNIQUE_HEADERS = (b"host", b"authorization", b"origin", b"content-type")


class GoneError(Exception):
    """The caller has disconnected."""


class Request:
    """A request, as ASGI brings it."""

    __slots__ = ("_receive", "_scope", "address", "headers", "host", "method", "origin", "path", "query", "repeated")

    def __init__(
        self, scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
    ) -> None:
        self._scope, self._receive = scope, receive
        self.method: str = scope["method"]
        raw = scope.get("raw_path") or scope["path"].encode()
        self.path: str = raw.partition(b"?")[0].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        counts = Counter(name for name, _ in scope["headers"])
        self.repeated = next((name for name in _UNIQUE_HEADERS if counts[name] > 1), b"").decode()
        """A header that must be unique but is sent twice; else empty. Two values could be read either way."""
        self.host = self.headers.get("host", "")
        self.origin = self.headers.get("origin", "")
        client = scope.get("client")
        self.address: str = client[0] if client else ""

    @property
    def is_secure(self) -> bool:
        return self._scope.get("scheme") == "https"

    @property
    def wants_msgpack(self) -> bool:
        return MSGPACK in self.headers.get("accept", "")

    @property
    def wants_ndjson(self) -> bool:
        return NDJSON in self.headers.get("accept", "")

    def redirect_to(self, address: str, media: str) -> None:
        """Changes the address and the accepted type; the key stays."""
        path, _, query = address.partition("?")
        self.path, self.query = path, query.encode()
        self.headers["accept"] = media

    @property
    def asked_method(self) -> str:
        """The method that a CORS preflight asks about."""
        return str(self.headers.get("access-control-request-method", "OPTIONS"))

    async def receive(self) -> MutableMapping[str, Any]:
        return await self._receive()


def decode_query(query: bytes, wanted: type) -> Any:
    """The query as a struct. Unknown names, and repeated names that are not lists, are refused."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as exc:
        raise InvalidInputError(f"the query cannot be read: {exc}", kind="bad-request") from exc
    lists = _list_fields(wanted)
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            data.setdefault(name, []).append(value)
        elif name in data:
            raise InvalidInputError(f"{name} is given twice", kind="bad-request")
        else:
            data[name] = value
    try:
        found: Any = msgspec.convert(data, described(wanted), strict=False)
    except msgspec.ValidationError as exc:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))
        raise InvalidInputError(f"the query is wrong: {exc}", kind="bad-request", hint=f"it takes {known}") from exc
    for name in data:
        if getattr(found, name) is None:
            raise InvalidInputError(f"{name} is null; leave it out instead", kind="bad-request")
    return found


@functools.cache
def _list_fields(wanted: type) -> frozenset[str]:
    info = cast(shape.StructType, shape.type_info(wanted))
    return frozenset(f.encode_name for f in info.fields if isinstance(f.type, shape.ListType | shape.VarTupleType))


async def receive_body(request: Request, route: Route, server: Server, who: Requester, hold: ShareGrant) -> Any:
    """The body as a struct; or, for a route that takes a file, as a file that the verb closes. Its bytes in memory are
    added to `hold`."""
    settings = server.settings
    limit = _limit(route, settings)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise _too_large(limit)
    if route.takes_file:
        return await _receive_file(request, limit, settings.body_s, hold)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (JSON, MSGPACK):
        raise InvalidInputError(
            f"the body is {media or 'of no stated type'}; it must be {JSON} or {MSGPACK}", kind="wrong-media"
        )
    parts: list[bytes] = []

    def take(part: bytes) -> None:
        hold.add(len(part))
        parts.append(part)

    await _receive_parts(request, limit, settings.body_s, take)
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    parts.clear()
    if len(data) <= DECODED_AT_ONCE:
        return _decode(data, media, route.body)
    return await server.work(who, _decode, data, media, route.body)


def _limit(route: Route, settings: Settings) -> int:
    if route.takes_file:
        return settings.bundle_max
    return settings.body_max if route.scope != "read" else min(settings.body_max, QUESTION_MAX)


def _decode(data: bytes, media: str, wanted: Any) -> Any:
    is_heavy = is_heavy_msgpack if media == MSGPACK else is_heavy_json
    if is_heavy(data):
        raise InvalidInputError(
            f"the body holds more than {VALUES_MAX:,} values", kind="body-too-complex", hint="send it in several parts"
        )
    try:
        if media == MSGPACK:
            return msgspec.msgpack.decode(data, type=described(wanted))
        return msgspec.json.decode(data, type=described(wanted))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(f"the body is wrong: {exc}", kind="bad-request") from exc


async def _receive_file(request: Request, limit: int, time_s: float, hold: ShareGrant) -> IO[bytes]:
    out = tempfile.SpooledTemporaryFile(SPOOL_MAX)  # noqa: SIM115 - the verb closes it
    held = 0

    def take(part: bytes) -> None:
        nonlocal held
        more = min(len(part), SPOOL_MAX - held)  # the rest is on the disk
        hold.add(more)
        held += more
        out.write(part)

    try:
        await _receive_parts(request, limit, time_s, take)
        out.seek(0)
    except BaseException:
        out.close()
        raise
    return cast(IO[bytes], out)


async def _receive_parts(request: Request, limit: int, time_s: float, take: Callable[[bytes], object]) -> None:
    """Passes the body to `take`, piece by piece. The time limit grows with what has arrived: a stalled sender is cut
    off soon, and a big body on a slow line still arrives."""
    size = 0
    began = time.monotonic()
    while True:
        left = began + time_s + size / BODY_RATE - time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await request.receive()
        except TimeoutError:
            raise InvalidInputError(
                f"{size:,} bytes of the body came in {time.monotonic() - began:.0f} s, which is too slow",
                kind="body-too-slow",
            ) from None
        if message["type"] == "http.disconnect":
            raise GoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if part:
            take(part)
        if not message.get("more_body"):
            return


def _too_large(limit: int) -> InvalidInputError:
    return InvalidInputError(
        f"the body is larger than {limit:,} bytes",
        kind="body-too-large",
        hint="wakelog serve --max-body and --max-bundle raise the limit for what is stored",
    )
