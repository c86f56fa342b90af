"""A tool is a function with its policy. Here is how one is asked for, bound to a session, and driven.

`Given` is what somebody asks for, `Running` a call between intent and outcome, `End` how one try ended. What happens
around a call is a generator of steps (call.py); `drive` walks through it and blocks, `drive_async` awaits.

A bound function keeps name, signature and types, and a coroutine function stays one. `session.tool` binds to that
session; `wakelog.tool` binds when it is called, to the session whose turn is open there, and is the plain function
where none is, so that library code can be decorated safely.

A call of a tool that does not exist, or with arguments it does not take, is a call all the same: recorded as failed, so
that the model can be told. Nothing runs.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import functools
import inspect
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.events import Cost, Effect, Failure, Trust
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.runtime.ambient import CurrentCall, Ranges, TrustMark, current, in_call
from wakelog.runtime.bridge import in_thread, in_thread_to_the_end, on_asyncio
from wakelog.runtime.policy import Policy, Uncertain
from wakelog.runtime.values import bind

if TYPE_CHECKING:
    from wakelog.runtime.call import Runtime

P = ParamSpec("P")
R = TypeVar("R")
REFUSED = Policy(effect="pure")


class Tool:
    """A function, what it is called, and how it is to be called."""

    def __init__(self, function: Callable[..., Any], policy: Policy, name: str = "") -> None:
        self.function = function
        self.policy = policy
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


class Pause(Do):
    """The same, without anything to record: a cancellation need not wait for it."""


class Run:
    """The function itself."""

    __slots__ = ("call", "function", "late", "timeout_s")

    def __init__(self, function: Callable[[], Any], call: CurrentCall, timeout_s: float | None) -> None:
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
            hint="make it an `async def`, or await it with session.aio.call or session.aio.model",
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
    """A coroutine's result; a plain function is given a worker thread."""
    function = step.function
    target = function.func if isinstance(function, functools.partial) else function
    if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None)):  # noqa: B004
        return await function()
    late = step.late = Late()
    result = await in_thread(late.run, function)
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


class CallRequest(msgspec.Struct):
    """What somebody asks for: a tool, its arguments by name, and how to run it."""

    tool: Tool
    arguments: dict[str, Any]
    run: Callable[[], Any]
    action: str = ""
    """The caller's own id of this call, such as a model's tool-call id: the same id is the same call."""
    stored: dict[str, Value] | None = None
    """What to store as the input, where that is not the arguments."""
    params: dict[str, Value] = {}
    context_hash: str = ""
    derived_from: Ranges = ()
    exposure: TrustMark | None = None
    why: str = ""
    labels: dict[str, str] = {}
    """What a model call works with."""
    check: Callable[[], None] | None = None
    """Asked before something new begins, after the budget; it may refuse."""


class Next(enum.Enum):
    """What to do with a call whose outcome is not known yet."""

    RUN = "its intent is recorded: run it"
    WAIT = "somebody must approve it first"
    ASK = "nothing is known of it: ask for it"


class RunningCall(msgspec.Struct):
    """A call between its intent and its outcome."""

    call: CurrentCall
    given: CallRequest
    input: dict[str, Value]
    input_hash: str
    mark: TrustMark
    has_key: bool = False
    """Whether the caller says what makes it the same call: a key, or an id."""
    is_open: bool = True
    """Whether its intent is recorded; a pure call is recorded when it is over."""
    is_started: bool = False
    """Whether the log may say that it runs."""
    picture: Any = None
    """The files as they were before."""
    asked: Seq = 0
    """Where it was asked for, when it waits for an approval."""
    seen: Seq = 0
    """How far the log was read for one."""


class End(msgspec.Struct):
    """How one try of a call ended."""

    how: Literal["succeeded", "failed", "timed_out", "interrupted"]
    result: Any = None
    error: Failure | None = None
    exception: BaseException | None = None
    took_us: int = 0
    late: Late | None = None
    output: Value = None
    """What is stored of the result, or of as much of a stream as came."""
    stream: dict[str, Value] = {}
    """How a stream came; empty for any other call."""
    is_open: bool = False
    """Whether what the tool raised says nothing about its effect."""

    @property
    def is_known(self) -> bool:
        """Whether it is known what became of the effect."""
        return self.how == "succeeded" or (self.how == "failed" and not self.is_open)


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


def bound(tool: Tool, runtime_here: Callable[[], Runtime | None]) -> Callable[..., Any]:
    """The function with the recording around it."""
    function = tool.function

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRequest:
        return CallRequest(tool, tool.arguments(args, kwargs), functools.partial(function, *args, **kwargs))

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
    """Decorates a function so that its calls are recorded in the session whose turn is open. Where no turn is open, it
    stays a plain function.

    Takes the keywords of `Session.tool`.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return cast("Callable[P, R]", bound(Tool(target, Policy(**policy), name), _runtime_here))

    return decorate if function is None else decorate(function)


def _runtime_here() -> Runtime | None:
    session = current()
    return None if session is None else session._runtime


def refused(tool: str, input: Any, id: str, error: InvalidInputError) -> CallRequest:
    """A call that fails with this error."""
    try:
        arguments = {str(name): value for name, value in dict(input or {}).items()}
    except (TypeError, ValueError):
        arguments = {"input": input}
    run = functools.partial(_fail, error)
    return CallRequest(Tool(run, REFUSED, tool or "unnamed"), arguments, run, action=id)


def _fail(error: InvalidInputError) -> NoReturn:
    raise error


def unknown_tool(name: str, tools: Iterable[str]) -> InvalidInputError:
    known = sorted(tools)
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return InvalidInputError(
        f"there is no tool {name!r} here{meant} (there is: {', '.join(known) or 'none yet'})",
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
