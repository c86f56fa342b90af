"""The events of a call: with its result, without one, or the result alone if it came later."""

from __future__ import annotations

from typing import Literal

from wakelog.codec.canonical import hash_value
from wakelog.errors import WakelogError
from wakelog.importers.source.files import storable
from wakelog.importers.steps import CallStep, ReplyStep, ResultStep
from wakelog.model import events as ev
from wakelog.model.json_fields import as_dict
from wakelog.model.values import Value

UNVERIFIED = ("read", "external")


def recorded_call(ask: CallStep, answer: ResultStep, output: Value) -> ev.ActionRecorded:
    """A call and its result."""
    return ev.ActionRecorded(
        action=ask.id,
        tool=ask.tool,
        effect=ask.effect,
        outcome=answer.outcome,
        input=ask.input,
        input_hash=_hash(ask.input),
        output=output,
        error=_failure(answer),
        cost=answer.cost,
        group=ask.group,
        inside=ask.inside,
    )


def recorded_reply(step: ReplyStep, content: Value, cost: ev.Cost, part: int, at: int) -> ev.ActionRecorded:
    """A reply of a model, or one part of it. The second and later parts are numbered."""
    answer: dict[str, Value] = {"type": "message", "role": "assistant", "content": content}
    if step.model:
        answer["model"] = step.model
    return ev.ActionRecorded(
        action=step.id if part == 1 else f"{step.id}/{part}",
        tool="model",
        effect="model",
        output=answer,
        cost=cost,
        params={"model": step.model} if step.model else {},
        stop_reason=step.stop_reason,
        inside=step.inside,
        occurred_at=at,
    )


def task_of(ask: CallStep) -> str:
    """The task of a sub-agent."""
    data = as_dict(ask.input)
    return str(data.get("description") or data.get("prompt") or data.get("message") or "")[:500]


def requested_call(ask: CallStep, *, approval: bool = False) -> ev.ActionRequested:
    """A call without a result yet. With `approval` it waits for a person to allow it."""
    return ev.ActionRequested(
        action=ask.id,
        tool=ask.tool,
        effect=ask.effect,
        input=ask.input,
        input_hash=_hash(ask.input),
        approval=approval,
        group=ask.group,
        inside=ask.inside,
    )


def settled_call(answer: ResultStep, output: Value) -> ev.Event:
    """The result of a call that was pending until now."""
    if answer.outcome == "succeeded":
        return ev.ActionSucceeded(action=answer.id, output=output, cost=answer.cost)
    if answer.outcome == "timed_out":
        return ev.ActionTimedOut(action=answer.id, cost=answer.cost)
    failure = _failure(answer) or ev.Failure(answer.outcome)
    return ev.ActionFailed(action=answer.id, error=failure, output=output, cost=answer.cost)


def late_answer(answer: ResultStep, output: Value) -> ev.ActionEvidence:
    """The result of a call that the log records as interrupted. It does not change the call's outcome."""
    return ev.ActionEvidence(action=answer.id, outcome=answer.outcome, output=output)


def trust_of(ask: CallStep) -> Literal["trusted", "unverified"]:
    """Content that a tool fetched from outside is not trusted."""
    return "unverified" if ask.effect in UNVERIFIED else "trusted"


def source_of(ask: CallStep) -> str:
    return ask.tool if ask.effect in UNVERIFIED else ""


def _failure(answer: ResultStep) -> ev.Failure | None:
    if answer.outcome == "succeeded":
        return None
    return ev.Failure(answer.outcome if answer.outcome != "failed" else "error", answer.error)


def _hash(value: Value) -> str:
    try:
        return hash_value(value)
    except (WakelogError, ValueError, OverflowError, RecursionError):
        return hash_value(storable(value))
