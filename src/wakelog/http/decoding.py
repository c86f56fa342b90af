"""What a request says, decoded by the types of its route: headers, query, body."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect as shape

from wakelog.engines.remote.wire import JSON, MSGPACK
from wakelog.errors import InvalidInputError
from wakelog.http.state import Settings

SPOOL_MAX = 8 << 20
"""Bodies that are handed over as files stay in memory up to this size."""


class GoneError(Exception):
    """Whoever asked has gone away."""


class Request:
    """A request, as ASGI brings it."""

    __slots__ = ("_receive", "_scope", "address", "headers", "host", "method", "origin", "path", "query")

    def __init__(
        self, scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[MutableMapping[str, Any]]]
    ) -> None:
        self._scope, self._receive = scope, receive
        self.method: str = scope["method"]
        raw = scope.get("raw_path") or scope["path"].encode()
        self.path: str = raw.partition(b"?")[0].decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.host = self.headers.get("host", "")
        self.origin = self.headers.get("origin", "")
        client = scope.get("client")
        self.address: str = client[0] if client else ""

    @property
    def wants_msgpack(self) -> bool:
        return MSGPACK in self.headers.get("accept", "")

    @property
    def asked_method(self) -> str:
        """The method that a browser asks about beforehand."""
        return str(self.headers.get("access-control-request-method", "OPTIONS"))

    async def receive(self) -> MutableMapping[str, Any]:
        return await self._receive()


def decode_query(query: bytes, wanted: type) -> Any:
    """The query as a struct. What is not known, or given twice without being a list, is refused."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as exc:
        raise InvalidInputError(f"the query cannot be read: {exc}", kind="bad-request") from exc
    lists = _list_fields(wanted)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise InvalidInputError(f"{name} is given twice", kind="bad-request")
        else:
            given[name] = value
    try:
        found: Any = msgspec.convert(given, wanted, strict=False)
    except msgspec.ValidationError as exc:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(wanted))
        raise InvalidInputError(f"the query is wrong: {exc}", kind="bad-request", hint=f"it takes {known}") from exc
    for name in given:
        if getattr(found, name) is None:
            raise InvalidInputError(f"{name} is null; leave it out instead", kind="bad-request")
    return found


_lists: dict[type, frozenset[str]] = {}


def _list_fields(wanted: type) -> frozenset[str]:
    if wanted not in _lists:
        info = cast(shape.StructType, shape.type_info(wanted))
        kinds = (shape.ListType, shape.VarTupleType)
        _lists[wanted] = frozenset(f.encode_name for f in info.fields if isinstance(f.type, kinds))
    return _lists[wanted]


async def take_body(request: Request, wanted: Any, settings: Settings) -> Any:
    """The body as a struct; or, for a route that takes bytes, as a file. The caller of such a route closes it."""
    is_file = wanted is bytes or wanted == IO[bytes]
    limit = settings.bundle_max if is_file else settings.body_max
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise _too_large(limit)
    if is_file:
        return await _into_file(request, limit, settings.body_s)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (JSON, MSGPACK):
        raise InvalidInputError(
            f"the body is {media or 'of no stated type'}; it must be {JSON} or {MSGPACK}", kind="wrong-media"
        )
    data = await _whole(request, limit, settings.body_s)
    try:
        if media == MSGPACK:
            return msgspec.msgpack.decode(data, type=wanted)
        return msgspec.json.decode(data, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(f"the body is wrong: {exc}", kind="bad-request") from exc


async def _whole(request: Request, limit: int, time_s: float) -> bytes:
    parts: list[bytes] = []
    await _each_part(request, limit, time_s, parts.append)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _into_file(request: Request, limit: int, time_s: float) -> IO[bytes]:
    out = tempfile.SpooledTemporaryFile(SPOOL_MAX)  # noqa: SIM115 - whoever reads it closes it
    try:
        await _each_part(request, limit, time_s, out.write)
        out.seek(0)
    except BaseException:
        out.close()
        raise
    return cast(IO[bytes], out)


async def _each_part(request: Request, limit: int, time_s: float, take: Callable[[bytes], object]) -> None:
    """Hands over the body piece by piece. Each piece must come in time, so that a slow sender holds nothing for long,
    and a big body on a slow line still arrives."""
    size = 0
    while True:
        try:
            async with asyncio.timeout(time_s):
                message = await request.receive()
        except TimeoutError:
            raise InvalidInputError(f"nothing of the body came for {time_s:g} s", kind="body-too-slow") from None
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
        f"the body is larger than {limit:,} bytes", kind="body-too-large", hint="wakelog serve --max-body allows more"
    )
