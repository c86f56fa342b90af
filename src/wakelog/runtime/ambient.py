"""What is around a call: the current session, the call being made, and whether what is read here can be trusted.

All of it travels in context variables, so it follows tasks, and threads that were started through `carry`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.events import Cost
from wakelog.model.trust import TRUSTS, Trust, distrust

P = ParamSpec("P")
R = TypeVar("R")


class Mark(msgspec.Struct, frozen=True):
    """How far something can be trusted, and where it came from."""

    trust: Trust = "trusted"
    source: str = ""

    def __post_init__(self) -> None:
        if self.trust not in TRUSTS:
            raise InvalidInputError(
                f"{self.trust!r} is not a trust", kind="bad-trust", hint=f"one of {', '.join(TRUSTS)}"
            )

    def lowered(self, other: Mark) -> Mark:
        """The less trusted of two, with its source."""
        return other if distrust(other.trust) > distrust(self.trust) else self


TRUSTED = Mark()


class Call:
    """The call that is being made: what a tool can ask about itself, and report."""

    def __init__(self, action: str, tool: str, key: str, attempt: int = 1) -> None:
        self.action = action
        self.tool = tool
        self.key = key
        """Pass it to the other side, which then does the same thing only once."""
        self.attempt = attempt
        self.cost = Cost()

    def again(self) -> Call:
        """The next try of the same call."""
        return Call(self.action, self.tool, self.key, self.attempt + 1)

    def spend(self, *, tokens_in: int = 0, tokens_out: int = 0, usd_micros: int = 0) -> None:
        """Reports what the call used up; adds to what was reported before."""
        before = self.cost
        self.cost = Cost(
            before.tokens_in + tokens_in,
            before.tokens_out + tokens_out,
            before.usd_micros + usd_micros,
            before.duration_us,
        )


_session: contextvars.ContextVar[Any] = contextvars.ContextVar("wakelog.session", default=None)
_call: contextvars.ContextVar[Call | None] = contextvars.ContextVar("wakelog.call", default=None)
_mark: contextvars.ContextVar[Mark] = contextvars.ContextVar("wakelog.mark", default=TRUSTED)
_replay: contextvars.ContextVar[Any] = contextvars.ContextVar("wakelog.replay", default=None)


def current() -> Any:
    """The session whose turn is open here, or None."""
    return _session.get()


def enter_session(session: Any) -> Any:
    """Makes a session the current one; returns the one before, to be put back in the same way."""
    before = _session.get()
    _session.set(session)
    return before


def replaying() -> Any:
    """The runtime of the replay that is open here, or None."""
    return _replay.get()


def enter_replay(runtime: Any) -> Any:
    """Lets a replay's runtime answer here; returns the one before, to be put back in the same way."""
    before = _replay.get()
    _replay.set(runtime)
    return before


def answering(session: Any) -> Any:
    """The runtime that answers calls of a session here. While a replay is open that is the replay's, also for tools
    that were bound to another session before, unless that one has a turn of its own open."""
    replay = _replay.get()
    return session.runtime if replay is None or current() is session else replay


def inside() -> str:
    """The action whose tool is running here; empty when none is."""
    call = _call.get()
    return "" if call is None else call.action


def current_call() -> Call | None:
    """Inside a tool: the call being made, with its idempotency key; elsewhere None."""
    return _call.get()


@contextlib.contextmanager
def in_call(call: Call) -> Iterator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


@contextlib.contextmanager
def untrusted(source: str, trust: Trust = "untrusted") -> Iterator[None]:
    """Everything recorded inside is marked as coming from `source`, and so is what rests on it."""
    token = _mark.set(_mark.get().lowered(Mark(trust, source)))
    try:
        yield
    finally:
        _mark.reset(token)


def mark_here() -> Mark:
    return _mark.get()


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """`function` for another thread or an executor, taking with it what is around this line."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return carried
