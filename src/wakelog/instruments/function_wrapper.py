"""A client's function with somebody beside it: it is called as it would be, and what it gives or raises goes on as it
is. `see` looks at the arguments and says whether there is something to record; `take` looks at the result.

What a request brings is written while the provider works, so only the outcome is waited for. A call of a model has no
effect that its intent would have to come before.
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
"""What the caller gets for a result: the same object, where that can be listened to."""


def watched(see: See, take: Take, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        seen = looked(see, function, args, kwargs)
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
        result = _taken(take, seen, result)
        patches.wait(seen)
        return result

    return call


def watched_async(see: See, take: Take, function: Function) -> Function:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        seen = looked(see, function, args, kwargs)
        if seen is None:
            return await function(*args, **kwargs)
        token = patches.enter_call()
        try:
            result = await function(*args, **kwargs)
        except BaseException as exc:
            seen.failed(exc)
            if isinstance(exc, Exception):  # a cancellation is not held up
                await patches.wait_async(seen)
            raise
        finally:
            patches.leave_call(token)
        result = _taken(take, seen, result)
        await patches.wait_async(seen)
        return result

    return call


def looked(see: See, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PassingCall | None:
    """What `see` says, if it can."""
    try:
        return see(function, args, kwargs)
    except Exception as exc:  # arguments of a kind that nobody thought of
        patches.warn_once(exc)
        return None


def _taken(take: Take, seen: PassingCall, result: Any) -> Any:
    try:
        return take(seen, result)
    except Exception as exc:  # an answer that cannot be read is the program's all the same
        seen.failed(exc)
        return result
