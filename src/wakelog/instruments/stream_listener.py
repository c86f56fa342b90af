"""Observes a stream in place: the reader keeps the client's own object.

If the client's stream keeps its iterator in `_iterator`, that is replaced by one that yields each part and also hands
it to the recorder. A stream that ends, breaks or is abandoned is recorded as such (runtime/streams.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from wakelog.instruments import patches
from wakelog.instruments.recorder import PassingCall
from wakelog.runtime.streams import StreamRecord

Read = Callable[[Any], Any]
"""Converts what a client yields into what the provider sent."""


class Listener:
    """Hands the parts of a stream to the recorder. After a part that cannot be read it stops; the stream continues."""

    def __init__(self, call: PassingCall, read: Read | None = None) -> None:
        self.call = call
        self._record: StreamRecord = call.stream()
        self._read = read
        self._is_stopped = False

    def take(self, part: Any) -> None:
        if self._is_stopped:
            return
        try:
            self._record.take(part if self._read is None else self._read(part))
        except Exception as exc:  # a part that cannot be stored
            self._is_stopped = True
            self._record.broke(exc)()

    def ended(self) -> None:
        self._record.ended()()

    def broke(self, error: BaseException) -> None:
        self._record.broke(error)()

    def left(self) -> None:
        self._record.left()()


def listen(parts: Iterator[Any], listener: Listener) -> Iterator[Any]:
    """Yields the same parts, and records them."""
    try:
        for part in parts:
            listener.take(part)
            yield part
    except GeneratorExit:
        listener.left()
        raise
    except BaseException as exc:
        listener.broke(exc)
        patches.wait(listener.call)
        raise
    else:
        listener.ended()
        patches.wait(listener.call)


async def listen_async(parts: AsyncIterator[Any], listener: Listener) -> AsyncIterator[Any]:
    try:
        async for part in parts:
            listener.take(part)
            yield part
    except GeneratorExit:
        listener.left()
        raise
    except BaseException as exc:
        listener.broke(exc)
        if isinstance(exc, Exception):  # a cancellation is not delayed
            await patches.wait_async(listener.call)
        raise
    else:
        listener.ended()
        await patches.wait_async(listener.call)


def tap(stream: Any, call: PassingCall) -> bool:
    """Starts to observe a client's stream object. False if that is not possible."""
    iterator = getattr(stream, "_iterator", None)
    if iterator is None or not (hasattr(iterator, "__next__") or hasattr(iterator, "__anext__")):
        return False
    listener = Listener(call)
    is_async = hasattr(iterator, "__anext__")
    stream._iterator = (listen_async if is_async else listen)(iterator, listener)
    close = getattr(stream, "close", None)
    if close is not None:
        # The reader may close it and keep it. Then nobody else would report that it was abandoned.
        stream.close = (_closing_async if is_async else _closing)(close, listener)
    return True


def _closing(close: Callable[[], Any], listener: Listener) -> Callable[[], Any]:
    @functools.wraps(close)
    def closed() -> Any:
        try:
            return close()
        finally:
            listener.left()
            patches.wait(listener.call)

    return closed


def _closing_async(close: Callable[[], Awaitable[Any]], listener: Listener) -> Callable[[], Awaitable[Any]]:
    @functools.wraps(close)
    async def closed() -> Any:
        try:
            return await close()
        finally:
            listener.left()
            await patches.wait_async(listener.call)

    return closed


class ListenedStream:
    """Wraps a stream that cannot be observed in place. In everything else it behaves like the client's object."""

    def __init__(self, inner: Any, listener: Listener) -> None:
        self._inner = inner
        self._listener = listener

    @property  # type: ignore[misc]  # so that `isinstance` works
    def __class__(self) -> Any:
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            part = next(self._inner)
        except StopIteration:
            self._listener.ended()
            patches.wait(self._listener.call)
            raise
        except BaseException as exc:
            self._listener.broke(exc)
            patches.wait(self._listener.call)
            raise
        self._listener.take(part)
        return part

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            part = await anext(self._inner)
        except StopAsyncIteration:
            self._listener.ended()
            await patches.wait_async(self._listener.call)
            raise
        except BaseException as exc:
            self._listener.broke(exc)
            raise
        self._listener.take(part)
        return part

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._listener.left()
