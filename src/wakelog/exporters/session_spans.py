"""Exports a session as OpenTelemetry spans, following the conventions for generative AI.

One session is one trace: `session NAME` is the root, each attempt at a turn an `invoke_agent` below it, each model call
a `chat`, and each tool call an `execute_tool`. A call that a tool made is below that tool's span. Trace and span ids
are hashes of session and event, so the same event is the same span in every export. Inherited events belong to the
parent of a fork: the fork's root links to it.

Every span names the events it was made from (`wakelog.selector`, `wakelog.event.hash`). Content is left out by default;
see span_content.py.

A session is read twice, so that it need not fit into memory: first a few numbers for each span, and then, for each
span, the content of its events. A long session is several documents of one trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

import wakelog
from wakelog import otlp
from wakelog.exporters.span_content import call_content, turn_content
from wakelog.log.reader import Entry
from wakelog.model.calls import FAILURES, Call, Calls
from wakelog.model.ids import Seq, SessionId
from wakelog.model.json_fields import as_dict, count_in, text_in
from wakelog.session import Session
from wakelog.timeline.selectors import resolve_range
from wakelog.timeline.slices import tool_of

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
INTERNAL, CLIENT = 1, 3
_FAILED = 2
_SPAN_EVENT_KINDS = frozenset(
    {
        *("flag.raised", "action.approved", "action.denied", "input.requested", "input.answered", "budget.reached"),
        *("history.rewound", "history.compacted", "history.adopted", "payload.erased", "range.pruned", "gap.noted"),
    }
)
"""Kinds that become events of the span they happened in."""
_PROVIDERS = {
    "claude": "anthropic",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "deepseek": "deepseek",
} | dict.fromkeys(("gpt", "chatgpt", "o1", "o3", "o4"), "openai")
"""The provider by the start of a model's name, if nothing else says it."""
_COUNTS = ("tokens_in", "tokens_out", "usd_micros", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_PRICED = {"google": "gcp.gemini"}
SPANS_MAX, SIZE_MAX = 500, 4 << 20
"""The limits of one document: spans, and characters. A single span may have more characters."""


def session_document(session: Session[Any], where: str = "", *, content: bool = False) -> dict[str, Any]:
    """A session or a range of it as one OTLP document. A range has the same trace, but no root span."""
    return _document(session, list(session_spans(session, where, content=content)))


def session_documents(session: Session[Any], where: str = "", *, content: bool = False) -> Iterator[dict[str, Any]]:
    """The same in several documents, each of a size that collectors accept."""
    spans: list[dict[str, Any]] = []
    size = 0
    for span in session_spans(session, where, content=content):
        added = sum(len(attribute["value"].get("stringValue", "")) for attribute in span["attributes"])
        if spans and (len(spans) >= SPANS_MAX or size + added > SIZE_MAX):
            yield _document(session, spans)
            spans, size = [], 0
        spans.append(span)
        size += added
    yield _document(session, spans)


def _document(session: Session[Any], spans: list[dict[str, Any]]) -> dict[str, Any]:
    labels = session.log.part("labels")
    resource = {
        "service.name": labels.get("service") or labels.get("agent") or "wakelog",
        "wakelog.version": wakelog.__version__,
    }
    scope = {"name": "wakelog", "version": wakelog.__version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": otlp.attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}],
                "schemaUrl": SCHEMA_URL,
            }
        ]
    }


def session_spans(session: Session[Any], where: str = "", *, content: bool = False) -> Iterator[dict[str, Any]]:
    """The spans of a session, parents first."""
    log = session.log
    span = resolve_range(log, where) if where else None
    entries = log.entries(after=span.first - 1, upto=span.last) if span else log.entries()
    tree = _Tree(session, content)
    for entry in entries:
        if entry.session == session.id:  # inherited events belong to the parent's trace
            tree.add(entry)
    return tree.spans(has_root=span is None)


def trace_id(session: SessionId) -> str:
    return hashlib.sha256(f"wakelog trace {session}".encode()).hexdigest()[:32]


def span_id(session: SessionId, seq: Seq) -> str:
    """The id of the span that starts with an event; 0 is the session itself."""
    return hashlib.sha256(f"wakelog span {session} {seq}".encode()).hexdigest()[:16]


class _EventMark(msgspec.Struct, frozen=True, gc=False):
    """Where an event is and when it happened. Its content is read again when it is needed."""

    seq: Seq
    hash: bytes
    at: int
    turn: int
    attempt: int

    @classmethod
    def of(cls, entry: Entry) -> _EventMark:
        header = entry.header
        return cls(entry.seq, entry.hash, entry.happened_at, header.turn, header.attempt)


class _SpanCall(Call):
    """A call, and what its span needs."""

    requested_by: _EventMark | None = None
    ended_by: _EventMark | None = None
    began_at: int = 0
    duration_us: int = 0
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    costs: dict[str, int] = msgspec.field(default_factory=dict)
    price: str = ""
    stop_reason: str = ""
    error: dict[str, Any] = msgspec.field(default_factory=dict)
    inside: str = ""
    span_events: list[dict[str, Any]] = msgspec.field(default_factory=list)


class _Turn:
    """One attempt at a turn."""

    def __init__(self, started: _EventMark) -> None:
        self.started = started
        self.last = started
        self.ended: _EventMark | None = None
        self.outcome = ""
        self.error: dict[str, Any] = {}
        self.span_events: list[dict[str, Any]] = []


class _Tree:
    def __init__(self, session: Session[Any], content: bool) -> None:
        self._session, self._content = session, content
        self._log = session.log
        self._name = session.name or session.id
        labels = self._log.part("labels")
        self._agent = str(labels.get("agent_name") or labels.get("agent") or "")
        self._calls: Calls[_SpanCall] = Calls(_SpanCall)
        self._turns: dict[tuple[int, int], _Turn] = {}
        self._tools: dict[str, str] = {}
        self._first: _EventMark | None = None
        self._last: _EventMark | None = None
        self._span_events: list[dict[str, Any]] = []
        self._children: list[SessionId] = []
        self._forked_from: SessionId | None = None

    def add(self, entry: Entry) -> None:
        mark = _EventMark.of(entry)
        self._first = self._first or mark
        self._last = mark
        header, body = entry.header, entry.body
        turn = self._turns.get((header.turn, header.attempt))
        if entry.kind == "turn.started":
            turn = self._turns[header.turn, header.attempt] = _Turn(mark)
        elif entry.kind == "turn.ended" and turn is not None:
            turn.ended = mark
            turn.outcome, turn.error = text_in(body, "outcome") or "completed", as_dict(body.get("error"))
        if turn is not None:
            turn.last = mark
        call = self._calls.take(entry.seq, entry.kind, header, body)
        if call is not None:
            self._update_call(call, entry, mark)
        if entry.kind in _SPAN_EVENT_KINDS:
            span_events = (
                call.span_events if call is not None else turn.span_events if turn is not None else self._span_events
            )
            span_events.append(_span_event(entry))
        if entry.kind == "subagent.spawned" and text_in(body, "session"):
            self._children.append(SessionId(text_in(body, "session")))
        if entry.kind == "session.forked":
            self._forked_from = SessionId(text_in(body, "parent")) if text_in(body, "parent") else None

    def _update_call(self, call: _SpanCall, entry: Entry, mark: _EventMark) -> None:
        body = entry.body
        if call.request == entry.seq:
            call.requested_by, call.began_at = mark, mark.at
            call.tool = call.tool or tool_of(self._log, entry, self._tools)
            call.params, call.inside = as_dict(body.get("params")), text_in(body, "inside")
        if entry.kind == "action.started":
            call.began_at = mark.at
        if call.settled == entry.seq or entry.kind == "action.uncertain":
            call.ended_by = mark
        cost = as_dict(body.get("cost"))
        for name in _COUNTS:
            call.costs[name] = call.costs.get(name, 0) + count_in(cost, name)
        call.duration_us += count_in(cost, "duration_us")
        call.price = text_in(cost, "price") or call.price
        call.stop_reason = text_in(body, "stop_reason") or call.stop_reason
        call.error = as_dict(body.get("error")) or call.error

    # Spans

    def spans(self, *, has_root: bool) -> Iterator[dict[str, Any]]:
        if self._first is None or self._last is None:
            return
        if has_root:
            yield self._root(self._first, self._last)
        for turn in self._turns.values():
            yield self._turn(turn)
        for call in self._calls.by_request.values():
            yield self._call(call)

    def _root(self, first: _EventMark, last: _EventMark) -> dict[str, Any]:
        head = self._session.head
        attributes = {"wakelog.session.status": self._session.status, "wakelog.event.count": head.seq}
        linked = [*self._children, *([self._forked_from] if self._forked_from else [])]
        return self._span(
            0,
            f"session {self._name}",
            (first.at, last.at),
            attributes | self._evidence(first, last) | {"wakelog.selector": self._name},
            span_events=self._span_events,
            links=[{"traceId": trace_id(id), "spanId": span_id(id, 0)} for id in linked],
        )

    def _turn(self, turn: _Turn) -> dict[str, Any]:
        started, end = turn.started, turn.ended or turn.last
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent,
            "wakelog.turn": started.turn,
            "wakelog.attempt": started.attempt,
            "wakelog.outcome": turn.outcome if turn.ended else "open",
            **self._evidence(started, end, f"@{started.turn}.{started.attempt}"),
        }
        if self._content:
            attributes |= turn_content(self._log, self._log.entry(started.seq))
        failed = turn.outcome in ("failed", "interrupted")
        error = turn.error or ({"type": turn.outcome} if failed else {})
        name = f"invoke_agent {self._agent}".rstrip()
        return self._span(
            started.seq, name, (started.at, end.at), attributes, parent=0, error=error, span_events=turn.span_events
        )

    def _call(self, call: _SpanCall) -> dict[str, Any]:
        request = call.requested_by
        assert request is not None, "a call starts with its request"
        end = call.ended_by or request
        turn = self._turns.get((call.turn, call.attempt))
        began, ended = call.began_at, end.at
        if end is request and call.status == "done":
            # The call was recorded when it was over, so its start is computed from its duration.
            began = max(ended - call.duration_us, turn.started.at if turn else 0)
        outer = self._calls.by_action.get(call.inside) if call.inside else None
        outer = None if outer is call else outer
        attributes = {
            **(self._model(call) if call.is_model else self._tool(call)),
            "wakelog.effect": call.effect,
            "wakelog.outcome": call.outcome if call.status == "done" else call.status,
            "wakelog.tries": call.tries,
            "wakelog.cost.usd_micros": call.costs.get("usd_micros") or None,
            **self._evidence(request, end),
        }
        if self._content:
            ending = self._log.entry(call.ended_by.seq) if call.ended_by is not None else None
            attributes |= call_content(self._log, call, self._log.entry(request.seq), ending)
        error = call.error or {"type": call.outcome}
        model = str(attributes.get("gen_ai.request.model") or "")
        return self._span(
            request.seq,
            (f"chat {model}" if call.is_model else f"execute_tool {call.tool}").rstrip(),
            (began, ended),
            attributes,
            parent=outer.request if outer else turn.started.seq if turn else 0,
            kind=CLIENT if call.is_model else INTERNAL,
            error=error if call.outcome in (*FAILURES, "denied", "interrupted", "cancelled") else {},
            span_events=call.span_events,
        )

    def _model(self, call: _SpanCall) -> dict[str, Any]:
        model = text_in(call.params, "model") or ("" if call.tool == "model" else call.tool)
        priced = call.price.partition("/")[0]
        guess = next((p for start, p in _PROVIDERS.items() if model.rpartition("/")[2].startswith(start)), "")
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PRICED.get(priced, priced) or guess,
            "gen_ai.request.model": model,
            **{f"gen_ai.request.{name}": _number(call.params.get(name)) for name in ("temperature", "top_p")},
            "gen_ai.request.max_tokens": count_in(call.params, "max_tokens") or None,
            "gen_ai.response.finish_reasons": [call.stop_reason] if call.stop_reason else None,
            "gen_ai.usage.input_tokens": call.costs.get("tokens_in") or None,
            "gen_ai.usage.output_tokens": call.costs.get("tokens_out") or None,
            "gen_ai.usage.cache_read.input_tokens": call.costs.get("cache_read_tokens") or None,
            "gen_ai.usage.reasoning.output_tokens": call.costs.get("reasoning_tokens") or None,
            "gen_ai.usage.cache_creation.input_tokens": call.costs.get("cache_write_tokens") or None,
        }

    def _tool(self, call: _SpanCall) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.action,
        }

    def _evidence(self, first: _EventMark, last: _EventMark, place: str = "") -> dict[str, Any]:
        """The events that a span was made from: their positions, and the hash of the last one."""
        events = f"@e{first.seq}" if first.seq == last.seq else f"@e{first.seq}..e{last.seq}"
        return {
            "wakelog.selector": f"{self._name}{place or events}",
            "wakelog.event.first": first.seq,
            "wakelog.event.last": last.seq,
            "wakelog.event.hash": last.hash.hex(),
        }

    def _span(
        self,
        seq: Seq,
        name: str,
        times: tuple[int, int],
        attributes: dict[str, Any],
        *,
        parent: Seq | None = None,
        kind: int = INTERNAL,
        error: dict[str, Any] | None = None,
        span_events: list[dict[str, Any]] | None = None,
        links: list[dict[str, str]] | None = None,
    ) -> dict[str, Any]:
        id = self._session.id
        attributes = {"gen_ai.conversation.id": id, "session.id": id, **attributes}
        if error:
            attributes["error.type"] = text_in(error, "type") or "_OTHER"
        out: dict[str, Any] = {
            "traceId": trace_id(id),
            "spanId": span_id(id, seq),
            **({"parentSpanId": span_id(id, parent)} if parent is not None else {}),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(times[0] * 1000),
            "endTimeUnixNano": str(max(times) * 1000),
            "attributes": otlp.attributes(attributes),
            "events": span_events or [],
            "links": links or [],
            "status": {},
        }
        if error:
            # An error message is content: it may quote the request.
            message = text_in(error, "message") if self._content else ""
            out["status"] = {"code": _FAILED, "message": message or attributes["error.type"]}
        return out


def _number(given: Any) -> float | None:
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def _span_event(entry: Entry) -> dict[str, Any]:
    body = entry.body
    attributes = {"wakelog.event.first": entry.seq} | {
        f"wakelog.{name}": text_in(body, name) for name in ("rule", "severity", "by", "limit", "reason")
    }
    return {
        "timeUnixNano": str(entry.happened_at * 1000),
        "name": entry.kind,
        "attributes": otlp.attributes(attributes),
    }
