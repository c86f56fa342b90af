"""Reads the recorded outcome of a call as the agent got it, and records the call again in the session of the replay.

In a session in memory the call's own events are appended again, so that the state and the seqs are the same as in the
recording. In a fork, one event says that the call was answered, and from which event; the cost is not counted again.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wakelog.errors import NotFoundError, UncertainError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.payloads import Payload, is_erased
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.replay.recording import RecordedCall
from wakelog.runtime.ambient import Flow, TrustMark
from wakelog.runtime.outcome import Status, status_of
from wakelog.runtime.tools import CallRequest, Tool


class RecordedOutcome(msgspec.Struct, frozen=True):
    """The outcome of a recorded call."""

    status: Status
    output: Value
    error: ev.Failure | None
    exception: Exception | None
    mark: TrustMark
    at: int
    attempts: int
    entries: tuple[Entry, ...]
    summary: str
    stream: dict[str, Value]


def recall(log: Log, step: RecordedCall, tool: Tool | None) -> RecordedOutcome:
    """Reads a step's outcome; NotFoundError if it is gone. `tool` helps to find the class of an exception."""
    first, last = step.seqs[0], step.seqs[-1]
    if last - first < 4 * len(step.seqs):
        entries = tuple(e for e in log.entries(after=first - 1, upto=last) if e.seq in step.seqs)
    else:
        entries = tuple(log.entry(seq) for seq in step.seqs)
    ended = next((e for e in entries if e.seq == step.outcome), entries[-1])
    output = log.value(ended, ended.body.get("output"))
    if is_erased(output):
        raise NotFoundError(f"the output of event {ended.seq} was erased", kind="result-gone")
    status, error = _status_and_error(step, entries[0], ended)
    exception = _exception(error, status, tool, ended.seq) if error is not None and tool is not None else None
    return RecordedOutcome(
        status,
        output,
        error,
        exception,
        TrustMark(ended.header.trust, ended.header.source),
        ended.header.at,
        sum(e.kind == "action.started" for e in entries) or 1,
        entries,
        str(ended.body.get("output_summary", "")),
        ended.body.get("stream") or {},
    )


def _status_and_error(step: RecordedCall, request: Entry, ended: Entry) -> tuple[Status, ev.Failure | None]:
    """Status and error as the agent got them."""
    policy = request.body.get("policy")
    limit = policy.get("timeout_s") if type(policy) is dict else None
    if step.status == "uncertain":
        why = str(ended.body.get("why", ""))
        if type(raised := ended.body.get("error")) is dict:
            return "uncertain", msgspec.convert(raised, ev.Failure)
        return "uncertain", ev.Failure("timeout" if why.startswith("no answer within") else "UncertainError", why)
    status, error = status_of(ended)
    if status == "timed_out":
        recorded = ended.body.get("error")
        text = recorded["message"] if type(recorded) is dict else f"no answer within {limit} s"
        error = ev.Failure("timeout", str(text))
    return status, error


def _exception(error: ev.Failure, status: Status, tool: Tool, seq: Seq) -> Exception | None:
    found: Exception | None
    if error.type == "timeout" and status in ("timed_out", "uncertain"):
        found = TimeoutError(f"{tool.name}: {error.message}")
    elif status == "uncertain" and error.type == "UncertainError":
        found = UncertainError(error.message)
    else:
        found = _exception_of(error, tool.function, tool.policy.retry_on)
    if found is not None:
        found.add_note(f"recorded as event {seq}; the call was not run again")
    return found


def record_again(
    log: Log,
    flow: Flow,
    request: CallRequest,
    step: RecordedCall,
    recalled: RecordedOutcome,
    origin: Log,
    *,
    whole: bool,
) -> Seq:
    """Appends a call that was answered: with `whole` all its events, else one. Returns the seq of its outcome."""
    if not whole:
        return log.record(flow.draft(_single_event(step, recalled, origin), mark=recalled.mark))
    entries = (*_label_changes_before(origin, step.seqs[0]), *recalled.entries)
    drafts = [_copy_draft(flow, request, entry, origin) for entry in entries]
    first = log.record(drafts[0], *drafts[1:])
    return first + next((i for i, e in enumerate(entries) if e.seq == step.outcome), 0)


def _label_changes_before(origin: Log, request: Seq) -> list[Entry]:
    """The label changes (branch, model settings) that the runtime recorded right before a call."""
    entries: list[Entry] = []
    while request - len(entries) > 1:
        entry = origin.entry(request - len(entries) - 1)
        if entry.kind != "labels.set" or entry.header.actor != "runtime":
            break
        entries.insert(0, entry)
    return entries


def _copy_draft(flow: Flow, request: CallRequest, entry: Entry, origin: Log) -> EventDraft:
    """An event as it was recorded, but with the dependencies of the replay."""
    event, mark = entry.event, TrustMark(entry.header.trust, entry.header.source)
    values = {name: _fetch(origin, entry, name) for name in event.payload_fields if name in entry.body}
    event = msgspec.structs.replace(event, **values) if values else event
    if entry.kind == "action.requested":
        return flow.draft(event, mark=mark, derived_from=request.derived_from)
    return flow.draft(event, actor=entry.header.actor, mark=mark)


def _fetch(origin: Log, entry: Entry, name: str) -> Value:
    value = origin.value(entry, entry.body[name])
    return Payload(value) if isinstance(value, bytes) else value


def _single_event(step: RecordedCall, recalled: RecordedOutcome, origin: Log) -> ev.ActionRecorded:
    request = recalled.entries[0]
    outcome = recalled.status if recalled.status in ("succeeded", "timed_out") else "failed"
    name = origin.head().name or origin.id
    return ev.ActionRecorded(
        action=step.action,
        tool=step.tool,
        effect=step.effect,  # type: ignore[arg-type]
        outcome=outcome,
        input=_fetch(origin, request, "input") if "input" in request.body else None,
        input_hash=step.input_hash,
        output=recalled.output,
        output_summary=recalled.summary,
        error=recalled.error,
        params=step.params,
        stream=recalled.stream,
        why=f"answered from the record: e{step.outcome} of {name}",
    )


def _exception_of(
    failure: ev.Failure, function: Callable[..., Any], raises: tuple[type[BaseException], ...] = ()
) -> Exception | None:
    """An exception like the one that was raised; None if its class cannot be found. The record has the class's name and
    the message. The class is looked up in the tool's module, then among the builtins, then among all loaded exceptions,
    where the name must be unique."""
    found = _find_class(failure.type, function, raises)
    if found is None:
        return None
    text = _message(found, failure.message)
    try:
        return found(text)
    except Exception:
        # Its constructor needs more than was recorded. Create it without the constructor, with the right class and
        # text.
        error = found.__new__(found)
        error.args = (text,)
        return error


def _find_class(
    name: str, function: Callable[..., Any], raises: tuple[type[BaseException], ...]
) -> type[Exception] | None:
    in_module = getattr(function, "__globals__", {}).get(name)
    for candidate in (*raises, in_module, getattr(builtins, name, None), UncertainError):
        if isinstance(candidate, type) and issubclass(candidate, Exception) and candidate.__name__ == name:
            return candidate
    loaded = {c for c in _subclasses(Exception) if c.__name__ == name}
    return loaded.pop() if len(loaded) == 1 else None


def _subclasses(cls: type[Exception]) -> Iterator[type[Exception]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _message(cls: type[Exception], text: str) -> Any:
    if not issubclass(cls, KeyError):
        return text
    try:
        return ast.literal_eval(text)  # a KeyError's text is the repr of its key
    except (ValueError, SyntaxError):
        return text
