"""How to call one tool: its effect on the world, and what to do when something goes wrong.

The parts that recovery needs after a crash are stored with the request (`stored()`). So a call is settled by the policy
that it was made with, even if the code has changed since.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.events import Cost, Effect, Trust
from wakelog.model.values import Value
from wakelog.runtime.ambient import TrustMark

Uncertain = Literal["ask", "retry", "probe", "fail"]
"""What to do with a call whose outcome is unknown: leave it to a person, send it again with the same key (the other
side must honour the key), ask the other side through `probe`, or count it as failed."""

SAFE: frozenset[str] = frozenset({"model", "pure", "read"})
"""Effects that may be repeated without asking anybody."""

READS: frozenset[str] = frozenset({"read", "external"})
"""Effects whose results come from outside. They count as unverified unless the policy says otherwise."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How to call a tool: effect, timeout, retries, key, approval, trust, cost."""

    effect: Effect = "external"
    timeout_s: float | None = None
    retry: int = 0
    """How many more tries after the first one failed. A call whose effect may have happened is tried again only if it
    is safe to repeat or has a key."""
    retry_on: tuple[type[BaseException], ...] = (TimeoutError, ConnectionError)
    backoff_s: float = 0.5
    """The wait before the second try. It doubles each time, up to `backoff_max_s`, with jitter."""
    backoff_max_s: float = 30.0
    key: Callable[..., str] | None = None
    """Makes the idempotency key from the arguments. Calls with the same key are one call, made once per session."""
    uncertain: Uncertain = "ask"
    probe: Callable[..., Any] | None = None
    """Called as `probe(key, **arguments)`. Returns a `Found`, or None if the other side does not know either."""
    approval: bool | Callable[..., bool] = False
    """Whether a person must approve the call first. A function decides by the arguments."""
    trust: Trust | None = None
    """How far its results can be trusted. By default results from outside (effect read or external) are unverified, and
    others are trusted."""
    source: str = ""
    """Where its results come from. By default `tool:NAME` if they are not trusted."""
    redact: tuple[str, ...] = ()
    """Arguments that are never stored."""
    summary: Callable[[Any], str] | None = None
    cost: Callable[[Any], Cost] | None = None
    """Computes the cost from the result."""

    def __post_init__(self) -> None:
        listed: object = self.retry_on
        if isinstance(listed, list):
            msgspec.structs.force_setattr(self, "retry_on", tuple(listed))
        for value, known, what in (
            (self.effect, get_args(Effect), "an effect"),
            (self.trust, (None, *get_args(Trust)), "a trust"),
            (self.uncertain, get_args(Uncertain), "what to do when uncertain"),
        ):
            if value not in known:
                raise InvalidInputError(
                    f"{value!r} is not {what}",
                    kind="bad-policy",
                    hint=f"one of {', '.join(map(str, filter(None, known)))}",
                )
        if self.uncertain == "probe" and self.probe is None:
            raise InvalidInputError(
                'uncertain="probe" needs a probe', kind="bad-policy", hint="pass probe=a function of the key"
            )
        for name, is_right, form in (
            ("retry", _is_number(self.retry, int) and self.retry >= 0, "a whole number, 0 or more"),
            ("timeout_s", self.timeout_s is None or (_is_number(self.timeout_s) and self.timeout_s > 0), "above 0"),
            ("backoff_s", _is_number(self.backoff_s) and self.backoff_s >= 0, "a number, 0 or more"),
            ("backoff_max_s", _is_number(self.backoff_max_s) and self.backoff_max_s >= 0, "a number, 0 or more"),
            ("retry_on", _are_errors(self.retry_on), "a tuple of exception classes, such as (TimeoutError,)"),
            ("key", self.key is None or callable(self.key), "a function of the arguments"),
            ("probe", self.probe is None or callable(self.probe), "a function of the key and the arguments"),
            ("approval", isinstance(self.approval, bool) or callable(self.approval), "a bool, or a function"),
            ("summary", self.summary is None or callable(self.summary), "a function of the result"),
            ("cost", self.cost is None or callable(self.cost), "a function of the result"),
            ("source", isinstance(self.source, str), "a text, such as web:blog.example"),
            ("redact", not isinstance(self.redact, str), 'names of arguments, such as ("password",)'),
        ):
            if not is_right:
                raise InvalidInputError(
                    f"{name}={getattr(self, name)!r} does not fit a tool"[:200],
                    kind="bad-policy",
                    hint=f"{name} is {form}",
                )

    @property
    def is_safe(self) -> bool:
        """Whether the call may simply be made again when its outcome is unknown."""
        return self.effect in SAFE or self.uncertain == "retry"

    def mark(self, tool: str) -> TrustMark:
        """How far a result of the tool can be trusted, and where it comes from."""
        trust: Trust = self.trust or ("unverified" if self.effect in READS else "trusted")
        return TrustMark(trust, self.source or ("" if trust == "trusted" else f"tool:{tool}"))

    @property
    def repeats(self) -> bool:
        """Whether `retry` also applies when the outcome is unknown: the call is safe, or the other side knows its
        key."""
        return self.is_safe or self.key is not None

    def wait_s(self, tried: int) -> float:
        """How long to wait after try number `tried`. The jitter is at most half, so that many callers spread out."""
        longest: float = min(self.backoff_max_s, self.backoff_s * 2 ** (tried - 1))
        return longest * random.uniform(0.5, 1.0)

    def stored(self) -> dict[str, Value]:
        """The part that is stored with the request."""
        kept: dict[str, Value] = {}
        if self.uncertain != "ask":
            kept["uncertain"] = self.uncertain
        if self.timeout_s is not None:
            kept["timeout_s"] = self.timeout_s
        if self.retry:
            kept["retry"] = self.retry
        return kept


def _are_errors(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(e, type) and issubclass(e, BaseException) for e in value)


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds or (int, float)) and not isinstance(value, bool)


class Found(msgspec.Struct, frozen=True):
    """A probe's answer about a call whose outcome was unknown."""

    outcome: Literal["succeeded", "failed", "never_ran"]
    output: Any = None
    why: str = ""
