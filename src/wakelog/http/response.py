"""How an answer is sent: a struct as JSON or MessagePack, a list one record a line, a file in pieces, a tail as a
stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import IO, Any

import msgspec

from wakelog.engines.remote.wire import JSON, MSGPACK
from wakelog.errors import InvalidInputError
from wakelog.http.request import NDJSON, Request
from wakelog.http.routes import Raw, Route
from wakelog.http.state import Server

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CHUNK = 256 * 1024
EVENT_STREAM = "text/event-stream"

_to_json = msgspec.json.Encoder().encode
_to_lines = msgspec.json.Encoder().encode_lines
_to_msgpack = msgspec.msgpack.Encoder().encode


class Stream(msgspec.Struct, frozen=True):
    """An answer of unknown length, sent piece by piece."""

    pieces: AsyncGenerator[bytes, None]


class Rendered(msgspec.Struct):
    """An answer ready to be sent."""

    status: int
    headers: dict[str, str]
    content: bytes | IO[bytes] | AsyncGenerator[bytes, None] = b""


def render(answer: Any, route: Route, request: Request) -> Rendered:
    """Encodes what a verb returned."""
    if isinstance(answer, Stream):
        return Rendered(200, {"content-type": EVENT_STREAM, "cache-control": "no-store"}, answer.pieces)
    if isinstance(answer, Raw):
        return Rendered(route.status, {"content-type": answer.media, **answer.headers}, answer.content)
    if request.wants_msgpack:
        return Rendered(route.status, {"content-type": MSGPACK}, _to_msgpack(answer))
    if request.wants_ndjson:
        return _render_lines(answer, route)
    return Rendered(route.status, {"content-type": JSON}, _to_json(answer))


def _render_lines(answer: Any, route: Route) -> Rendered:
    """The first list of an answer, one record per line. The position of the next page is in a header, so that it cannot
    be mistaken for a record."""
    fields = [getattr(answer, name) for name in getattr(answer, "__struct_fields__", ())]
    rows = (
        answer if isinstance(answer, list | tuple) else next((f for f in fields if isinstance(f, list | tuple)), None)
    )
    if rows is None:
        raise InvalidInputError(
            f"{route.full_path} answers with one thing, not a list", kind="bad-request", hint="ask for JSON"
        )
    headers = {"content-type": NDJSON}
    if token := getattr(answer, "next", None):
        headers["wakelog-next"] = str(token)
    return Rendered(route.status, headers, _to_lines(rows))


async def send_answer(answer: Rendered, request: Request, send: Send, server: Server) -> None:
    """Sends an answer. If the reader takes nothing for `stall_s`, it is cut off."""
    content = answer.content
    if isinstance(content, bytes):
        if answer.status not in (204, 304):
            answer.headers["content-length"] = str(len(content))
        await _start(answer, send)
        await send({"type": "http.response.body", "body": content})
        return
    await _start(answer, send)
    if isinstance(content, AsyncGenerator):
        await _send_stream(content, request, send, server)
    else:
        await _send_file(content, send, server)


async def _start(answer: Rendered, send: Send) -> None:
    answer.headers["x-content-type-options"] = "nosniff"
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})


async def _send_file(file: IO[bytes], send: Send, server: Server) -> None:
    try:
        while part := await server.run(file.read, CHUNK):
            async with asyncio.timeout(server.settings.stall_s):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        file.close()


async def _send_stream(pieces: AsyncGenerator[bytes, None], request: Request, send: Send, server: Server) -> None:
    """Sends until the stream ends or its reader disconnects."""
    sending = asyncio.ensure_future(_send_pieces(pieces, send, server))
    leaving = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)
    if sending.done() and not sending.cancelled() and (error := sending.exception()) is not None:
        raise error


async def _send_pieces(pieces: AsyncGenerator[bytes, None], send: Send, server: Server) -> None:
    try:
        async for piece in pieces:
            server.metrics.sent.inc(len(piece))
            async with asyncio.timeout(server.settings.stall_s):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await pieces.aclose()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
