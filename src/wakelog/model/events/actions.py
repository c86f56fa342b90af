"""Events of actions: one tool or model call each, and questions to people."""

from __future__ import annotations

from typing import Literal

from wakelog.model.events.base import Cost, Effect, Event, Failure, core
from wakelog.model.values import Value


@core("action.requested", payloads=("input",))
class ActionRequested(Event, frozen=True, gc=False):
    action: str
    tool: str
    effect: Effect = "external"
    input: Value = None
    input_hash: str = ""
    key: str = ""
    """The idempotency key that a retry is sent with."""
    approval: bool = False
    policy: dict[str, Value] = {}
    params: dict[str, Value] = {}
    """For a model call: model and parameters."""
    context_hash: str = ""
    prompt_hash: str = ""
    """For a model call: the hash of its system prompt, if it has one."""
    inside: str = ""
    """The action whose tool made this call."""
    group: str = ""
    """The action of the model's answer that requested it: calls of one group were requested together."""


@core("action.approved")
class ActionApproved(Event, frozen=True, gc=False):
    action: str
    by: str = ""


@core("action.denied")
class ActionDenied(Event, frozen=True, gc=False):
    action: str
    by: str = ""


@core("action.started")
class ActionStarted(Event, frozen=True, gc=False):
    action: str
    attempt: int = 1


@core("action.succeeded", payloads=("output",))
class ActionSucceeded(Event, frozen=True, gc=False):
    action: str
    output: Value = None
    output_summary: str = ""
    cost: Cost = Cost()
    stop_reason: str = ""
    stream: dict[str, Value] = {}
    """For a streamed answer: its shape and number of parts, to return it as a stream again."""


@core("action.failed", payloads=("output",))
class ActionFailed(Event, frozen=True, gc=False):
    """A call failed for certain. With `retry` the action goes back to requested."""

    action: str
    error: Failure
    output: Value = None
    """What had arrived of a stream that broke or was left."""
    retry: bool = False
    cost: Cost = Cost()
    stream: dict[str, Value] = {}


@core("action.timed_out")
class ActionTimedOut(Event, frozen=True, gc=False):
    action: str
    after_us: int = 0
    retry: bool = False
    cost: Cost = Cost()


@core("action.recorded", payloads=("input", "output"))
class ActionRecorded(Event, frozen=True, gc=False):
    """A call that had ended before it was recorded: request and outcome in one event. It is for importers, recorders
    and frameworks that report at the end of a turn. A call with effects that wakelog runs itself is requested first."""

    action: str
    tool: str
    effect: Effect = "external"
    outcome: Literal["succeeded", "failed", "timed_out", "denied", "cancelled", "interrupted"] = "succeeded"
    """`denied`: it did not run, because a person or a rule refused it. `cancelled`: it did not run, or was stopped, for
    another reason. `interrupted`: the agent ended before an answer came."""
    input: Value = None
    input_hash: str = ""
    output: Value = None
    output_summary: str = ""
    error: Failure | None = None
    cost: Cost = Cost()
    params: dict[str, Value] = {}
    stop_reason: str = ""
    stream: dict[str, Value] = {}
    reused: int = 0
    """The event whose outcome this repeats: the call was not run again, and costs nothing."""
    inside: str = ""
    group: str = ""


@core("action.uncertain")
class ActionUncertain(Event, frozen=True, gc=False):
    """It is unknown whether the effect happened. The call stays pending until it is reconciled."""

    action: str
    error: Failure | None = None
    """What the tool raised, if anything."""


@core("action.reconciled", payloads=("output",))
class ActionReconciled(Event, frozen=True, gc=False):
    action: str
    outcome: Literal["succeeded", "failed", "never_ran"]
    output: Value = None
    output_summary: str = ""
    by: str = ""


@core("action.abandoned")
class ActionAbandoned(Event, frozen=True, gc=False):
    action: str
    inherited: bool = False


@core("action.evidence", payloads=("output",))
class ActionEvidence(Event, frozen=True, gc=False):
    """A late or fenced worker reports an outcome. It is always accepted, and only `reconcile` uses it."""

    action: str
    outcome: str = ""
    output: Value = None
    epoch: int = 0


@core("input.requested")
class InputRequested(Event, frozen=True, gc=False):
    request: str
    prompt: str
    options: tuple[str, ...] = ()


@core("input.answered", payloads=("answer",))
class InputAnswered(Event, frozen=True, gc=False):
    request: str
    answer: Value
    by: str = ""
