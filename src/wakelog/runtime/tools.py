"""A tool: a function with its policy, called through a session.

`Bound` keeps the function's signature and is called like it: a coroutine function stays one. What happens around the
call is calling.py's; here are the two drivers that walk through it, one that blocks and one that awaits.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from wakelog.runtime.ambient import Call, in_call
from wakelog.runtime.bridge import Aio, on_asyncio
from wakelog.runtime.policy import Policy
from wakelog.runtime.values import bind

if TYPE_CHECKING:
    from wakelog.runtime.outcome import Outcome


class Tool:
    """A function, what it is called, and how it is to be called."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str = "") -> None:
        self.function = function
        self.policy = policy
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine
        )

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return bind(self.function, args, kwargs)


class TimedOut(Exception):
    """The call did not come back in time; `late` is told what it says when it does."""

    def __init__(self, late: Late | None = None) -> None:
        self.late = late


class Late:
    """A call that nobody waits for any longer. Its end is delivered once, to whoever takes it over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: tuple[Any, BaseException | None] | None = None
        self._heir: Callable[[Any, BaseException | None], None] | None = None

    def ended(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            self._end = (result, error)
            heir = self._heir
        if heir is not None:
            heir(result, error)

    def inherit(self, heir: Callable[[Any, BaseException | None], None]) -> None:
        with self._lock:
            self._heir = heir
            end = self._end
        if end is not None:
            heir(*end)


# Steps that a call asks its driver to take.


class Do:
    """Blocking work on the store."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work


class Run:
    """The function itself."""

    __slots__ = ("call", "function", "timeout_s")

    def __init__(self, function: Callable[[], Any], call: Call, timeout_s: float | None) -> None:
        self.function = function
        self.call = call
        self.timeout_s = timeout_s


class Sleep:
    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


Steps = Generator[Do | Run | Sleep, Any, "Outcome"]


def drive(steps: Steps) -> Outcome:
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
    if step.timeout_s is None:
        with in_call(step.call):
            return step.function()
    return _run_in_time(step)


def _run_in_time(step: Run) -> Any:
    """In a thread of its own: Python cannot stop a function, only stop waiting for it."""
    done, late = threading.Event(), Late()
    end: list[tuple[Any, BaseException | None]] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            with in_call(step.call):
                result, error = step.function(), None
        except BaseException as exc:
            result, error = None, exc
        end.append((result, error))
        done.set()
        late.ended(result, error)

    threading.Thread(target=context.run, args=(work,), name=f"wakelog {step.call.tool}", daemon=True).start()
    if not done.wait(step.timeout_s):
        raise TimedOut(late)
    result, error = end[0]
    if error is not None:
        raise error
    return result


async def drive_async(steps: Steps) -> Outcome:
    """Walks through a call, awaiting. What must be recorded is recorded even when the task is cancelled."""
    bridge = Aio(None)
    try:
        step = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(step, Do):
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
            return await _result(step.function, bridge)
        if on_asyncio():
            import asyncio

            try:
                async with asyncio.timeout(step.timeout_s) as limit:
                    return await _result(step.function, bridge)
            except TimeoutError:
                if limit.expired():
                    raise TimedOut from None
                raise
        import anyio

        with anyio.move_on_after(step.timeout_s) as scope:
            return await _result(step.function, bridge)
        assert scope.cancelled_caught
        raise TimedOut


async def _result(function: Callable[[], Any], bridge: Aio) -> Any:
    """A coroutine's result; a plain function is given a worker thread."""
    target = function.func if isinstance(function, functools.partial) else function
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None)):  # noqa: B004
        return await function()
    result = await bridge.call(function)
    return await result if inspect.isawaitable(result) else result


async def _sleep(seconds: float) -> None:
    if on_asyncio():
        import asyncio

        await asyncio.sleep(seconds)
    else:
        import anyio

        await anyio.sleep(seconds)
