"""The outcome of a call: the value its caller gets, the event that records it, and back from the event to the value.

Some errors leave an effect unknown: the call was perhaps sent, and no answer came back. A timeout, a lost connection or
a cancellation says nothing about the other side. Such an error makes a call with effects *uncertain*, and it is not
sent again automatically. Each client library has its own classes for these errors. We recognise them by the names of an
error's base classes, so that no client has to be imported. An error that carries the other side's answer, such as an
HTTP status, is an answer. A tool that knows better raises `NotSentError` or `UncertainError`.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import logging
from typing import Any, Literal

import msgspec

from wakelog.errors import (
    CallFailedError,
    InvalidInputError,
    NotAllowedError,
    NotSentError,
    UnavailableError,
    UncertainError,
    WakelogError,
)
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.events import Failure
from wakelog.model.ids import Seq
from wakelog.model.parts import content_text
from wakelog.runtime.ambient import current_action, whole_amount
from wakelog.runtime.driver import TimedOut
from wakelog.runtime.models import stop_reason
from wakelog.runtime.tools import CallRequest, End, RunningCall
from wakelog.runtime.values import NOT_STORABLE, storable, summarise, text_of

_logger = logging.getLogger("wakelog")

Status = Literal["succeeded", "failed", "timed_out", "denied", "uncertain"]


class Outcome(msgspec.Struct, frozen=True):
    """One call's result or error. `result` is None unless it succeeded; `error` is None if it did."""

    action: str
    tool: str
    status: Status
    result: Any = None
    error: Failure | None = None
    seq: Seq = 0
    """The event that holds the outcome."""
    reused: bool = False
    """Whether it was answered from the record: nothing was run."""
    attempts: int = 1
    exception: BaseException | None = None
    """What the tool raised, if it ran in this process."""

    @property
    def ok(self) -> bool:
        return self.status == "succeeded"

    def unwrap(self, raises: tuple[type[BaseException], ...] = ()) -> Any:
        """Returns the result, or raises the tool's exception. A recorded error is raised as the builtin exception of
        that name, or as the one in `raises`; otherwise as CallFailedError."""
        if self.error is None:
            return self.result
        if self.exception is not None:
            raise self.exception
        text = self.error.message or f"{self.tool}: {self.error.type}"
        known = {c.__name__: c for c in raises}
        found = known.get(self.error.type) or getattr(builtins, self.error.type, None)
        if self.status in ("timed_out", "uncertain"):
            found = TimeoutError if self.error.type == "timeout" else None
        hint = "its effect happened, so it is not run again: catch this, or start a new turn"
        error: Exception = CallFailedError(
            f"{self.tool} {self.status}: {text}",
            hint=hint if self.error.type == NOT_STORABLE else "",
            failure=self.error,
        )
        if isinstance(found, type) and issubclass(found, Exception):
            with contextlib.suppress(Exception):  # its class may need more than a message
                error = found(text)
        if self.reused:
            error.add_note(f"recorded as event {self.seq}; the call was not run again")
        raise error


def turn_ended_error(session: str, turn: int, tool: str) -> NotAllowedError:
    """The error for a call that had not begun when another task or thread ended its turn. It must not begin: only the
    turn knows from earlier attempts whether the call was made before."""
    return NotAllowedError(
        f"turn @{turn} of {session} ended before {tool} began, so it was not called",
        kind="turn-ended",
        hint="wait for all calls of a turn before it ends",
    )


def uncertain_error(session: str, action: str, tool: str) -> NotAllowedError:
    """The call may or may not have happened, and a person must find out."""
    return NotAllowedError(
        f"{tool} was cut off, and its effect may have happened ({action} of {session})",
        kind="uncertain-call",
        hint=f"find out, then: wakelog reconcile {session} {action} --succeeded | --failed | --never-ran",
        legal=("action.reconciled", "action.succeeded", "action.failed"),
    )


def approval_error(session: str, action: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"{tool} waits for approval ({action} of {session})",
        kind="approval-needed",
        hint=f"wakelog approve {session} {action} | wakelog deny {session} {action}; then run this again",
        legal=("action.approved", "action.denied"),
    )


def running_error(session: str, action: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"{tool} is running already, or its process died ({action} of {session})",
        kind="call-running",
        hint=f"wait for it; if its process is dead: wakelog reconcile {session} {action} --never-ran | --succeeded",
        legal=("action.succeeded", "action.failed", "action.uncertain"),
    )


STOPS = frozenset(
    {
        *("uncertain-call", "approval-needed", "call-running", "budget-reached", "session-paused"),
        *("turn-taken-over", "fenced", "price-unknown"),
    }
)
"""Errors with which the runtime stops a turn until a person acts. The turn is interrupted, not failed, and the same
script run again continues it."""


def is_stop(error: BaseException | None) -> bool:
    """Whether an error means that the turn was stopped and not that the agent failed: the runtime stopped it, the store
    is unreachable, or a call's outcome is unknown."""
    if isinstance(error, UnavailableError) or (isinstance(error, WakelogError) and error.kind in STOPS):
        return True
    return is_uncertain(error)


UNKNOWN_EFFECT_ERRORS = frozenset(
    {
        *("TimeoutError", "Timeout", "TimeoutException", "TimeoutExpired", "ConnectTimeout", "ReadTimeout"),
        *("ConnectionError", "ConnectError", "NetworkError", "TransportError", "ProtocolError", "SSLError"),
        *("APIConnectionError", "APITimeoutError", "URLError", "gaierror", "herror"),
        *("CancelledError", "Cancelled", "BrokenExecutor", "IncompleteRead", "IncompleteReadError", "BadStatusLine"),
        *("ClientConnectionError", "ClientPayloadError", "ChunkedEncodingError", "ContentDecodingError"),
        *("ConnectionClosed", "ConnectionClosedError", "HTTPClientError", "SMTPServerDisconnected"),
        *("DeadlineExceeded", "ServiceUnavailable", "GatewayTimeout", "AMQPConnectionError", "KafkaTimeoutError"),
    }
)
"""Names of error classes, in Python and common clients, that leave the effect unknown."""
ANSWER_ERRORS = frozenset(
    {"HTTPError", "HTTPStatusError", "APIStatusError", "ClientResponseError", "SMTPResponseException"}
)
"""Names of error classes that carry an answer of the other side. Some are subclasses of those above."""
_UNREACHED = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTUNREACH, errno.EHOSTDOWN})


def leaves_effect_unknown(error: BaseException, outer: BaseException | None = None) -> bool:
    """Whether an error, or one that it was raised from, does not say if the effect happened. `outer` is the error that
    the caller was handling when it made the call; it is not the tool's."""
    found: BaseException | None = error
    while found is not None and found is not outer:
        error, found = found, found.__cause__ or (None if found.__suppress_context__ else found.__context__)
        if isinstance(error, NotSentError):
            return False
        if isinstance(error, UncertainError) or _leaves_unknown(error):
            return True
    return False


def _leaves_unknown(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(leaves_effect_unknown, error.exceptions))
    if isinstance(error, OSError) and error.errno in _UNREACHED:
        return True
    for cls in type(error).__mro__:
        if cls.__name__ in ANSWER_ERRORS:
            return False
        if cls.__name__ in UNKNOWN_EFFECT_ERRORS:
            return True
    return False


def classify_error(exc: BaseException, request: CallRequest, outer: BaseException | None = None) -> End:
    """Says how a try ended that raised. `outer` is the error the caller was already handling."""
    policy = request.tool.policy
    if isinstance(exc, TimedOut):
        error = ev.Failure("timeout", f"no answer within {policy.timeout_s} s", retryable=policy.is_safe)
        return End("timed_out", error=error, exception=TimeoutError(f"{request.tool.name}: {error.message}"))
    if isinstance(exc, Exception) and not is_stop(exc):
        is_unknown = leaves_effect_unknown(exc, outer)
        error = failure_of(exc, () if is_unknown and not policy.repeats else (NotSentError, *policy.retry_on))
        return End("failed", error=error, exception=exc, is_effect_unknown=is_unknown)
    # It is not known how far the tool came. The same holds if a call inside this one stopped the turn.
    why = exc.message if isinstance(exc, WakelogError) else type(exc).__name__
    return End("interrupted", error=ev.Failure("interrupted", why, retryable=policy.is_safe), exception=exc)


def mark_uncertain(error: BaseException, action: str) -> None:
    """Marks an error as raised by a call that is now uncertain."""
    error.__dict__["wakelog_uncertain"] = action


def is_uncertain(error: BaseException | None) -> bool:
    """Whether an error was raised by a call that is uncertain. A turn that ends with it was stopped, not failed."""
    while error is not None and "wakelog_uncertain" not in error.__dict__:
        error = error.__cause__
    return error is not None


def outcome_event(running: RunningCall, end: End) -> tuple[ev.Event, Status]:
    """Returns the event that ends a call: `action.uncertain` if it is not known whether the effect happened."""
    call, policy = running.call, running.request.tool.policy
    spent = cost_of(running, end)
    _store_result(running, end)
    if not running.has_intent:
        return _recorded_event(running, end, spent), "failed" if end.how == "interrupted" else end.how
    if end.how == "succeeded":
        return _succeeded_event(running, end, spent), "succeeded"
    assert end.error is not None
    if not end.is_known and not policy.is_safe and policy.uncertain != "fail":
        error = end.error if end.how == "failed" else None
        return ev.ActionUncertain(action=call.action, error=error, why=end.error.message), "uncertain"
    if end.how == "timed_out":
        return ev.ActionTimedOut(action=call.action, after_us=end.took_us, cost=spent), "timed_out"
    failed = ev.ActionFailed(action=call.action, error=end.error, output=end.output, cost=spent, stream=end.stream)
    return failed, "failed"


def _store_result(running: RunningCall, end: End) -> None:
    """Converts the result to what is stored. A result that cannot be stored makes the call fail now, because it could
    not be returned again after a crash."""
    if end.how != "succeeded":
        return
    try:
        end.output = storable(end.result, f"the result of {running.call.tool}")
    except InvalidInputError as exc:
        end.how, end.exception = "failed", exc
        end.error = ev.Failure(exc.kind, f"it ran, but {exc.message}")


def retry_event(running: RunningCall, end: End) -> ev.Event:
    """Returns the event for a failed try that is followed by another."""
    action, spent = running.call.action, cost_of(running, end)
    if end.how == "timed_out":
        return ev.ActionTimedOut(action=action, after_us=end.took_us, retry=True, cost=spent)
    assert end.error is not None
    return ev.ActionFailed(action=action, error=end.error, retry=True, cost=spent)


def _succeeded_event(running: RunningCall, end: End, spent: ev.Cost) -> ev.ActionSucceeded:
    is_model = running.request.tool.policy.effect == "model"
    return ev.ActionSucceeded(
        action=running.call.action,
        output=end.output,
        output_summary=_summary(running, end),
        cost=spent,
        stop_reason=stop_reason(end.output) if is_model else "",
        stream=end.stream,
    )


def _recorded_event(running: RunningCall, end: End, spent: ev.Cost) -> ev.ActionRecorded:
    """Returns request and outcome in one event, for a call without effects."""
    call, policy = running.call, running.request.tool.policy
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
        why=running.request.why,
        inside=current_action(),
    )


def _summary(running: RunningCall, end: End) -> str:
    # The effect has happened and must be recorded, even if the tool's summary or cost function fails.
    summary = running.request.tool.policy.summary
    if summary is not None and end.error is None:
        with contextlib.suppress(Exception):
            return text_of(summary(end.result), str)
    return summarise(content_text(end.output) or end.output)


def cost_of(running: RunningCall, end: End) -> ev.Cost:
    """Adds up what a try used: its time, what the tool reported, and what the policy reads from the result."""
    reported, policy = running.call.cost, running.request.tool.policy
    cost = ev.Cost()
    if policy.cost is not None and (end.how == "succeeded" or end.stream):
        try:
            cost = _checked_cost(policy.cost(end.output if end.stream else end.result))
        except Exception as exc:  # foreign code; the outcome must be recorded all the same
            _logger.warning("the cost of this call of %s is not counted: %s", running.call.tool, text_of(exc))
    return msgspec.structs.replace(
        cost,
        tokens_in=reported.tokens_in + cost.tokens_in,
        tokens_out=reported.tokens_out + cost.tokens_out,
        usd_micros=reported.usd_micros + cost.usd_micros,
        duration_us=end.took_us,
    )


def _checked_cost(given: object) -> ev.Cost:
    fields = {} if given is None else msgspec.to_builtins(given)
    if not isinstance(fields, dict):
        raise TypeError(f"a cost function returns wakelog.events.Cost(…), not {given!r}")
    amounts = {name: whole_amount(name, value) for name, value in fields.items() if name != "price"}
    return msgspec.convert({**fields, **amounts}, ev.Cost)


def failure_of(exc: BaseException, retry_on: tuple[type[BaseException], ...] = ()) -> ev.Failure:
    if isinstance(exc, InvalidInputError) and exc.kind in ("unknown-tool", "bad-arguments"):
        return ev.Failure(exc.kind, exc.message)  # raised by the runtime, for a model to read
    return ev.Failure(type(exc).__name__, text_of(exc, str)[:2000], isinstance(exc, retry_on))


def status_of(entry: Entry) -> tuple[Status, ev.Failure | None]:
    """Reads status and error of a recorded outcome, as its caller got them at the time."""
    kind, body = entry.kind, entry.body
    outcome = body.get("outcome", "succeeded")
    if kind == "action.denied":
        return "denied", ev.Failure("denied", str(body.get("why") or f"denied by {body.get('by') or 'somebody'}"))
    if kind == "action.abandoned":
        return "failed", ev.Failure("abandoned", str(body.get("why") or "given up"))
    if kind == "action.timed_out" or outcome == "timed_out":
        return "timed_out", ev.Failure("timeout", "no answer in time")
    if kind == "action.recorded" and outcome in ("denied", "cancelled", "interrupted"):
        message = (body.get("error") or {}).get("message") or f"it was {outcome}"
        return "denied" if outcome == "denied" else "failed", ev.Failure(outcome, str(message))
    if kind == "action.failed" or outcome == "failed":
        error = msgspec.convert(
            body.get("error") or {"type": "failed", "message": str(body.get("why", ""))}, ev.Failure
        )
        return "denied" if body.get("reused") and error.type == "denied" else "failed", error
    return "succeeded", None
