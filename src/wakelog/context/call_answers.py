"""The answer of a call, whatever its outcome: its output, or a typed error that says why there is none.

A model that reads `{"error": {"type": "uncertain", …}}` can act on it; a call without an answer makes a provider refuse
the whole request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.log.reader import Entry
from wakelog.model.json_fields import as_dict
from wakelog.model.parts import flat, parts_of, text_of
from wakelog.model.values import Value

Read = Callable[[Entry, str], Value]
"""Reads a field of an event, and fetches it if it is a payload."""

_OPEN = {
    "waiting": "it waits for approval and has not begun",
    "requested": "it was asked for and has not begun",
    "running": "it is running, and its answer is not there yet",
    "uncertain": "it is not known whether it happened; find out before it is tried again",
}

_NOT_DONE = {
    "denied": "it was refused and did not run",
    "cancelled": "it was cancelled",
    "interrupted": "the agent ended before an answer came",
}


class CallAnswer(msgspec.Struct, frozen=True):
    status: str
    text: str
    is_error: bool = False


def answer_of(read: Read, outcome: Entry | None, message: Entry | None, status: str) -> CallAnswer:
    """The answer of a call. `message` has its result, if there is such a message; `status` is the status of a pending
    call in the state, else empty."""
    answer = _settled(read, outcome) if outcome is not None else _unsettled(status)
    if message is None:
        return answer
    text = flat(parts_of(read(message, "content")))
    return msgspec.structs.replace(answer, text=text or answer.text)


def error(status: str, message: str, *, kind: str = "", **more: Value) -> CallAnswer:
    body: dict[str, Any] = {"error": {"type": kind or status, "message": message}}
    return CallAnswer(status, text_of(body | more), is_error=True)


def _unsettled(status: str) -> CallAnswer:
    if status:
        return error(status, _OPEN.get(status, f"it is {status}"))
    return error("out_of_view", "its outcome is not in view")


def _settled(read: Read, outcome: Entry) -> CallAnswer:
    body, why = outcome.body, text_of(outcome.body.get("why") or "")
    if "$erased" in body:
        return CallAnswer("erased", text_of({"erased": {"seq": outcome.seq}}))
    match outcome.kind:
        case "action.succeeded":
            return _output(read, outcome, "succeeded")
        case "action.recorded" | "action.reconciled":
            return _named_outcome(read, outcome, str(body.get("outcome", "succeeded")))
        case "action.failed":
            return _failure(read, outcome, "failed")
        case "action.timed_out":
            seconds = (body.get("after_us") or 0) / 1e6
            return error("timed_out", why or (f"no answer after {seconds:g} s" if seconds else "no answer in time"))
        case "action.denied":
            by = text_of(body.get("by") or "")
            return error("denied", why or ("refused" + (f" by {by}" if by else "")))
        case "action.abandoned" if body.get("inherited"):
            return error("abandoned", "it belongs to the session that this one was forked from")
        case "action.abandoned":
            return error("abandoned", why or "it was given up before it began")
        case _:
            return error("uncertain", _OPEN["uncertain"] + (f" ({why})" if why else ""))


def _named_outcome(read: Read, outcome: Entry, how: str) -> CallAnswer:
    """The answer to a call whose event names the outcome."""
    if how == "succeeded":
        return _output(read, outcome, how)
    if how == "failed":
        return _failure(read, outcome, how)
    if how == "timed_out":
        return error(how, "no answer in time")
    if how in _NOT_DONE:
        failure = outcome.body.get("error")
        said = text_of(failure.get("message") or "") if isinstance(failure, dict) else ""
        return error(how, said or _NOT_DONE[how])
    return error("never_ran", "it never ran")


def _output(read: Read, outcome: Entry, status: str) -> CallAnswer:
    output = read(outcome, "output")
    if output is None:
        output = outcome.body.get("output_summary") or None
    text = "" if output is None else text_of(output)
    return CallAnswer(status, text if text.strip() else "(no output)")


def _failure(read: Read, outcome: Entry, status: str) -> CallAnswer:
    failure = as_dict(outcome.body.get("error"))
    output = read(outcome, "output")
    return error(
        status,
        text_of(failure.get("message") or outcome.body.get("output_summary") or "it failed"),
        kind=str(failure.get("type") or "failed"),
        **({} if output is None else {"output": output}),
    )
