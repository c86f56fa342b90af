"""Every kind of event, as a typed value.

An event says what happened. The header that the log adds says who recorded it, when, and why (records.py). The fields
here are the *authored* part: they are stored in the erasable body, with the delta that the log computes from the event
and the current state (state/effects.py).

The kinds are a closed core that only grows. Foreign kinds start with `x.` and are kept unchanged. So are kinds and
fields of a newer version: they decode to `Foreign`, whose `data` is the whole body.

Amounts are integers throughout (micro-dollars, microseconds, tokens), so that sums are exact in every language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec

from wakelog.model.trust import Trust as Trust
from wakelog.model.values import INT_MAX, Value

Effect = Literal["model", "pure", "read", "write", "external"]
"""What a call does to the world. The default is `external`, which is never silently repeated."""

Severity = Literal["info", "warning", "error", "alarm"]
"""How much a flag matters: good to know, worth a look, something went wrong, a person must look now."""

Amount = Annotated[int, msgspec.Meta(ge=-INT_MAX, le=INT_MAX)]
"""An integer that every JSON reader reads exactly."""

NOT_SEARCHED = frozenset(
    [
        *("action", "inside", "group", "request", "session", "parent", "spawner", "key", "handle", "holder"),
        *("tool", "effect", "role"),
        *("hash", "input_hash", "context_hash", "state_hash", "last_hash", "data_schema", "flag", "rule", "limit"),
        *("outcome", "mode", "change", "media", "category", "severity", "stop_reason", "occurred_at", "cost"),
        *("erased", "base", "markers", "targets", "target", "foreign_kind"),
        *("before_hash", "after_hash", "before_mode", "after_mode"),
    ]
)
"""Fields that are not searched for secrets (redaction/): ids, hashes, positions, choices from closed lists, and copies
of what the log already has, which must stay equal."""

E = TypeVar("E", bound="Event")

KINDS: dict[str, type[Event]] = {}
"""kind → event class. `core` fills it."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What all events share: the recorded reason, and the caller's own time (microseconds; 0 if not given)."""

    kind: ClassVar[str] = ""
    payload_fields: ClassVar[tuple[str, ...]] = ()
    """Fields whose large values are stored as payloads instead of inside the body."""

    why: str = ""
    occurred_at: Amount = 0


class Foreign(Event, frozen=True, gc=False):
    """An event of a kind this version does not know, or whose body was erased or does not fit its kind."""

    foreign_kind: str
    data: dict[str, Value]


class Cost(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What something cost. All integers; zero means "not reported"."""

    tokens_in: Amount = 0
    tokens_out: Amount = 0
    usd_micros: Amount = 0
    duration_us: Amount = 0
    cache_read_tokens: Amount = 0
    """Of `tokens_in`, those read from a provider's cache."""
    cache_write_tokens: Amount = 0
    """Of `tokens_in`, those written to it."""
    reasoning_tokens: Amount = 0
    """Of `tokens_out`, those that are known to be reasoning."""
    price: str = ""
    """The price used to compute the money; empty if the money was reported, or no price is known."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A typed error, so that code can check `type` instead of reading the message."""

    type: str
    message: str = ""
    retryable: bool = False


def core(kind: str, *, payloads: tuple[str, ...] = ()) -> Callable[[type[E]], type[E]]:
    """Registers an event class in the core under its kind."""

    def enter(cls: type[E]) -> type[E]:
        cls.kind = kind
        cls.payload_fields = payloads
        KINDS[kind] = cls
        return cls

    return enter
