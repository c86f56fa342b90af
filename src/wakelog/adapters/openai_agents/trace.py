"""A trace processor for the OpenAI Agents SDK: records runs, tools, handoffs and guardrails as turns and calls.

    from agents import add_trace_processor
    add_trace_processor(WakelogTraceProcessor(".wakelog"))

If the run has a `WakelogSession`, the session records the items, and the processor adds what they do not have: model,
usage, times, which call failed, what guardrails found, how the run ended. A run without one is recorded by the
processor alone, from the model's requests and answers, in a session named after the trace's group or id.
"""

from __future__ import annotations

import contextlib
import datetime
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from agents.tracing import TracingProcessor

from wakelog.adapters.message_events import read_message
from wakelog.adapters.openai_agents.run_notes import RUNS, RunNotes, TracedCall, TracedReply, reply_keys
from wakelog.adapters.openai_agents.session import AGENT, FORMAT
from wakelog.adapters.ownership import own_session
from wakelog.adapters.recorder import Recorder
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import WakelogError
from wakelog.importers.source.files import storable
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.model.json_fields import as_text
from wakelog.model.records import EventDraft
from wakelog.model.usage import Usage, usage_of


class WakelogTraceProcessor(StoreUser, TracingProcessor):  # type: ignore[misc]  # Any if it is not installed
    """Records traces. For `agents.add_trace_processor` or `set_trace_processors`."""

    def __init__(self, store: Place = None) -> None:
        super().__init__(store)

    def on_trace_start(self, trace: Any) -> None:
        group = getattr(trace, "group_id", None)
        RUNS.begin(RunNotes(trace.trace_id, as_text(group), str(getattr(trace, "name", ""))))

    def on_span_start(self, span: Any) -> None:
        notes = RUNS.find(span.trace_id)
        if notes is not None and (span.parent_id in notes.nested or _kind(span) == "function"):
            notes.nested.add(span.span_id)

    def on_span_end(self, span: Any) -> None:
        notes = RUNS.find(span.trace_id)
        if notes is not None:
            with _never_stops_the_agent():
                self._record_span(notes, span)

    def _record_span(self, notes: RunNotes, span: Any) -> None:
        data = span.span_data
        # A tool's own span is in `nested`, for its children. Its parent says whether it is inside another tool.
        is_nested = span.parent_id in notes.nested
        match _kind(span):
            case "response" | "generation":
                self._record_reply(notes, span, is_nested)
            case "function":
                self._record_call(notes, span)
            case "guardrail":
                self._record_step(notes, span, f"guardrail:{data.name}", None, {"triggered": bool(data.triggered)})
                if data.triggered and not is_nested:
                    notes.error = notes.error or f"the guardrail {data.name} was triggered"
            case "handoff":
                self._record_step(notes, span, "handoff", {"from": data.from_agent, "to": data.to_agent}, None)
            case "agent" | "task" if not is_nested and span.error:
                notes.error = notes.error or _error(span)

    def on_trace_end(self, trace: Any) -> None:
        notes = RUNS.end(trace.trace_id)
        if notes is not None:
            with _never_stops_the_agent():
                self._end(notes)

    def _end(self, notes: RunNotes) -> None:
        recorder = notes.recorder
        if recorder is None:
            if not (notes.drafts or notes.replies or notes.calls):
                return
            recorder = self._recorder(notes)
        drafts = notes.take_rest(recorder)
        turn = recorder.session.log.part("turn")
        if turn["status"] == "open" and (not notes.turn or turn["number"] == notes.turn):
            failure = ev.Failure("failed", notes.error) if notes.error else None
            ended = ev.TurnEnded(outcome="failed" if failure else "completed", error=failure)
            drafts.append(EventDraft(ended, actor="runtime"))
        if drafts:
            recorder.session.append(*drafts)

    def force_flush(self) -> None:
        """Does nothing: everything is durable as soon as it is recorded."""

    def shutdown(self) -> None:
        self.close()

    def _record_reply(self, notes: RunNotes, span: Any, is_nested: bool) -> None:
        sent, answer = _exchange(span.span_data)
        reply = TracedReply(
            id=str(answer.get("id") or ""),
            model=str(answer.get("model") or ""),
            usage=answer["usage"],
            output=answer["output"],
            keys=reply_keys(answer["output"]),
            duration_us=_duration_us(span),
            error=_error(span),
        )
        if is_nested or notes.is_session or not (sent or reply.output):
            if reply.output or reply.usage.is_known or reply.error:
                with notes.lock:
                    notes.replies.append(reply)
            return
        self._record_exchange(notes, sent, reply)

    def _record_exchange(self, notes: RunNotes, sent: list[dict[str, Any]], reply: TracedReply) -> None:
        """Records what is new in the model's request, and its reply, for a run without a `WakelogSession`."""
        recorder = self._recorder(notes)
        known = Counter(read_message(item.value).digest for item in recorder.log.refresh())
        new = []
        for message in sent:
            digest = read_message(message).digest
            if known[digest]:
                known[digest] -= 1
            else:
                new.append(message)
        messages = [*new, *reply.output]
        facts = recorder.facts(reply.model, reply.usage, id=reply.id, duration_us=reply.duration_us)
        if messages:
            before = [item.value for item in recorder.log.refresh(32)]
            recorder.add(*messages, reply=facts, calls=notes.take_calls(messages, before), stays_open=True)
            notes.turn = recorder.session.log.part("turn")["number"]

    def _recorder(self, notes: RunNotes) -> Recorder:
        if notes.recorder is None:
            id = notes.group_id or notes.trace_id
            session = own_session(self.store, AGENT, id, trace=notes.trace_id, workflow=notes.workflow)
            notes.recorder = Recorder(session, format=FORMAT)
        return notes.recorder

    def _record_call(self, notes: RunNotes, span: Any) -> None:
        data = span.span_data
        error = _error(span)
        output = "" if data.output is None else str(data.output)
        with notes.lock:
            notes.calls.append(TracedCall(data.name, str(data.input or ""), output, _duration_us(span), error))

    def _record_step(self, notes: RunNotes, span: Any, tool: str, input: Any, output: Any) -> None:
        error = _error(span)
        event = ev.ActionRecorded(
            action=span.span_id,
            tool=tool,
            effect="pure",
            outcome="failed" if error else "succeeded",
            error=ev.Failure("error", error) if error else None,
            input=input,
            output=output,
            cost=Cost(duration_us=_duration_us(span)),
        )
        with notes.lock:
            notes.drafts.append(EventDraft(event, actor="tool"))


@contextlib.contextmanager
def _never_stops_the_agent() -> Iterator[None]:
    """Turns a failure to record into a warning: a tracer must not stop the run."""
    try:
        yield
    except WakelogError as exc:
        warnings.warn(f"wakelog could not record a part of this run: {exc}", stacklevel=4)


def _kind(span: Any) -> str:
    return str(getattr(span.span_data, "type", ""))


def _exchange(data: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The model's request, and its answer: id, model, usage, output items."""
    if data.type == "generation":
        usage = {"usage": {"total_tokens": 0, **(data.usage or {})}}
        output = [m for m in map(_plain, data.output or ()) if m]
        answer = {"model": data.model, "usage": usage_of(usage), "output": output}
        return [m for m in map(_plain, data.input or ()) if m], answer
    response = data.response
    given = data.input
    sent = (
        [{"role": "user", "content": given}] if isinstance(given, str) else [m for m in map(_plain, given or ()) if m]
    )
    if response is None:
        return sent, {"usage": Usage(), "output": []}
    whole = _plain(response)
    return sent, {**whole, "usage": usage_of(whole), "output": [m for m in map(_plain, response.output) if m]}


def _plain(given: Any) -> dict[str, Any]:
    dump = getattr(given, "model_dump", None)
    value = dump(mode="json", exclude_unset=True) if callable(dump) else given
    return storable(value) if isinstance(value, dict) else {}


def _error(span: Any) -> str:
    """What a span says about its failure. The SDK's message is often general, and its data says what was wrong."""
    if not span.error:
        return ""
    message, data = str(span.error.get("message") or "failed"), span.error.get("data")
    detail = data.get("error") if isinstance(data, dict) else None
    return f"{message}: {detail}" if isinstance(detail, str) and detail and detail not in message else message


def _duration_us(span: Any) -> int:
    try:
        started, ended = (datetime.datetime.fromisoformat(at) for at in (span.started_at, span.ended_at))
    except (TypeError, ValueError):
        return 0
    return max(0, int((ended - started).total_seconds() * 1_000_000))
