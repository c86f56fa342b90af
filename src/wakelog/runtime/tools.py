"""A tool is a function with its policy. This file holds the values of a call, and the `tool` decorator.

`CallRequest` is what the caller asks for, `RunningCall` a call between intent and outcome, `End` how one try ended.

A decorated function keeps its name, signature and types, and a coroutine function stays one. `session.tool` binds it to
that session. `wakelog.tool` looks for the session when the function is called: the one whose turn is open. If there is
none, it calls the plain function, so library code can be decorated safely.

A call of an unknown tool, or with wrong arguments, is recorded as a failed call, so that the model learns of it.
Nothing runs.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.events import Cost, Effect, Failure, Trust
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.runtime.ambient import CurrentCall, Ranges, TrustMark, current
from wakelog.runtime.driver import ThreadedRun, drive, drive_async
from wakelog.runtime.policy import SAFE, Policy, Uncertain
from wakelog.runtime.values import bind, hide_arguments

if TYPE_CHECKING:
    from wakelog.runtime.call import Runtime
    from wakelog.runtime.resume import OpenTurn

P = ParamSpec("P")
R = TypeVar("R")


class Tool:
    """A function with its name and its policy."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str = "") -> None:
        self.function = function
        self.policy = policy
        if not callable(function):
            raise InvalidInputError(
                f"a tool is a function, not {function!r}"[:200],
                kind="bad-tool",
                hint='write @session.tool or @session.tool(effect="read") above a function; name="…" renames it',
            )
        self.name = name or getattr(function, "__name__", type(function).__name__)
        is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if is_generator and policy.effect != "model":  # a model's answer may come as a stream (streams.py)
            raise InvalidInputError(
                f"{self.name} is a generator: it would run after its call is recorded as finished",
                kind="generator-tool",
                hint="return a list, or make the function that reads it the tool",
            )
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose call is a coroutine
        )

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return bind(self.function, args, kwargs)

    def key_of(self, arguments: dict[str, Any]) -> str:
        """Makes the idempotency key of a call; empty if the tool has no key function."""
        if self.policy.key is None:
            return ""
        key: Any = self.policy.key(**arguments)
        if key is None or key == "":  # then calls that differ would count as one, or equal calls as two
            raise InvalidInputError(
                f"the key function of {self.name} returned {key!r}, which is not a key",
                kind="bad-policy",
                hint="return a text that is the same for the same effect, and different for every other",
            )
        return str(key)


class CallRequest(msgspec.Struct):
    """What the caller asks for: a tool, its arguments by name, and how to run it."""

    tool: Tool
    arguments: dict[str, Any]
    run: Callable[[], Any]
    action: str = ""
    """The caller's id for this call, such as a model's tool-call id: the same id means the same call."""
    key: str | None = None
    """Its idempotency key; None if it was not made from the arguments yet."""
    stored: dict[str, Value] | None = None
    """What to store as the input; None means the arguments."""
    params: dict[str, Value] = {}
    context_hash: str = ""
    derived_from: Ranges = ()
    exposure: TrustMark | None = None
    why: str = ""
    labels: dict[str, str] = {}
    """The labels of a model call (model_labels.py)."""
    check: Callable[[], None] | None = None
    """Called before a new call begins, after the budget check; it may raise."""

    @property
    def has_effects(self) -> bool:
        return self.tool.policy.effect not in SAFE

    def stored_input(self) -> dict[str, Value]:
        """The input as the log stores it."""
        return hide_arguments(self.arguments, self.tool.policy.redact) if self.stored is None else self.stored


class Next(enum.Enum):
    """What to do next with a call that has no outcome yet."""

    RUN = "its intent is recorded: run it"
    WAIT = "it needs approval first"
    REQUEST = "the log has no call to continue: record its intent"


class RunningCall(msgspec.Struct):
    """A call between its intent and its outcome."""

    call: CurrentCall
    request: CallRequest
    input: dict[str, Value]
    input_hash: str
    mark: TrustMark
    turn: OpenTurn | None = None
    """The turn that it belongs to. It may end before the call begins."""
    has_key: bool = False
    """Whether the caller identified the call, by a key or an id."""
    has_intent: bool = True
    """Whether its intent is recorded. A pure call is recorded in one event, when it is over."""
    is_started: bool = False
    """Whether the log may say that it runs."""
    files_before: Any = None
    """The captured files as they were before the call."""
    requested_at: Seq = 0
    """The event of its request, if it waits for approval."""
    read_upto: Seq = 0
    """How far the log was read while waiting for approval."""


class End(msgspec.Struct):
    """How one try of a call ended."""

    how: Literal["succeeded", "failed", "timed_out", "interrupted"]
    result: Any = None
    error: Failure | None = None
    exception: BaseException | None = None
    took_us: int = 0
    thread: ThreadedRun | None = None
    output: Value = None
    """The result as it is stored; for a stream, what arrived."""
    stream: dict[str, Value] = {}
    """The shape and number of parts of a stream; empty for any other call."""
    is_effect_unknown: bool = False
    """Whether the tool raised an error that does not say whether the effect happened."""

    @property
    def is_known(self) -> bool:
        """Whether it is known if the effect happened."""
        return self.how == "succeeded" or (self.how == "failed" and not self.is_effect_unknown)


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


def record_calls(tool: Tool, find_runtime: Callable[[], Runtime | None]) -> Callable[..., Any]:
    """Wraps the tool's function so that its calls are recorded. Without a runtime, the plain function is called."""
    function = tool.function

    def make_request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRequest:
        return CallRequest(tool, tool.arguments(args, kwargs), functools.partial(function, *args, **kwargs))

    if tool.is_async:

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            runtime = find_runtime()
            if runtime is None:
                return await function(*args, **kwargs)
            outcome = await drive_async(runtime.run_call(make_request(args, kwargs)))
            return outcome.unwrap(tool.policy.retry_on)

        awaited.tool = tool  # type: ignore[attr-defined]
        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        runtime = find_runtime()
        if runtime is None:
            return function(*args, **kwargs)
        return drive(runtime.run_call(make_request(args, kwargs))).unwrap(tool.policy.retry_on)

    called.tool = tool  # type: ignore[attr-defined]
    return called


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(*, name: str = "", **policy: Unpack[Policies]) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(function: Any = None, /, *, name: str = "", **policy: Any) -> Any:
    """Decorates a function so that its calls are recorded in the session whose turn is open. Where no turn is open, it
    stays a plain function.

    Takes the keywords of `Session.tool`.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", record_calls(Tool(target, Policy(**policy), name), _current_runtime))

    return decorate if function is None else decorate(function)


def _current_runtime() -> Runtime | None:
    session = current()
    return None if session is None else session._runtime


def refused_call(tool: str, input: Any, id: str, error: InvalidInputError) -> CallRequest:
    """Makes a call that runs nothing and fails with this error."""
    try:
        arguments = {str(name): value for name, value in dict(input or {}).items()}
    except (TypeError, ValueError):
        arguments = {"input": input}
    run = functools.partial(_fail, error)
    return CallRequest(Tool(run, Policy(effect="pure"), tool or "unnamed"), arguments, run, action=id)


def _fail(error: InvalidInputError) -> NoReturn:
    raise error


def unknown_tool(name: str, tools: Iterable[str]) -> InvalidInputError:
    known = sorted(tools)
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    there = f" (the tools are {', '.join(known)})" if known else " (no tool was given yet)"
    return InvalidInputError(
        f"there is no tool {name!r} here{meant}{there}",
        kind="unknown-tool",
        hint="decorate the function with @session.tool, or pass the function itself",
    )


def bad_arguments(tool: Tool, problem: Exception) -> InvalidInputError:
    try:
        takes = str(inspect.signature(tool.function))
    except (TypeError, ValueError):
        takes = "(…)"
    return InvalidInputError(
        f"{tool.name} was not called: {problem}", kind="bad-arguments", hint=f"it is {tool.name}{takes}"
    )
