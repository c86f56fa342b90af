"""The context of a call: the current session, the current call, and how far its input can be trusted.

Session, call and trust mark are context variables, so they follow tasks, and threads started through `carry`.

`Flow` records what depends on what, so that the model need not say it. A model call depends on what was in its window;
its answer is only as trusted as the least trusted part of that (its *exposure*). Whatever the agent then asks for,
decides or notes in the same turn was caused by that answer and inherits its mark. A tool's result has the trust that
its policy gives it; for a pure tool, at most the trust of its input.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.trust import TRUSTS, Trust, distrust

P = ParamSpec("P")
R = TypeVar("R")
_AMOUNT_MAX = 2**52


class TrustMark(msgspec.Struct, frozen=True):
    """How far something can be trusted, and where it came from."""

    trust: Trust = "trusted"
    source: str = ""

    def __post_init__(self) -> None:
        if self.trust not in TRUSTS:
            raise InvalidInputError(
                f"{self.trust!r} is not a level of trust", kind="bad-trust", hint=f"one of {', '.join(TRUSTS)}"
            )

    def lower_to(self, other: TrustMark) -> TrustMark:
        """The less trusted of two, with its source."""
        if other.trust == self.trust:
            return self
        return other if distrust(other.trust) > distrust(self.trust) else self


TRUSTED = TrustMark()


class CurrentCall:
    """The call that a tool is running in: what the tool can read about it, and report."""

    def __init__(self, action: str, tool: str, key: str, attempt: int = 1) -> None:
        self.action = action
        self.tool = tool
        self.key = key
        """The idempotency key. Pass it to the other side, so that it performs the call only once."""
        self.attempt = attempt
        self.cost = Cost()

    def next_try(self) -> CurrentCall:
        """The next try of the same call."""
        return CurrentCall(self.action, self.tool, self.key, self.attempt + 1)

    def spend(self, *, tokens_in: int = 0, tokens_out: int = 0, usd_micros: int = 0) -> None:
        """Reports what the call used. Repeated reports add up. Fractions are rounded."""
        before = self.cost
        self.cost = Cost(
            before.tokens_in + whole_amount("tokens_in", tokens_in),
            before.tokens_out + whole_amount("tokens_out", tokens_out),
            before.usd_micros + whole_amount("usd_micros", usd_micros),
            before.duration_us,
        )


def whole_amount(name: str, value: object) -> int:
    """Returns an amount of a cost as the log stores it. A cost that the log refuses would lose the call's outcome."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _AMOUNT_MAX:
        raise InvalidInputError(
            f"{name}={value!r} is not an amount"[:200],
            kind="bad-budget",
            hint="use a whole number, 0 or more; usd_micros are millionths of a dollar",
        )
    return round(value)


_session: contextvars.ContextVar[Any] = contextvars.ContextVar("wakelog.session", default=None)
_call: contextvars.ContextVar[CurrentCall | None] = contextvars.ContextVar("wakelog.call", default=None)
_mark: contextvars.ContextVar[TrustMark] = contextvars.ContextVar("wakelog.mark", default=TRUSTED)
_replay: contextvars.ContextVar[Any] = contextvars.ContextVar("wakelog.replay", default=None)


def current() -> Any:
    """Returns the session whose turn is open here, or None."""
    return _session.get()


def enter_session(session: Any) -> Any:
    """Makes a session the current one and returns the previous one, to be restored the same way."""
    before = _session.get()
    _session.set(session)
    return before


def current_replay() -> Any:
    """Returns the runtime of the replay that is open here, or None."""
    return _replay.get()


def enter_replay(runtime: Any) -> Any:
    """Makes a replay's runtime answer calls here and returns the previous one, to be restored the same way."""
    before = _replay.get()
    _replay.set(runtime)
    return before


def runtime_for(session: Any) -> Any:
    """Returns the runtime for a session's calls. While a replay is open it is the replay's, also for tools that were
    bound to another session, unless that session has an open turn here."""
    replay = _replay.get()
    return session._runtime if replay is None or current() is session else replay


def current_action() -> str:
    """Returns the action whose tool is running here; empty if none is."""
    call = _call.get()
    return "" if call is None else call.action


def current_call() -> CurrentCall | None:
    """Returns the current call with its idempotency key, inside a tool; None elsewhere."""
    return _call.get()


@contextlib.contextmanager
def in_call(call: CurrentCall) -> Iterator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


@contextlib.contextmanager
def untrusted(source: str, trust: Trust = "untrusted") -> Iterator[None]:
    """Marks everything recorded inside this `with`, and everything that depends on it, as coming from `source`."""
    token = _mark.set(_mark.get().lower_to(TrustMark(trust, source)))
    try:
        yield
    finally:
        _mark.reset(token)


def current_mark() -> TrustMark:
    return _mark.get()


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """Wraps `function` for another thread or an executor, so that it runs in the context of this line."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return carried


Ranges = tuple[tuple[Seq, Seq], ...]


class Flow:
    """Tracks the newest model answer of the open turn: it is the cause of what the agent does next, and sets its
    trust."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.cause: Seq = 0
        self.mark = TRUSTED
        self._results: dict[str, tuple[Seq, TrustMark]] = {}

    def new_turn(self) -> None:
        """Starts a turn: the model has not answered yet."""
        self.cause, self.mark = 0, TRUSTED
        self._results.clear()

    def add_result(self, action: str, seq: Seq, mark: TrustMark, *, is_model_answer: bool) -> None:
        """Notes a call's result: a message that passes it to the model depends on it. The agent now acts on a model's
        answer."""
        self._results[action] = (seq, mark)
        if is_model_answer:
            self.cause, self.mark = seq, mark

    def draft(
        self,
        event: ev.Event,
        *,
        actor: str = "agent",
        mark: TrustMark = TRUSTED,
        derived_from: Ranges = (),
        answers: str = "",
    ) -> EventDraft:
        """Makes a draft with cause and trust. What the agent does depends on the model's newest answer; a message that
        `answers` a call depends on its result. `mark` is the trust of the events it was derived from."""
        mark = mark.lower_to(_mark.get())
        cause = 0
        if answers in self._results:
            seq, of_result = self._results[answers]
            derived_from, mark = (*derived_from, (seq, seq)), mark.lower_to(of_result)
        if actor == "agent":
            cause, mark = self.cause, mark.lower_to(self.mark)
        return EventDraft(
            event, actor=actor, cause=cause, derived_from=derived_from, source=mark.source, trust=mark.trust
        )

    def window(self) -> tuple[Ranges, TrustMark]:
        """What a model may have seen if its caller did not say: everything in view, trusted as little as the least
        trusted source the session ever met. The state keeps those sources."""
        least = TRUSTED
        for source, met in self.log.part("trust").items():
            least = least.lower_to(TrustMark(met["trust"], source))
        return tuple(self.log.view()), least
