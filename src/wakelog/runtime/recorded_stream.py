"""A recorded outcome given again: its result in the type that the tool declares, or as a stream.

A stream is an iterator again. One that broke gives what it gave, and breaks; one whose reader left it gives as much as
was read. A reader that was itself cut off (a crash, Ctrl-C) gets a new call instead.
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
from wakelog.runtime.stream_assembly import parts_again
from wakelog.runtime.tools import Tool
from wakelog.runtime.values import revive, revive_part

INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""How a stream failed that stopped too early, and one that its reader left."""

_TYPES = {
    "openai.chat": ("openai.types.chat", "ChatCompletionChunk"),
    "openai.responses": ("openai.types.responses", "ResponseStreamEvent"),
    "anthropic.messages": ("anthropic.types", "RawMessageStreamEvent"),
    "google.content": ("google.genai.types", "GenerateContentResponse"),
}
"""What a client makes of the parts. A log names only the shape: nothing is imported because a log says so."""


class Recorded:
    """A stream out of the log."""

    def __init__(self, parts: list[Any], ends: Callable[[], object]) -> None:
        self._parts = iter(parts)
        self._ends = ends
        self.response = None

    def _next(self) -> Any:
        for part in self._parts:
            return part
        self._ends()
        return _END


_END = object()


class RecordedStream(Recorded):
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


class RecordedAsyncStream(Recorded):
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


class RecordedManager(Recorded):
    """Entered, it gives the client's own helper, over a recorded stream."""

    def __init__(self, name: str, stream: Recorded) -> None:
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


def answered_again(tool: Tool, outcome: Outcome, output: Value, body: Mapping[str, Value]) -> Outcome:
    """A recorded outcome with its result: brought into the type that the tool declares, or a stream again."""
    result: Any = None
    if mark := body.get("stream"):
        result = _given_again(tool, output, mark, outcome)
    elif outcome.error is None:
        result = revive(tool.function, output)
    return msgspec.structs.replace(outcome, result=result)


def _given_again(tool: Tool, answer: Value, mark: dict[str, Value], outcome: Outcome) -> Recorded:
    error = outcome.error
    shape = str(mark.get("shape", "items"))
    told = parts_again(shape, answer)
    parts = told if mark.get("plain") else _typed(shape, told)
    if shape == "items":
        parts = [revive_part(tool.function, part) for part in told]
    ends: Callable[[], object] = functools.partial(outcome.unwrap, tool.policy.retry_on)
    if error is None or error.type == INCOMPLETE:
        ends = _no_error
    if error is not None and error.type == ABANDONED:
        ends = functools.partial(_no_more, error)
    if mark.get("async"):
        stream: Recorded = RecordedAsyncStream(parts, ends)
        return RecordedManager("AsyncMessageStream", stream) if mark.get("helper") else stream
    stream = RecordedStream(parts, ends)
    return RecordedManager("MessageStream", stream) if mark.get("helper") else stream


def _no_more(error: Failure) -> None:
    raise CallFailedError(
        f"the recorded stream ends here: {error.message}",
        kind="stream-left",
        failure=error,
        hint="begin a new turn, or try this one again (retry=True), to call the model anew",
    )


def _typed(shape: str, parts: list[Value]) -> list[Any]:
    """The parts as the client's own objects; as plain JSON where the client is not installed, or no longer knows
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


def _no_error() -> None:
    return
