"""Returns recorded outcomes, and recorded streams as streams again.

A stream that broke gives the same parts and breaks again; one that its reader left gives the parts that were read. If
the reader itself was interrupted (a crash, Ctrl-C), the model is called again.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import msgspec

from wakelog.errors import CallFailedError
from wakelog.model.events import Failure
from wakelog.model.values import Value
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.stream_assembly import split_answer
from wakelog.runtime.streams import ABANDONED, INCOMPLETE
from wakelog.runtime.tools import Tool
from wakelog.runtime.values import revive, revive_part

_TYPES = {
    "openai.chat": ("openai.types.chat", "ChatCompletionChunk"),
    "openai.responses": ("openai.types.responses", "ResponseStreamEvent"),
    "anthropic.messages": ("anthropic.types", "RawMessageStreamEvent"),
    "google.content": ("google.genai.types", "GenerateContentResponse"),
}
"""The client's type for the parts of each shape. The log names only the shape, so it cannot make us import a module."""


class StoredStream:
    """A recorded stream. `on_end` is called after the last part and may raise."""

    def __init__(self, parts: list[Any], on_end: Callable[[], object] | None) -> None:
        self._parts = iter(parts)
        self._on_end = on_end
        self.response = None

    def _next(self) -> Any:
        for part in self._parts:
            return part
        if self._on_end is not None:
            self._on_end()
        return _END


_END = object()


class RecordedStream(StoredStream):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if (part := self._next()) is _END:
            raise StopIteration
        return part

    def close(self) -> None:
        self._parts = iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *how: Any) -> None:
        self.close()


class RecordedAsyncStream(StoredStream):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if (part := self._next()) is _END:
            raise StopAsyncIteration
        return part

    async def close(self) -> None:
        self._parts = iter(())

    aclose = close

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *how: Any) -> None:
        await self.close()


class RecordedManager(StoredStream):
    """Opens the client's own helper over a recorded stream."""

    def __init__(self, name: str, stream: StoredStream) -> None:
        self._name = name
        self._stream = stream

    def _open(self) -> Any:
        client = importlib.import_module("anthropic")
        return getattr(client, self._name)(self._stream, output_format=client.NOT_GIVEN)

    def __enter__(self) -> Any:
        return self._open()

    def __exit__(self, *how: Any) -> None:
        return

    async def __aenter__(self) -> Any:
        return self._open()

    async def __aexit__(self, *how: Any) -> None:
        return


def revive_outcome(tool: Tool, outcome: Outcome, output: Value, body: Mapping[str, Value]) -> Outcome:
    """Adds the recorded result to an outcome: as the type that the tool declares, or as a stream."""
    result: Any = None
    if mark := body.get("stream"):
        result = _rebuild_stream(tool, output, mark, outcome)
    elif outcome.error is None:
        result = revive(tool.function, output)
    return msgspec.structs.replace(outcome, result=result)


def _rebuild_stream(tool: Tool, answer: Value, mark: dict[str, Value], outcome: Outcome) -> StoredStream:
    error = outcome.error
    shape = str(mark.get("shape", "items"))
    stored = split_answer(shape, answer)
    if shape == "items":
        parts = [revive_part(tool.function, part) for part in stored]
    else:
        parts = stored if mark.get("plain") else _typed_parts(shape, stored)
    on_end: Callable[[], object] | None = None
    if error is not None and error.type == ABANDONED:
        on_end = functools.partial(_raise_left, error)
    elif error is not None and error.type != INCOMPLETE:
        on_end = functools.partial(outcome.unwrap, tool.policy.retry_on)
    is_async = bool(mark.get("async"))
    stream = (RecordedAsyncStream if is_async else RecordedStream)(parts, on_end)
    if mark.get("helper"):
        return RecordedManager("AsyncMessageStream" if is_async else "MessageStream", stream)
    return stream


def _raise_left(error: Failure) -> None:
    raise CallFailedError(
        f"the recorded stream ends here: {error.message}",
        kind="stream-left",
        failure=error,
        hint="start a new turn, or try this one again (retry=True), to call the model again",
    )


def _typed_parts(shape: str, parts: list[Value]) -> list[Any]:
    """Converts parts to the client's own objects. They stay plain JSON if the client is not installed or does not know
    them."""
    module, name = _TYPES.get(shape, ("", ""))
    if not module:
        return parts
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return parts
    adapter = sys.modules["pydantic"].TypeAdapter(kind)
    out: list[Any] = []
    for part in parts:
        try:
            out.append(adapter.validate_python(part))
        except ValueError:
            out.append(kind.construct(**part) if hasattr(kind, "construct") else part)
    return out
