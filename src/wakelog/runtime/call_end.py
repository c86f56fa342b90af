"""From how a call ended to the event that says so, and from that event back to an outcome."""

from __future__ import annotations

import contextlib

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.parts import content_text
from wakelog.runtime.ambient import inside
from wakelog.runtime.call_values import End, Running
from wakelog.runtime.models import stop_reason
from wakelog.runtime.outcome import Status
from wakelog.runtime.values import storable, summarise, text_of


def ending(running: Running, end: End) -> tuple[ev.Event, Status]:
    """The event that ends a call. Where nobody can know whether an effect happened, that is what it says."""
    call, policy = running.call, running.given.tool.policy
    spent = cost_of(running, end)
    _store_result(running, end)
    if not running.is_open:
        return _recorded(running, end, spent), "failed" if end.how == "interrupted" else end.how
    if end.how == "succeeded":
        return _succeeded(running, end, spent), "succeeded"
    assert end.error is not None
    if not end.is_known and not policy.is_safe and policy.uncertain != "fail":
        error = end.error if end.how == "failed" else None
        return ev.ActionUncertain(action=call.action, error=error, why=end.error.message), "uncertain"
    if end.how == "timed_out":
        return ev.ActionTimedOut(action=call.action, after_us=end.took_us, cost=spent), "timed_out"
    failed = ev.ActionFailed(action=call.action, error=end.error, output=end.output, cost=spent, stream=end.stream)
    return failed, "failed"


def _store_result(running: Running, end: End) -> None:
    """Makes of a result what is stored. One that cannot be stored could not be given again: the call ran, and its
    caller is told now, not after a crash."""
    if end.how != "succeeded":
        return
    try:
        end.output = storable(end.result, f"the result of {running.call.tool}")
    except InvalidInputError as exc:
        end.how, end.exception = "failed", exc
        end.error = ev.Failure(exc.kind, f"it ran, but {exc.message}")


def retrying(running: Running, end: End) -> ev.Event:
    """The event of a try that failed and is followed by another."""
    action, spent = running.call.action, cost_of(running, end)
    if end.how == "timed_out":
        return ev.ActionTimedOut(action=action, after_us=end.took_us, retry=True, cost=spent)
    assert end.error is not None
    return ev.ActionFailed(action=action, error=end.error, retry=True, cost=spent)


def _succeeded(running: Running, end: End, spent: ev.Cost) -> ev.ActionSucceeded:
    is_model = running.given.tool.policy.effect == "model"
    return ev.ActionSucceeded(
        action=running.call.action,
        output=end.output,
        output_summary=_summary(running, end),
        cost=spent,
        stop_reason=stop_reason(end.output) if is_model else "",
        stream=end.stream,
    )


def _recorded(running: Running, end: End, spent: ev.Cost) -> ev.ActionRecorded:
    """Request and outcome in one, for a call without effects."""
    call, policy = running.call, running.given.tool.policy
    return ev.ActionRecorded(
        action=call.action,
        tool=call.tool,
        effect=policy.effect,
        outcome="failed" if end.how == "interrupted" else end.how,
        input=running.input,
        input_hash=running.input_hash,
        output=end.output,
        output_summary=_summary(running, end),
        error=end.error,
        cost=spent,
        why=running.given.why,
        inside=inside(),
    )


def _summary(running: Running, end: End) -> str:
    # The effect has happened: a summary that cannot be made must not cost the record of it. Likewise below.
    summary = running.given.tool.policy.summary
    if summary is not None and end.error is None:
        with contextlib.suppress(Exception):
            return text_of(summary(end.result), str)
    return summarise(content_text(end.output) or end.output)


def cost_of(running: Running, end: End) -> ev.Cost:
    """What a try used up: its time, what the tool reported, and what its result tells."""
    told, policy = running.call.cost, running.given.tool.policy
    found = ev.Cost()
    if policy.cost is not None and (end.how == "succeeded" or end.stream):
        with contextlib.suppress(Exception):
            found = msgspec.convert(policy.cost(end.output if end.stream else end.result), ev.Cost)
    return msgspec.structs.replace(
        found,
        tokens_in=told.tokens_in + found.tokens_in,
        tokens_out=told.tokens_out + found.tokens_out,
        usd_micros=told.usd_micros + found.usd_micros,
        duration_us=end.took_us,
    )


def failure_of(exc: BaseException, retry_on: tuple[type[BaseException], ...] = ()) -> ev.Failure:
    if isinstance(exc, InvalidInputError) and exc.kind in ("unknown-tool", "bad-arguments"):
        return ev.Failure(exc.kind, exc.message)  # the runtime's own, told to a model
    return ev.Failure(type(exc).__name__, text_of(exc, str)[:2000], isinstance(exc, retry_on))


def status_of(entry: Entry) -> tuple[Status, ev.Failure | None]:
    """A recorded outcome as it would have been given when it was made."""
    kind, body = entry.kind, entry.body
    outcome = body.get("outcome", "succeeded")
    if kind == "action.denied":
        return "denied", ev.Failure("denied", str(body.get("why") or f"denied by {body.get('by') or 'somebody'}"))
    if kind == "action.abandoned":
        return "failed", ev.Failure("abandoned", str(body.get("why") or "given up"))
    if kind == "action.timed_out" or outcome == "timed_out":
        return "timed_out", ev.Failure("timeout", "no answer in time")
    if kind == "action.failed" or outcome == "failed":
        error = msgspec.convert(
            body.get("error") or {"type": "failed", "message": str(body.get("why", ""))}, ev.Failure
        )
        return "denied" if body.get("reused") and error.type == "denied" else "failed", error
    return "succeeded", None
