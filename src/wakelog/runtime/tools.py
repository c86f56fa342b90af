"""A tool: a function with its policy, called through a session.

`Bound` keeps the function's signature and is called like it: a coroutine function stays one. What happens around the
call is calling.py's; here are the two drivers that walk through it, one that blocks and one that awaits.
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
from wakelog.runtime.ambient import Call, in_call
from wakelog.runtime.bridge import Aio, on_asyncio
from wakelog.runtime.policy import Policy
from wakelog.runtime.values import bind

R = TypeVar("R")


class Tool:
    """A function, what it is called, and how it is to be called."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str = "") -> None:
        self.function = function
        self.policy = policy
        self.name = name or getattr(function, "__name__", type(function).__name__)
        is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if is_generator and policy.effect != "model":  # a model's answer may come as a stream (streams.py)
            raise InvalidInputError(
                f"{self.name} is a generator: it would do its work after the call is recorded as over",
                kind="generator-tool",
                hint="return a list, or make a tool of what consumes it",
            )
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine
        )

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return bind(self.function, args, kwargs)


class TimedOut(Exception):
    """The call did not come back in time."""


class Late:
    """A function in a thread. Nobody may wait for it any longer; its end is told to whoever takes it over."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._lock = threading.Lock()
        self._end: tuple[Any, BaseException | None] = (None, None)
        self._heir: Callable[[Any, BaseException | None], None] | None = None

    def run(self, function: Callable[[], Any]) -> Any:
        """Calls the function, in its thread, and remembers how it ended."""
        try:
            end: tuple[Any, BaseException | None] = (function(), None)
        except BaseException as exc:
            end = (None, exc)
        with self._lock:
            self._end, heir = end, self._heir
            self.done.set()
        if heir is not None:
            heir(*end)
        return self.end()

    def end(self) -> Any:
        """The result, or the error raised, of a function that is done."""
        result, error = self._end
        if error is not None:
            raise error
        return result

    def inherit(self, heir: Callable[[Any, BaseException | None], None]) -> None:
        with self._lock:
            self._heir, is_done = heir, self.done.is_set()
        if is_done:
            heir(*self._end)


# Steps that a call asks its driver to take.


class Do:
    """Blocking work on the store."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work


class Wait(Do):
    """The same, without anything to record: a cancellation need not wait for it."""


class Run:
    """The function itself."""

    __slots__ = ("call", "function", "late", "timeout_s")

    def __init__(self, function: Callable[[], Any], call: Call, timeout_s: float | None) -> None:
        self.function = function
        self.call = call
        self.timeout_s = timeout_s
        self.late: Late | None = None
        """Set where the function runs in a thread: Python cannot stop it, only stop waiting for it."""


class Sleep:
    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


Step = Do | Run | Sleep
Steps = Generator[Step, Any, R]


def drive(steps: Steps[R]) -> R:
    """Walks through a call, blocking."""
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
        return _called(step.function) if step.timeout_s is None else _run_in_time(step)


def _called(function: Callable[[], Any]) -> Any:
    result = function()
    if inspect.iscoroutine(result):
        result.close()  # it has not begun
        raise InvalidInputError(
            "the tool gave a coroutine to a caller that does not wait for it",
            kind="async-tool",
            hint="make it an `async def`, or call it with session.acall or session.amodel",
        )
    return result


def _run_in_time(step: Run) -> Any:
    """In a thread of its own, so that the wait can end before the function does."""
    late = step.late = Late()
    context = contextvars.copy_context()

    def work() -> None:
        with contextlib.suppress(BaseException):
            context.run(late.run, functools.partial(_called, step.function))

    threading.Thread(target=work, name=f"wakelog {step.call.tool}", daemon=True).start()
    if not late.done.wait(step.timeout_s):
        raise TimedOut
    return late.end()


async def drive_async(steps: Steps[R]) -> R:
    """Walks through a call, awaiting. What must be recorded is recorded even when the task is cancelled."""
    bridge = Aio(None)
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(step, Wait):
                    answer = await bridge.call(step.work)
                elif isinstance(step, Do):
                    answer = await bridge.call_to_the_end(step.work)
                elif isinstance(step, Run):
                    answer = await _await(step, bridge)
                else:
                    await _sleep(step.seconds)
            except BaseException as exc:
                step = steps.throw(exc)
            else:
                step = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def _await(step: Run, bridge: Aio) -> Any:
    with in_call(step.call):
        if step.timeout_s is None:
            return await _result(step, bridge)
        if on_asyncio():
            import asyncio

            try:
                async with asyncio.timeout(step.timeout_s) as limit:
                    return await _result(step, bridge)
            except TimeoutError:
                if limit.expired():
                    raise TimedOut from None
                raise
        import anyio

        with anyio.move_on_after(step.timeout_s) as scope:
            return await _result(step, bridge)
        assert scope.cancelled_caught
        raise TimedOut


async def _result(step: Run, bridge: Aio) -> Any:
    """A coroutine's result; a plain function is given a worker thread."""
    function = step.function
    target = function.func if isinstance(function, functools.partial) else function
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None)):  # noqa: B004
        return await function()
    late = step.late = Late()
    result = await bridge.call(late.run, function)
    if not inspect.isawaitable(result):
        return result
    step.late = None
    return await result


async def _sleep(seconds: float) -> None:
    if on_asyncio():
        import asyncio

        await asyncio.sleep(seconds)
    else:
        import anyio

        await anyio.sleep(seconds)
