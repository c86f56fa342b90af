"""Streams of model calls: passed on live, and recorded when they end.

Each part goes to the reader as it arrives. The call ends when its stream ends. If the stream was read to its end, the
call succeeded, and the answer is assembled from the parts (stream_assembly.py). If the stream broke, stopped too early,
or its reader left it, the call failed, and what had arrived is recorded with the failure. So the log never shows half
an answer as a whole one.

recorded_streams.py returns a recorded answer as a stream.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from wakelog.errors import CallFailedError, InvalidInputError
from wakelog.model.events import Failure
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread_to_the_end
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.stream_assembly import Assembly, Items, choose_assembly
from wakelog.runtime.tools import End
from wakelog.runtime.values import storable

_PROVIDERS = frozenset({"openai", "anthropic", "google"})
_RAW = frozenset({"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta"})
"""The events of Anthropic's helper that make up a message. Its other events repeat these."""


def is_stream(result: Any) -> bool:
    """Whether a result is a stream: an iterator, or a context manager that opens one."""
    kind = type(result)
    is_manager = hasattr(kind, "__enter__") or hasattr(kind, "__aenter__")
    return hasattr(kind, "__next__") or hasattr(kind, "__anext__") or (is_manager and kind.__name__.endswith("Manager"))


class StreamRecord:
    """Collects the parts of one stream, and records its end once.

    `ended`, `broke` and `left` return the function that records; an async reader runs it in a thread."""

    def __init__(
        self,
        record: Callable[[End], object],
        classify_error: Callable[[BaseException], End],
        is_turn_open: Callable[[], bool],
        opened_us: int,
    ) -> None:
        self._save = record
        self._classify_error = classify_error
        self._is_turn_open = is_turn_open
        self._started = time.monotonic_ns() - opened_us * 1000
        self._assembly: Assembly | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self.mark: dict[str, Value] = {}
        self.is_provider = False
        self.parts = 0

    def take(self, part: Any) -> None:
        """Adds a part. InvalidInputError if it cannot be stored."""
        if self.mark.get("helper") and getattr(part, "type", "") not in _RAW:
            return
        stored = part if isinstance(part, str) else storable(part, "a part of the stream")
        is_plain = isinstance(part, str | dict | list)
        if is_plain:
            stored = copy.deepcopy(stored)  # the reader may change the part
        if self._assembly is None:
            self._assembly = choose_assembly(stored)
            self.mark |= {"plain": True} if is_plain else {}
        self._assembly.add(stored)
        self.parts += 1

    def ended(self) -> Callable[[], object]:
        """The stream has no more parts."""
        assembly = self._assembly or Items()
        says_end = self.is_provider if self._assembly is None else assembly.shape not in ("text", "items")
        if assembly.error is not None:
            return self._finish(End("failed", error=assembly.error))
        if says_end and not assembly.is_whole:
            why = f"it stopped after {self.parts} parts without a final part"
            return self._finish(End("failed", error=Failure(INCOMPLETE, why)))
        return self._finish(End("succeeded"))

    def broke(self, error: BaseException) -> Callable[[], object]:
        return self._finish(self._classify_error(error))

    def left(self, error: BaseException | None = None) -> Callable[[], object]:
        """The reader left before the end. If its turn goes on, it had what it wanted; if not, it was interrupted."""
        if self._assembly is not None and self._assembly.is_whole:
            return self._finish(End("succeeded"))
        why = f"its reader left it after {self.parts} parts"
        is_stopped = error is not None and not isinstance(error, Exception | GeneratorExit)
        if is_stopped or (error is None and not self._is_turn_open()):
            return self._finish(End("failed", error=Failure("interrupted", why, retryable=True)))
        return self._finish(End("failed", error=Failure(ABANDONED, why)))

    def _finish(self, end: End) -> Callable[[], object]:
        """Returns the function that records the end; one that does nothing if the end is recorded already."""
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
        return functools.partial(self._save, end)


def _nothing() -> None:
    return


def pass_on(result: Any, record: StreamRecord) -> Any:
    """Wraps a client's stream for its reader, so that each part is recorded."""
    kind = type(result)
    record.is_provider = kind.__module__.partition(".")[0] in _PROVIDERS
    if hasattr(kind, "__next__"):
        return LiveStream(result, record)
    if hasattr(kind, "__anext__"):
        record.mark["async"] = True
        return LiveAsyncStream(result, record)
    return Manager(result, record) if hasattr(kind, "__enter__") else AsyncManager(result, record)


class Live:
    """A stream that is being read. Other attributes are those of the client's object."""

    def __init__(self, inner: Any, record: StreamRecord) -> None:
        self._inner = inner
        self._record = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._record.left()()


class LiveStream(Live):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            part = next(self._inner)
            self._record.take(part)
            return part
        except StopIteration:
            self._record.ended()()
            raise
        except BaseException as exc:
            self._record.broke(exc)()
            raise

    def close(self) -> None:
        """Leaves the stream, and records what arrived."""
        self._close(None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *how: Any) -> None:
        self._close(how[1])

    def _close(self, error: BaseException | None) -> None:
        try:
            if hasattr(self._inner, "close"):
                self._inner.close()
        finally:
            self._record.left(error)()


class LiveAsyncStream(Live):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            part = await anext(self._inner)
            self._record.take(part)
            return part
        except StopAsyncIteration:
            await _to_the_end(self._record.ended())
            raise
        except BaseException as exc:
            await _to_the_end(self._record.broke(exc))
            raise

    async def close(self) -> None:
        """Leaves the stream, and records what arrived."""
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
            await _to_the_end(self._record.left(error))


async def _to_the_end(record: Callable[[], object]) -> None:
    if record is not _nothing:
        await in_thread_to_the_end(record)


# Anthropic's helper: a context manager that opens a stream of events and assembles the message


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
    """A client's context manager. Entering it makes the call."""

    def __init__(self, inner: Any, record: StreamRecord) -> None:
        self._inner = inner
        self._record = record

    def __enter__(self) -> Any:
        try:
            opened = self._inner.__enter__()
            _check_helper(opened)
        except BaseException as exc:
            self._record.broke(exc)()
            raise
        self._record.mark["helper"] = True
        return _Helper(opened, self._record)

    def __exit__(self, *how: Any) -> None:
        try:
            self._inner.__exit__(*how)
        finally:
            self._record.left(how[1])()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._record.left()()


class AsyncManager(Manager):
    async def __aenter__(self) -> Any:
        try:
            opened = await self._inner.__aenter__()
            _check_helper(opened)
        except BaseException as exc:
            await _to_the_end(self._record.broke(exc))
            raise
        self._record.mark |= {"helper": True, "async": True}
        return _AsyncHelper(opened, self._record)

    async def __aexit__(self, *how: Any) -> None:
        try:
            await self._inner.__aexit__(*how)
        finally:
            await _to_the_end(self._record.left(how[1]))


def _check_helper(opened: Any) -> None:
    if not hasattr(type(opened), "current_message_snapshot"):
        raise InvalidInputError(
            f"a {type(opened).__qualname__} cannot be recorded",
            kind="not-storable",
            hint="use the client's create(…, stream=True), whose events are recorded",
        )


def unwrap_outcome(outcome: Outcome, raises: tuple[type[BaseException], ...]) -> Any:
    """Returns what the model's caller gets: a stream, even one that will break; else the answer, or raises its
    error."""
    return outcome.result if is_stream(outcome.result) else outcome.unwrap(raises)


INCOMPLETE, ABANDONED = "incomplete", "abandoned"
"""The error types of a stream that stopped too early, and of one that its reader left."""
