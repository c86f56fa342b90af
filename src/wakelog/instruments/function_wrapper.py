"""Wraps a client's function: it is called with the same arguments, and its result or exception is passed on unchanged.
`see` reads the arguments and says whether to record the call; `take` reads the result.

What a request adds is written while the provider works, so only the outcome is waited for. A model call has no side
effect, so its intent does not have to be stored first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from wakelog.instruments import patches
from wakelog.instruments.recorder import PassingCall

Function = Callable[..., Any]
See = Callable[[Function, tuple[Any, ...], dict[str, Any]], PassingCall | None]
Take = Callable[[PassingCall, Any], Any]
"""What the caller gets as the result: the same object, if it can be observed in place."""


def wrap(see: See, take: Take, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        seen = try_see(see, function, args, kwargs)
        if seen is None:
            return function(*args, **kwargs)
        token = patches.enter_call()
        try:
            result = function(*args, **kwargs)
        except BaseException as exc:
            seen.failed(exc)
            patches.wait(seen)
            raise
        finally:
            patches.leave_call(token)
        result = _try_take(take, seen, result)
        patches.wait(seen)
        return result

    return call


def wrap_async(see: See, take: Take, function: Function) -> Function:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        seen = try_see(see, function, args, kwargs)
        if seen is None:
            return await function(*args, **kwargs)
        token = patches.enter_call()
        try:
            result = await function(*args, **kwargs)
        except BaseException as exc:
            seen.failed(exc)
            if isinstance(exc, Exception):  # a cancellation is not delayed
                await patches.wait_async(seen)
            raise
        finally:
            patches.leave_call(token)
        result = _try_take(take, seen, result)
        await patches.wait_async(seen)
        return result

    return call


def try_see(see: See, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PassingCall | None:
    """Calls `see`. A failure in it is logged once, and the call is not recorded."""
    try:
        return see(function, args, kwargs)
    except Exception as exc:  # unexpected arguments
        patches.warn_once(exc)
        return None


def _try_take(take: Take, seen: PassingCall, result: Any) -> Any:
    try:
        return take(seen, result)
    except Exception as exc:  # the program gets an answer even if it cannot be read here
        seen.failed(exc)
        return result
