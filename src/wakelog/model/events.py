"""Every kind of event, as a typed value.

An event says what happened; who said so, when and because of what is in the header the log puts around it
(records.py). Fields here are the *authored* part: they are stored in the erasable body, next to the delta the log
computes from the event and the state it met (state/effects.py).

The kinds are a closed core that only grows. Foreign kinds start with `x.` and are kept as they come, as are kinds and
fields written by a newer version: they decode to `Foreign`, whose `data` is the whole body.

Amounts are integers throughout (micro-dollars, microseconds, tokens), so that sums are exact in every language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeVar

import msgspec

from wakelog.model.values import Value

Effect = Literal["model", "pure", "read", "write", "external"]
"""What a call does to the world. Undeclared means `external`: the class that is never silently repeated."""

Trust = Literal["trusted", "unverified", "untrusted"]

E = TypeVar("E", bound="Event")

KINDS: dict[str, type[Event]] = {}
"""kind → event class, filled as the classes below are defined."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What all events share: the recorded reason, and the caller's own clock (microseconds; 0 when not given)."""

    kind: ClassVar[str] = ""
    payload_fields: ClassVar[tuple[str, ...]] = ()
    """Fields whose large values are stored as payloads rather than inside the body."""

    why: str = ""
    occurred_at: int = 0


class Foreign(Event, frozen=True, gc=False):
    """An event of a kind this version does not know, or whose body was erased or does not fit its kind."""

    foreign_kind: str
    data: dict[str, Value]


class Cost(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What something used up. All integers; zero means "not reported"."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd_micros: int = 0
    duration_us: int = 0


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A typed error, so that the next step can branch on `type` instead of parsing prose."""

    type: str
    message: str = ""
    retryable: bool = False


def _core(kind: str, *, payloads: tuple[str, ...] = ()) -> Callable[[type[E]], type[E]]:
    """Enters an event class into the closed core under its kind."""

    def enter(cls: type[E]) -> type[E]:
        cls.kind = kind
        cls.payload_fields = payloads
        KINDS[kind] = cls
        return cls

    return enter


# The session


@_core("session.opened")
class SessionOpened(Event, frozen=True, gc=False):
    """Event 1. Its delta is the whole initial state."""

    name: str = ""
    goal: str | None = None
    labels: dict[str, str] = {}
    agent: str = ""
    limits: dict[str, int] = {}
    data: dict[str, Value] = {}
    data_schema: str = ""
    spawner: str = ""
    """For a sub-agent: `session@seq` of the event that spawned it."""


@_core("session.paused")
class SessionPaused(Event, frozen=True, gc=False):
    pass


@_core("session.resumed")
class SessionResumed(Event, frozen=True, gc=False):
    host: str = ""


@_core("session.closed")
class SessionClosed(Event, frozen=True, gc=False):
    outcome: str = "completed"


@_core("session.reopened")
class SessionReopened(Event, frozen=True, gc=False):
    pass


@_core("session.archived")
class SessionArchived(Event, frozen=True, gc=False):
    pass


@_core("session.deleted")
class SessionDeleted(Event, frozen=True, gc=False):
    pass


@_core("session.forked")
class SessionForked(Event, frozen=True, gc=False):
    """The first event of a fork; its seq is `at` + 1 and its chain goes on from the parent's hash at `at`."""

    parent: str
    at: int
    hash: str
    name: str = ""


@_core("lease.taken")
class LeaseTaken(Event, frozen=True, gc=False):
    """A writer claims the session. From here on, commits that carry an older epoch are refused."""

    epoch: int
    holder: str
    ttl_us: int = 0


@_core("lease.released")
class LeaseReleased(Event, frozen=True, gc=False):
    epoch: int


@_core("goal.set")
class GoalSet(Event, frozen=True, gc=False):
    goal: str | None


@_core("labels.set")
class LabelsSet(Event, frozen=True, gc=False):
    """Labels to write; a value of None removes one."""

    labels: dict[str, str | None]


# Turns and messages


@_core("turn.started", payloads=("input",))
class TurnStarted(Event, frozen=True, gc=False):
    """A new turn, or with `retry` the next attempt of the same one."""

    input: Value = None
    retry: bool = False


@_core("turn.ended")
class TurnEnded(Event, frozen=True, gc=False):
    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    error: Failure | None = None
    state_hash: str = ""


@_core("message.added", payloads=("content",))
class MessageAdded(Event, frozen=True, gc=False):
    """One message of the conversation. Messages are transient: they are read from the log, not kept in the state."""

    role: str
    content: Value
    name: str = ""
    action: str = ""
    """For a tool's answer, the action it answers."""


# Actions: one tool or model call each


@_core("action.requested", payloads=("input",))
class ActionRequested(Event, frozen=True, gc=False):
    action: str
    tool: str
    effect: Effect = "external"
    input: Value = None
    input_hash: str = ""
    key: str = ""
    """The idempotency key under which a retry may be sent."""
    approval: bool = False
    policy: dict[str, Value] = {}
    params: dict[str, Value] = {}
    """For a model call: model and parameters."""
    context_hash: str = ""


@_core("action.approved")
class ActionApproved(Event, frozen=True, gc=False):
    action: str
    by: str = ""


@_core("action.denied")
class ActionDenied(Event, frozen=True, gc=False):
    action: str
    by: str = ""


@_core("action.started")
class ActionStarted(Event, frozen=True, gc=False):
    action: str
    attempt: int = 1


@_core("action.succeeded", payloads=("output",))
class ActionSucceeded(Event, frozen=True, gc=False):
    action: str
    output: Value = None
    output_summary: str = ""
    cost: Cost = Cost()
    stop_reason: str = ""


@_core("action.failed", payloads=("output",))
class ActionFailed(Event, frozen=True, gc=False):
    """A call that is known to have failed. With `retry` the action goes back to requested."""

    action: str
    error: Failure
    output: Value = None
    retry: bool = False
    cost: Cost = Cost()


@_core("action.timed_out")
class ActionTimedOut(Event, frozen=True, gc=False):
    action: str
    after_us: int = 0
    retry: bool = False
    cost: Cost = Cost()


@_core("action.recorded", payloads=("input", "output"))
class ActionRecorded(Event, frozen=True, gc=False):
    """A call that was over before it was recorded: request and outcome in one event. For importers, recorders and
    frameworks that report at the end of a turn; a call with effects that we run ourselves is requested first."""

    action: str
    tool: str
    effect: Effect = "external"
    outcome: Literal["succeeded", "failed", "timed_out"] = "succeeded"
    input: Value = None
    input_hash: str = ""
    output: Value = None
    output_summary: str = ""
    error: Failure | None = None
    cost: Cost = Cost()
    params: dict[str, Value] = {}
    stop_reason: str = ""


@_core("action.uncertain")
class ActionUncertain(Event, frozen=True, gc=False):
    """Nobody knows whether the effect happened. It stays pending until reconciled."""

    action: str


@_core("action.reconciled", payloads=("output",))
class ActionReconciled(Event, frozen=True, gc=False):
    action: str
    outcome: Literal["succeeded", "failed", "never_ran"]
    output: Value = None
    output_summary: str = ""
    by: str = ""


@_core("action.abandoned")
class ActionAbandoned(Event, frozen=True, gc=False):
    action: str
    inherited: bool = False


@_core("action.evidence", payloads=("output",))
class ActionEvidence(Event, frozen=True, gc=False):
    """What a late or fenced worker knows. Accepted always; it changes nothing but what reconcile sees."""

    action: str
    outcome: str = ""
    output: Value = None
    epoch: int = 0


@_core("input.requested")
class InputRequested(Event, frozen=True, gc=False):
    request: str
    prompt: str
    options: tuple[str, ...] = ()


@_core("input.answered", payloads=("answer",))
class InputAnswered(Event, frozen=True, gc=False):
    request: str
    answer: Value
    by: str = ""


# What the agent knows and did: the durable tier


@_core("decision.made")
class DecisionMade(Event, frozen=True, gc=False):
    choice: str
    because: str = ""
    alternatives: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    evidence: tuple[int | str, ...] = ()


@_core("fact.recorded")
class FactRecorded(Event, frozen=True, gc=False):
    key: str
    value: Value


@_core("fact.retracted")
class FactRetracted(Event, frozen=True, gc=False):
    key: str


@_core("dead_end.noted")
class DeadEndNoted(Event, frozen=True, gc=False):
    tried: str
    learned: str = ""


@_core("artefact.recorded", payloads=("content",))
class ArtefactRecorded(Event, frozen=True, gc=False):
    name: str
    uri: str = ""
    media: str = ""
    content: Value = None


@_core("file.changed", payloads=("before", "after"))
class FileChanged(Event, frozen=True, gc=False):
    path: str
    change: Literal["created", "modified", "deleted"] = "modified"
    added: int = 0
    removed: int = 0
    before: Value = None
    after: Value = None
    action: str = ""


@_core("resource.touched")
class ResourceTouched(Event, frozen=True, gc=False):
    """An app, data source or URL the agent used."""

    resource: str
    category: Literal["file", "app", "data_source"] = "data_source"
    mode: Literal["read", "write"] = "read"


@_core("subagent.spawned")
class SubagentSpawned(Event, frozen=True, gc=False):
    session: str
    task: str = ""


@_core("subagent.returned", payloads=("output",))
class SubagentReturned(Event, frozen=True, gc=False):
    session: str
    outcome: str = "completed"
    output: Value = None
    cost: Cost = Cost()


@_core("context.evicted")
class ContextEvicted(Event, frozen=True, gc=False):
    """Something left the model's window. `handle` (a seq) brings it back."""

    key: str
    handle: int
    tokens: int = 0


@_core("context.restored")
class ContextRestored(Event, frozen=True, gc=False):
    key: str


@_core("state.patched")
class StatePatched(Event, frozen=True, gc=False):
    """A change to the user's own part: the patch is the delta, with paths below /data."""

    patch: list[dict[str, Value]]


# Money, trust, flags


@_core("budget.set")
class BudgetSet(Event, frozen=True, gc=False):
    """Limits to write (`tokens`, `usd_micros`, `duration_us`); None lifts one."""

    limits: dict[str, int | None]


@_core("budget.spent")
class BudgetSpent(Event, frozen=True, gc=False):
    cost: Cost


@_core("budget.reached")
class BudgetReached(Event, frozen=True, gc=False):
    limit: str


@_core("trust.endorsed")
class TrustEndorsed(Event, frozen=True, gc=False):
    targets: tuple[int, ...]
    by: str = ""


@_core("step.invalidated")
class StepInvalidated(Event, frozen=True, gc=False):
    targets: tuple[int, ...]
    by: str = ""


@_core("flag.raised")
class FlagRaised(Event, frozen=True, gc=False):
    flag: str
    rule: str = ""
    message: str = ""
    severity: Literal["info", "warning", "error"] = "warning"
    targets: tuple[int, ...] = ()


@_core("flag.cleared")
class FlagCleared(Event, frozen=True, gc=False):
    flag: str


# History about history


@_core("history.rewound")
class HistoryRewound(Event, frozen=True, gc=False):
    """The view moves back to `to`. `under` is the rewind that was in effect there (0: none), so that the visible
    history can be walked from here without reading what lies between."""

    to: int
    under: int = 0
    mode: Literal["rewind", "retry", "undo"] = "rewind"


@_core("history.compacted", payloads=("summary",))
class HistoryCompacted(Event, frozen=True, gc=False):
    """A range of transient messages is replaced in view by a summary; the log keeps them."""

    first: int
    last: int
    summary: Value


@_core("history.adopted")
class HistoryAdopted(Event, frozen=True, gc=False):
    """A fork's result is taken back: its state parts become this session's."""

    session: str
    at: int
    hash: str


@_core("payload.redacted")
class PayloadRedacted(Event, frozen=True, gc=False):
    """Secrets were masked at the door; says what kind and where, never what."""

    target: int
    markers: tuple[str, ...] = ()


class Replacement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What stands for an erased body: the fields that are structure, and the delta with values masked."""

    seq: int
    body: dict[str, Value]


@_core("payload.erased")
class PayloadErased(Event, frozen=True, gc=False):
    """Bodies and payloads of the named events are gone. The fold uses the replacements from then on."""

    erased: tuple[Replacement, ...]
    by: str = ""


@_core("range.pruned", payloads=("base",))
class RangePruned(Event, frozen=True, gc=False):
    """Bodies up to and including `upto` are gone; headers stay. `base` is the state at `upto`, as a payload."""

    upto: int
    last_hash: str
    base: Value


@_core("checkpoint.named")
class CheckpointNamed(Event, frozen=True, gc=False):
    """A name for (session, at). With `remove` the name is taken away."""

    name: str
    at: int
    remove: bool = False
    state_hash: str = ""


@_core("note.added")
class NoteAdded(Event, frozen=True, gc=False):
    """A person's or a tool's remark on an earlier event (0: on the session)."""

    text: str
    on: int = 0


@_core("gap.noted")
class GapNoted(Event, frozen=True, gc=False):
    """Something was not recorded. A gap that is known is part of the record."""

    missed: str
    source: str = ""
