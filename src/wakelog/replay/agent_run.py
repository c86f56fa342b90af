"""Runs an agent again on the recorded inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wakelog.errors import InvalidInputError, WakelogError
from wakelog.model.values import Value
from wakelog.user_code import import_module, load_attribute

if TYPE_CHECKING:
    from wakelog.replay.replay import Replay

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def load_agent(name: str) -> Callable[..., Any]:
    """The function that `module:function` names, in the working folder or installed."""
    misnamed = InvalidInputError(
        f"{name!r} does not name a function",
        kind="bad-agent",
        hint="write it as module:function, such as app.agent:run",
    )
    try:
        attribute = load_attribute(name, misnamed)
    except (ImportError, AttributeError) as exc:
        raise InvalidInputError(
            f"there is no {name}: {exc}", kind="bad-agent", hint="the module must be importable from this folder"
        ) from exc
    if not callable(attribute):
        raise InvalidInputError(f"{name} is not a function", kind="bad-agent")
    return attribute  # type: ignore[no-any-return]


def load_tools(places: Iterable[str], wanted: Iterable[str]) -> dict[str, Callable[..., Any]]:
    """The functions for the wanted tools. Each place is `tool=module:function`, or a module with functions named like
    the tools."""
    results: dict[str, Callable[..., Any]] = {}
    for text in places:
        tool, equals, function = text.partition("=")
        if equals:
            results[tool] = load_agent(function)
            continue
        try:
            module = import_module(text)
        except ImportError as exc:
            raise InvalidInputError(
                f"there is no module {text}: {exc}",
                kind="bad-agent",
                hint="name a module that can be imported from this folder, or TOOL=MODULE:FUNCTION",
            ) from exc
        results |= {name: value for name in wanted if callable(value := getattr(module, name, None))}
    return results


def drive_agent(replay: Replay[Any], agent: str | Callable[..., Any]) -> Any:
    """Runs an agent to its end. For one that is called for each turn, returns the last answer."""
    function = load_agent(agent) if isinstance(agent, str) else agent
    if inspect.iscoroutinefunction(function):
        import asyncio

        return asyncio.run(drive_agent_async(replay, function))
    answer = None
    with replay.answering():
        for place, arguments in _calls(replay, function):
            try:
                answer = function(replay.session, *arguments)
            except Exception as exc:
                if not _is_expected(replay, place, exc):
                    raise
    return answer


async def drive_agent_async(replay: Replay[Any], agent: str | Callable[..., Any]) -> Any:
    """Like `drive_agent`, awaited."""
    function = load_agent(agent) if isinstance(agent, str) else agent
    answer = None
    with replay.answering():
        for place, arguments in _calls(replay, function):
            try:
                answer = await function(replay.session, *arguments)
            except Exception as exc:
                if not _is_expected(replay, place, exc):
                    raise
    return answer


def _calls(replay: Replay[Any], function: Callable[..., Any]) -> Iterator[tuple[int, tuple[Value, ...]]]:
    """The number of each turn to run, and the arguments of the function after the session."""
    if _takes_input(function):
        yield from ((place, (value,)) for place, value in enumerate(replay.inputs, 1))
    else:
        yield len(replay.turns), ()


def _takes_input(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [p for p in parameters if p.kind in _POSITIONAL and p.default is inspect.Parameter.empty]
    if len(required) not in (1, 2):
        raise InvalidInputError(
            f"{getattr(function, '__name__', function)} takes {len(required)} arguments, and a replay has two to give",
            kind="bad-agent",
            hint="it is called as function(session, input) for each turn, or as function(session) once",
        )
    return len(required) == 2


def _is_expected(replay: Replay[Any], place: int, error: Exception) -> bool:
    """Whether the recorded turn failed in the same way."""
    turn = replay.turns[place - 1] if 0 < place <= len(replay.turns) else None
    is_ours = isinstance(error, WakelogError) and error is replay.runtime.failed
    return not is_ours and turn is not None and turn.outcome == "failed" and turn.error == type(error).__name__
