"""Calls as events: asked for and answered in one, or each when it came."""

from __future__ import annotations

from typing import Literal

from wakelog.codec.canonical import hash_value
from wakelog.errors import WakelogError
from wakelog.importers.files import storable
from wakelog.importers.steps import Answer, Ask
from wakelog.model import events as ev
from wakelog.model.values import Value

UNVERIFIED = ("read", "external")


def call_recorded(ask: Ask, answer: Answer, output: Value) -> ev.ActionRecorded:
    """A call whose answer is there. `output` is the answer's, as it is to be stored."""
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


def call_requested(ask: Ask) -> ev.ActionRequested:
    """A call whose answer is not there yet."""
    return ev.ActionRequested(
        action=ask.id,
        tool=ask.tool,
        effect=ask.effect,
        input=ask.input,
        input_hash=_hash(ask.input),
        group=ask.group,
        inside=ask.inside,
    )


def call_settled(answer: Answer, output: Value) -> ev.Event:
    """The answer of a call that was asked for before."""
    if answer.outcome == "succeeded":
        return ev.ActionSucceeded(action=answer.id, output=output, cost=answer.cost)
    failure = _failure(answer) or ev.Failure(answer.outcome)
    return ev.ActionFailed(action=answer.id, error=failure, output=output, cost=answer.cost)


def trust_of(ask: Ask) -> Literal["trusted", "unverified"]:
    """What a tool brought from outside is not to be trusted."""
    return "unverified" if ask.effect in UNVERIFIED else "trusted"


def source_of(ask: Ask) -> str:
    return ask.tool if ask.effect in UNVERIFIED else ""


def _failure(answer: Answer) -> ev.Failure | None:
    if answer.outcome == "succeeded":
        return None
    return ev.Failure(answer.outcome if answer.outcome != "failed" else "error", answer.error)


def _hash(value: Value) -> str:
    try:
        return hash_value(value)
    except (WakelogError, ValueError, OverflowError, RecursionError):
        return hash_value(storable(value))
