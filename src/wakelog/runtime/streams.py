"""Streams of model calls: passed on live, recorded when they end, and given again as streams.

Each part goes to the reader as it comes. The call is over when its stream is: read to its end, it succeeded, with the
answer that the parts amount to (stream_assembly.py). A stream that breaks, that stops before it said it was over, or
that its reader leaves, failed, and what had come is kept with the failure. So the log never holds half an answer as a
whole one.

A recorded stream is an iterator again. One that broke gives what it gave, and breaks; one whose reader left it gives as
much as was read. A reader that was itself cut off (a crash, Ctrl-C) gets a new call instead.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import msgspec

from wakelog.errors import CallFailedError, InvalidInputError
from wakelog.model.events import Failure
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread_to_the_end
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.stream_assembly import Assembly, Items, begin, parts_again
from wakelog.runtime.tools import End, Tool
from wakelog.runtime.values import revive, revive_part, storable

_PROVIDERS = frozenset({"openai", "anthropic", "google"})
_RAW = frozenset({"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta"})
"""The events of Anthropic's helper that a message is made of; the others repeat them in other words."""


def is_stream(result: Any) -> bool:
    """Whether a result is still to come: an iterator, or a manager that opens one."""
    kind = type(result)
    is_manager = hasattr(kind, "__enter__") or hasattr(kind, "__aenter__")
    return hasattr(kind, "__next__") or hasattr(kind, "__anext__") or (is_manager and kind.__name__.endswith("Manager"))


class StreamRecord:
    """What has come of one stream, and the record of its end, made once."""

    def __init__(
        self,
        record: Callable[[End], object],
        ended_by: Callable[[BaseException], End],
        goes_on: Callable[[], bool],
        opened_us: int,
    ) -> None:
        self._record = record
        self._ended_by = ended_by
        self._goes_on = goes_on
        self._started = time.monotonic_ns() - opened_us * 1000
        self._assembly: Assembly | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self.mark: dict[str, Value] = {}
        self.is_provider = False
        self.parts = 0

    def take(self, part: Any) -> None:
        """One more part has come. InvalidInputError when it cannot be stored."""
        if self.mark.get("helper") and getattr(part, "type", "") not in _RAW:
            return
        told = part if isinstance(part, str) else storable(part, "a part of the stream")
        is_plain = isinstance(part, str | dict | list)
        if is_plain:
            told = copy.deepcopy(told)  # it is the reader's, who may change it
        if self._assembly is None:
            self._assembly = begin(told)
            self.mark |= {"plain": True} if is_plain else {}
        self._assembly.add(told)
        self.parts += 1

    def ended(self) -> Callable[[], None]:
        """The stream gave all it had."""
        assembly = self._assembly or Items()
        is_marked = self.is_provider if self._assembly is None else assembly.shape not in ("text", "items")
        if assembly.error is not None:
            return self._finish(End("failed", error=assembly.error))
        if is_marked and not assembly.is_whole:
            why = f"it stopped after {self.parts} parts without saying that it was over"
            return self._finish(End("failed", error=Failure(INCOMPLETE, why)))
        return self._finish(End("succeeded"))

    def broke(self, error: BaseException) -> Callable[[], None]:
        return self._finish(self._ended_by(error))

    def left(self, error: BaseException | None = None) -> Callable[[], None]:
        """Its reader has gone. One that goes on with its work got what it wanted; one that was cut off did not."""
        if self._assembly is not None and self._assembly.is_whole:
            return self._finish(End("succeeded"))
        why = f"its reader left it after {self.parts} parts"
        is_cut = not isinstance(error, Exception | GeneratorExit) if error is not None else not self._goes_on()
        if is_cut:
            return self._finish(End("failed", error=Failure("interrupted", why, retryable=True)))
        return self._finish(End("failed", error=Failure(ABANDONED, why)))

    def _finish(self, end: End) -> Callable[[], None]:
        """What records the end; nothing, when it is recorded."""
        with self._lock:
            if self._is_over:
                return _nothing
            self._is_over = True
        assembly = self._assembly or Items()
        end.result = end.output = assembly.answer()
        end.stream = {"shape": assembly.shape, "parts": self.parts, **self.mark}
        end.took_us = (time.monotonic_ns() - self._started) // 1000
        if end.exception is None and end.error is not None:
            end.exception = CallFailedError(f"the stream {end.error.type}: {end.error.message}", failure=end.error)
        return functools.partial(_run, self._record, end)


def _nothing() -> None:
    return


def _run(record: Callable[[End], object], end: End) -> None:
    record(end)


def live(result: Any, record: StreamRecord) -> Any:
    """What the caller of a model gets for a stream."""
    kind = type(result)
    record.is_provider = kind.__module__.partition(".")[0] in _PROVIDERS
    if hasattr(kind, "__next__"):
        return LiveStream(result, record)
    if hasattr(kind, "__anext__"):
        record.mark["async"] = True
        return LiveAsyncStream(result, record)
    return Manager(result, record) if hasattr(kind, "__enter__") else AsyncManager(result, record)


class Live:
    """A stream that is being read. What else the client's object can do, it does."""

    def __init__(self, inner: Any, record: StreamRecord) -> None:
        self._inner = inner
        self._taken = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._taken.left()()


class LiveStream(Live):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            part = next(self._inner)
            self._taken.take(part)
            return part
        except StopIteration:
            self._taken.ended()()
            raise
        except BaseException as exc:
            self._taken.broke(exc)()
            raise

    def close(self) -> None:
        """Leaves the stream; what has come is recorded as that."""
        try:
            if hasattr(self._inner, "close"):
                self._inner.close()
        finally:
            self._taken.left()()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *how: Any) -> None:
        try:
            if hasattr(self._inner, "close"):
                self._inner.close()
        finally:
            self._taken.left(how[1])()


class LiveAsyncStream(Live):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            part = await anext(self._inner)
            self._taken.take(part)
            return part
        except StopAsyncIteration:
            await _to_the_end(self._taken.ended())
            raise
        except BaseException as exc:
            await _to_the_end(self._taken.broke(exc))
            raise

    async def close(self) -> None:
        """Leaves the stream; what has come is recorded as that."""
        await self._close(None)

    aclose = close

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *how: Any) -> None:
        await self._close(how[1])

    async def _close(self, error: BaseException | None) -> None:
        try:
            close = getattr(self._inner, "aclose", None) or getattr(self._inner, "close", None)
            if close is not None:
                await close()
        finally:
            await _to_the_end(self._taken.left(error))


async def _to_the_end(record: Callable[[], None]) -> None:
    if record is not _nothing:
        await in_thread_to_the_end(record)


# Anthropic's helper: a manager that opens a stream of events with a message in the making


class _Helper(LiveStream):
    @property
    def text_stream(self) -> Iterator[str]:
        return (text for part in self if (text := _text_of(part)))

    def until_done(self) -> None:
        for _ in self:
            pass

    def get_final_message(self) -> Any:
        self.until_done()
        return self._inner.current_message_snapshot

    def get_final_text(self) -> str:
        return _final_text(self.get_final_message())


class _AsyncHelper(LiveAsyncStream):
    @property
    def text_stream(self) -> AsyncIterator[str]:
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        async for part in self:
            if text := _text_of(part):
                yield text

    async def until_done(self) -> None:
        async for _ in self:
            pass

    async def get_final_message(self) -> Any:
        await self.until_done()
        return self._inner.current_message_snapshot

    async def get_final_text(self) -> str:
        return _final_text(await self.get_final_message())


def _text_of(part: Any) -> str:
    is_text = part.type == "content_block_delta" and part.delta.type == "text_delta"
    return part.delta.text if is_text else ""


def _final_text(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


class Manager:
    """A client's manager; the call is made when it is entered."""

    def __init__(self, inner: Any, record: StreamRecord) -> None:
        self._inner = inner
        self._taken = record

    def __enter__(self) -> Any:
        try:
            opened = self._inner.__enter__()
            _check_helper(opened)
        except BaseException as exc:
            self._taken.broke(exc)()
            raise
        self._taken.mark["helper"] = True
        return _Helper(opened, self._taken)

    def __exit__(self, *how: Any) -> None:
        try:
            self._inner.__exit__(*how)
        finally:
            self._taken.left(how[1])()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._taken.left()()


class AsyncManager(Manager):
    async def __aenter__(self) -> Any:
        try:
            opened = await self._inner.__aenter__()
            _check_helper(opened)
        except BaseException as exc:
            await _to_the_end(self._taken.broke(exc))
            raise
        self._taken.mark |= {"helper": True, "async": True}
        return _AsyncHelper(opened, self._taken)

    async def __aexit__(self, *how: Any) -> None:
        try:
            await self._inner.__aexit__(*how)
        finally:
            await _to_the_end(self._taken.left(how[1]))


def _check_helper(opened: Any) -> None:
    if not hasattr(type(opened), "current_message_snapshot"):
        raise InvalidInputError(
            f"a {type(opened).__qualname__} cannot be recorded",
            kind="not-storable",
            hint="use the client's create(…, stream=True), whose events are recorded",
        )


def unwrapped(outcome: Outcome, raises: tuple[type[BaseException], ...]) -> Any:
    """What a model's caller gets: a stream, also one that will break where it broke; else the answer, or its error."""
    return outcome.result if is_stream(outcome.result) else outcome.unwrap(raises)


INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""How a stream failed that stopped too early, and one that its reader left."""

_TYPES = {
    "openai.chat": ("openai.types.chat", "ChatCompletionChunk"),
    "openai.responses": ("openai.types.responses", "ResponseStreamEvent"),
    "anthropic.messages": ("anthropic.types", "RawMessageStreamEvent"),
    "google.content": ("google.genai.types", "GenerateContentResponse"),
}
"""What a client makes of the parts. A log names only the shape: nothing is imported because a log says so."""


class StoredStream:
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
    """Entered, it gives the client's own helper, over a recorded stream."""

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


def answered_again(tool: Tool, outcome: Outcome, output: Value, body: Mapping[str, Value]) -> Outcome:
    """A recorded outcome with its result: brought into the type that the tool declares, or a stream again."""
    result: Any = None
    if mark := body.get("stream"):
        result = _given_again(tool, output, mark, outcome)
    elif outcome.error is None:
        result = revive(tool.function, output)
    return msgspec.structs.replace(outcome, result=result)


def _given_again(tool: Tool, answer: Value, mark: dict[str, Value], outcome: Outcome) -> StoredStream:
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
        stream: StoredStream = RecordedAsyncStream(parts, ends)
        return RecordedManager("AsyncMessageStream", stream) if mark.get("helper") else stream
    stream = RecordedStream(parts, ends)
    return RecordedManager("MessageStream", stream) if mark.get("helper") else stream


def _no_more(error: Failure) -> None:
    raise CallFailedError(
        f"the recorded stream ends here: {error.message}",
        kind="stream-left",
        failure=error,
        hint="start a new turn, or try this one again (retry=True), to call the model again",
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
