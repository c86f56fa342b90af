"""Bodies and answers of routes that the library has no value for.

Where possible, an answer is one of the library's own values: a diff, a report, a page of the index. Times are
microseconds since the epoch, positions are event numbers, hashes are hexadecimal. A request with an unknown field is
refused; answers may get new fields.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec

from wakelog.engines.remote.wire import Question
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.described import described
from wakelog.model.events import Trust
from wakelog.model.payloads import as_ref, without_bytes
from wakelog.model.records import EventDraft, Head
from wakelog.model.values import INT_MAX, Value
from wakelog.timeline.slices import tool_of

Position = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class Query(Question, frozen=True):
    """The query string of a request."""

    def is_fixed_by_head(self) -> bool:
        """Whether the answer depends only on this query and the session's head. False if it also depends on the current
        time or on another session."""
        return True


class ChosenSessions(Query, frozen=True):
    """Which sessions to select; all given filters must match."""

    status: str | None = None
    label: str | None = None
    """A name, or `name=value`."""
    agent: str | None = None
    parent: str | None = None
    name: str | None = None
    """A pattern with `*` and `?`."""
    failed: bool | None = None
    live: bool | None = None
    pending: bool | None = None
    flagged: bool | None = None
    text: str | None = None
    """A part of the name, the id, the goal or an input."""
    since: str = ""


class At(Query, frozen=True):
    """A point of the session: a selector; empty means now."""

    at: str = ""

    def is_fixed_by_head(self) -> bool:
        return are_absolute(self.at)


def are_absolute(*selectors: str) -> bool:
    """Whether no selector is a time relative to now (`t:2h`), which means another event later."""
    return not any("t:" in selector for selector in selectors)


Number = Annotated[int, msgspec.Meta(ge=0)]


class Limits(Question, frozen=True, omit_defaults=True):
    """What may be spent: `usd` as text ("1.00"), tokens, seconds. Null removes a limit; limits that are left out
    stay."""

    usd: str | Number | msgspec.UnsetType | None = msgspec.UNSET
    tokens: Number | msgspec.UnsetType | None = msgspec.UNSET
    seconds: Number | msgspec.UnsetType | None = msgspec.UNSET

    def as_dict(self) -> dict[str, Any]:
        names = ("usd", "tokens", "seconds")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not msgspec.UNSET}


class Parent(msgspec.Struct, frozen=True):
    """Where a fork leaves its parent."""

    session: str
    at: int


class HeadAnswer(msgspec.Struct, frozen=True):
    """A session's head."""

    session: str
    name: str
    seq: int
    hash: str
    at: int
    epoch: int
    status: str
    turn: int
    commit_id: str
    parent: Parent | None = None

    @classmethod
    def of(cls, head: Head) -> HeadAnswer:
        same = {name: getattr(head, name) for name in cls.__struct_fields__ if name not in ("hash", "parent")}
        parent = Parent(head.fork.parent, head.fork.at) if head.fork else None
        return cls(**same, hash=head.hash.hex(), parent=parent)


class EventRecord(msgspec.Struct, frozen=True):
    """One event: header, chain, body and what it changed in the state."""

    session: str
    seq: int
    kind: str
    at: int
    turn: int
    attempt: int
    actor: str
    tool: str
    """The tool, for events of a call; else empty."""
    cause: int
    derived_from: tuple[tuple[int, int], ...]
    source: str
    trust: str
    commit_id: str
    hash: str
    """The chain's hash after this event."""
    intact: bool
    """False: the content was erased or pruned."""
    body: dict[str, Value]
    """What the writer sent. A payload is a reference, `{"$payload": sha256, "size", "media"}`, or its content if the
    request asked for it."""
    delta: list[dict[str, Value]]
    """What it changed in the state: RFC 6902."""


_HEADER_FIELDS = ("at", "turn", "attempt", "actor", "cause", "derived_from", "source", "trust")


def record_of(log: Log, entry: Entry, tools: dict[str, str], payload_max: int = 0) -> EventRecord:
    """The event as the API shows it. References to payloads of at most `payload_max` bytes are replaced by the
    content."""
    body = {name: _resolve(log, entry, value, payload_max) for name, value in entry.body.items() if name != "delta"}
    return EventRecord(
        session=log.id,
        seq=entry.seq,
        kind=entry.kind,
        tool=tool_of(log, entry, tools),
        **{name: getattr(entry.header, name) for name in _HEADER_FIELDS},
        commit_id=entry.commit_id,
        hash=entry.hash.hex(),
        intact=entry.is_intact,
        body=body,
        delta=entry.delta,
    )


def _resolve(log: Log, entry: Entry, value: Value, payload_max: int) -> Value:
    ref = as_ref(value)
    if ref is None or ref.size > payload_max:
        return value
    try:
        return without_bytes(log.value(entry, value))
    except NotFoundError:
        return {"$erased": entry.seq}


class EventIn(Question, frozen=True):
    """An event to append: its kind, its body, and the writer's fields of its header."""

    kind: str
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    actor: str = "agent"
    cause: Position = 0
    derived_from: tuple[tuple[Position, Position], ...] = ()
    source: str = ""
    trust: Trust = "trusted"

    def draft(self) -> EventDraft:
        return EventDraft(self._event(), self.actor, self.cause, self.derived_from, self.source, self.trust)

    def _event(self) -> ev.Event:
        if self.kind.startswith("x."):
            return ev.Foreign(foreign_kind=self.kind, data=self.body)
        cls = ev.KINDS.get(self.kind)
        if cls is None:
            raise InvalidInputError(
                f"{self.kind!r} is not a kind of event", kind="unknown-kind", hint='own kinds start with "x."'
            )
        fields = {f.encode_name for f in msgspec.structs.fields(cls)}
        if unknown := sorted(set(self.body) - fields):
            raise InvalidInputError(
                f"{self.kind} has no field {', '.join(unknown)}",
                kind="bad-event",
                hint=f"its fields are {', '.join(sorted(fields))}",
            )
        body = {k: _from_base64(v) if k in cls.payload_fields else v for k, v in self.body.items()}
        try:
            return msgspec.convert(body, described(cls))
        except (msgspec.ValidationError, RecursionError) as exc:
            raise InvalidInputError(f"the body does not fit {self.kind}: {exc}", kind="bad-event") from exc


def _from_base64(value: Value) -> Value:
    if type(value) is not dict or set(value) != {"$base64"}:
        return value
    try:
        return base64.b64decode(value["$base64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as exc:
        raise InvalidInputError(f"$base64 does not hold base64: {exc}", kind="bad-event") from exc
