"""Google's client: generated content, sync and async, also on Vertex.

Every request goes through four methods of one class, with the body as it is sent. So chats, and the client's automatic
function calling, are seen request by request.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wakelog.instruments import patches
from wakelog.instruments.function_wrapper import try_see, wrap, wrap_async
from wakelog.instruments.patches import Point
from wakelog.instruments.recorder import PassingCall
from wakelog.instruments.stream_listener import Listener, listen, listen_async
from wakelog.model.values import Value
from wakelog.runtime.values import plain


def points(library: Any) -> Iterator[Point]:
    owner = importlib.import_module(f"{library.__name__}._api_client").BaseApiClient
    yield owner, "request", functools.partial(wrap, _see, _take)
    yield owner, "async_request", functools.partial(wrap_async, _see, _take)
    yield owner, "request_streamed", _wrap_stream
    yield owner, "async_request_streamed", functools.partial(wrap_async, _see, _take_stream)


def _see(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PassingCall | None:
    given = dict(zip(("self", "http_method", "path", "request_dict"), args, strict=False)) | kwargs
    path, body = given.get("path"), given.get("request_dict")
    return patches.passing_call(path, functools.partial(plain, body)) if isinstance(path, str) else None


def _answer(response: Any) -> Value:
    """What the provider sent. The client passes it as text."""
    return msgspec.json.decode(response.body)


def _take(call: PassingCall, response: Any) -> Any:
    call.answered(_answer(response))
    return response


def _take_stream(call: PassingCall, parts: Any) -> Any:
    return listen_async(parts, Listener(call, _answer))


def _wrap_stream(request: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a generator: the request is sent when it is read."""

    @functools.wraps(request)
    def stream(*args: Any, **kwargs: Any) -> Iterator[Any]:
        call = try_see(_see, request, args, kwargs)
        parts = request(*args, **kwargs)
        if call is None:
            yield from parts
            return
        yield from listen(parts, Listener(call, _answer))

    return stream
