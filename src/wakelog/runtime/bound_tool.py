"""A function bound to a session: called as before, recorded by the way.

The wrapper keeps name, signature and types, and a coroutine function stays one. `session.tool` binds to that session;
`wakelog.tool` binds when it is called, to the session whose turn is open there, and is the plain function where none
is, so that library code can be decorated safely.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from wakelog.model.events import Cost, Effect, Trust
from wakelog.runtime.ambient import current
from wakelog.runtime.call import Runtime
from wakelog.runtime.call_values import Given
from wakelog.runtime.policy import Policy, Uncertain
from wakelog.runtime.tools import Tool, drive, drive_async

P = ParamSpec("P")
R = TypeVar("R")


class Policies(TypedDict, total=False):
    """The keywords of `tool`: see `Policy` for what each means."""

    effect: Effect
    timeout_s: float | None
    retry: int
    retry_on: tuple[type[BaseException], ...]
    backoff_s: float
    backoff_max_s: float
    key: Callable[..., str] | None
    uncertain: Uncertain
    probe: Callable[..., Any] | None
    approval: bool | Callable[..., bool]
    trust: Trust
    source: str
    redact: tuple[str, ...]
    summary: Callable[[Any], str] | None
    cost: Callable[[Any], Cost] | None


def bind(tool: Tool, runtime_here: Callable[[], Runtime | None]) -> Callable[..., Any]:
    """The function with the recording around it."""
    function = tool.function

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        return Given(tool, tool.arguments(args, kwargs), functools.partial(function, *args, **kwargs))

    if tool.is_async:

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            runtime = runtime_here()
            if runtime is None:
                return await function(*args, **kwargs)
            outcome = await drive_async(runtime.conduct(given(args, kwargs)))
            return outcome.unwrap(tool.policy.retry_on)

        awaited.tool = tool  # type: ignore[attr-defined]
        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        runtime = runtime_here()
        if runtime is None:
            return function(*args, **kwargs)
        return drive(runtime.conduct(given(args, kwargs))).unwrap(tool.policy.retry_on)

    called.tool = tool  # type: ignore[attr-defined]
    return called


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(*, name: str = "", **policy: Unpack[Policies]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(function: Any = None, /, *, name: str = "", **policy: Any) -> Any:
    """Records calls in the session whose turn is open where it is called; a plain function elsewhere.

    Takes the keywords of `Session.tool`.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", bind(Tool(target, Policy(**policy), name), _runtime_here))

    return decorate if function is None else decorate(function)


def _runtime_here() -> Runtime | None:
    session = current()
    return None if session is None else session.runtime
