"""Runs the steps of a call: `drive` blocks, `drive_async` awaits.

call.py describes a call as a generator of steps: work on the store (`Do`), the tool's function (`Run`), a wait
(`Sleep`). The drivers send each step's result back into the generator, or throw its error there.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from wakelog.errors import InvalidInputError
from wakelog.runtime.ambient import CurrentCall, in_call
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end, on_asyncio

R = TypeVar("R")


class TimedOut(Exception):
    """The function did not return within its timeout."""


class ThreadedRun:
    """A function that runs in a thread. It cannot be stopped, so its caller may stop waiting; then `on_end` reports the
    end."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._lock = threading.Lock()
        self._end: tuple[Any, BaseException | None] = (None, None)
        self._callback: Callable[[Any, BaseException | None], None] | None = None

    def run(self, function: Callable[[], Any]) -> Any:
        """Calls the function, in its thread, and keeps its result or error."""
        try:
            end: tuple[Any, BaseException | None] = (function(), None)
        except BaseException as exc:
            end = (None, exc)
        with self._lock:
            self._end, callback = end, self._callback
            self.done.set()
        if callback is not None:
            callback(*end)
        return self.end()

    def end(self) -> Any:
        """Returns the result of a function that is done, or raises its error."""
        result, error = self._end
        if error is not None:
            raise error
        return result

    def on_end(self, callback: Callable[[Any, BaseException | None], None]) -> None:
        """Calls `callback(result, error)` when the function ends; at once if it has."""
        with self._lock:
            self._callback, is_done = callback, self.done.is_set()
        if is_done:
            callback(*self._end)


# The steps


class Do:
    """Blocking work on the store."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work


class Pause(Do):
    """Blocking work that records nothing, so a cancellation need not wait for it."""


class Run:
    """A call of the tool's function."""

    __slots__ = ("call", "function", "thread", "timeout_s")

    def __init__(self, function: Callable[[], Any], call: CurrentCall, timeout_s: float | None) -> None:
        self.function = function
        self.call = call
        self.timeout_s = timeout_s
        self.thread: ThreadedRun | None = None
        """Set if the function runs in a thread."""


class Sleep:
    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


Step = Do | Run | Sleep
Steps = Generator[Step, Any, R]


def drive(steps: Steps[R]) -> R:
    """Runs the steps of a call, blocking."""
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(step, Do):
                    answer = step.work()
                elif isinstance(step, Run):
                    answer = _run(step)
                else:
                    time.sleep(step.seconds)
            except BaseException as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _run(step: Run) -> Any:
    with in_call(step.call):
        return _call_plain(step.function) if step.timeout_s is None else _run_with_timeout(step)


def _call_plain(function: Callable[[], Any]) -> Any:
    result = function()
    if inspect.iscoroutine(result):
        result.close()  # it has not begun
        raise InvalidInputError(
            "the tool returned a coroutine to a caller that cannot await it",
            kind="async-tool",
            hint="make it an `async def`, or await it with session.aio.call or session.aio.model",
        )
    return result


def _run_with_timeout(step: Run) -> Any:
    """Runs the function in a new thread, so that the wait can end before the function does."""
    thread = step.thread = ThreadedRun()
    context = contextvars.copy_context()

    def work() -> None:
        with contextlib.suppress(BaseException):
            context.run(thread.run, functools.partial(_call_plain, step.function))

    threading.Thread(target=work, name=f"wakelog {step.call.tool}", daemon=True).start()
    if not thread.done.wait(step.timeout_s):
        raise TimedOut
    return thread.end()


async def drive_async(steps: Steps[R]) -> R:
    """Runs the steps of a call, awaiting. What must be recorded is recorded even if the task is cancelled."""
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(step, Pause):
                    answer = await in_thread(step.work)
                elif isinstance(step, Do):
                    answer = await in_thread_to_the_end(step.work)
                elif isinstance(step, Run):
                    answer = await _await(step)
                else:
                    await _sleep(step.seconds)
            except BaseException as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def _await(step: Run) -> Any:
    with in_call(step.call):
        if step.timeout_s is None:
            return await _result(step)
        if on_asyncio():
            import asyncio

            try:
                async with asyncio.timeout(step.timeout_s) as limit:
                    return await _result(step)
            except TimeoutError:
                if limit.expired():
                    raise TimedOut from None
                raise
        import anyio

        with anyio.move_on_after(step.timeout_s) as scope:
            return await _result(step)
        assert scope.cancelled_caught
        raise TimedOut


async def _result(step: Run) -> Any:
    """Awaits a coroutine function; runs a plain one in a worker thread."""
    function = step.function
    target = function.func if isinstance(function, functools.partial) else function
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None)):  # noqa: B004
        return await function()
    thread = step.thread = ThreadedRun()
    result = await in_thread(thread.run, function)
    if not inspect.isawaitable(result):
        return result
    step.thread = None
    return await result


async def _sleep(seconds: float) -> None:
    if on_asyncio():
        import asyncio

        await asyncio.sleep(seconds)
    else:
        import anyio

        await anyio.sleep(seconds)
