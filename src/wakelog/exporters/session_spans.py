"""A session as spans of OpenTelemetry, by the names of its conventions for generative AI.

One session is one trace: `session NAME` is its root, each attempt at a turn an `invoke_agent` below it, each answer of
a model a `chat`, and each call of a tool an `execute_tool`. A call that a tool made hangs below that call. Ids of
traces and spans are hashes of the session and the event, so the same event is the same span in every export. What a
fork inherited is its parent's: the fork's root links there.

Every span names the events it was made from (`wakelog.selector`, `wakelog.event.hash`). What was said and done is left
out unless it is asked for; see span_content.py.

A session is read twice, so that it need not be held: first what the spans are, a few numbers each, and then, for each
span that is given out, the content of its events. A long session is several documents of one trace.
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
_MOMENTS = frozenset(
    {
        *("flag.raised", "action.approved", "action.denied", "input.requested", "input.answered", "budget.reached"),
        *("history.rewound", "history.compacted", "history.adopted", "payload.erased", "range.pruned", "gap.noted"),
    }
)
"""Kinds that are told as events of the span they happened in."""
_PROVIDERS = {
    "claude": "anthropic",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "deepseek": "deepseek",
} | dict.fromkeys(("gpt", "chatgpt", "o1", "o3", "o4"), "openai")
"""Whose model it is, by how its name begins, where nothing else tells."""
_COUNTS = ("tokens_in", "tokens_out", "usd_micros", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_PRICED = {"google": "gcp.gemini"}
SPANS_MAX, SIZE_MAX = 500, 4 << 20
"""What one document of several holds at most, and how many characters; a single span may have more."""


def session_document(session: Session[Any], where: str = "", *, content: bool = False) -> dict[str, Any]:
    """A session, or a range of it, as one document of OTLP. A range has no root span, but the same trace."""
    return _document(session, list(session_spans(session, where, content=content)))


def session_documents(session: Session[Any], where: str = "", *, content: bool = False) -> Iterator[dict[str, Any]]:
    """The same in documents of a size that collectors take, one at a time."""
    spans: list[dict[str, Any]] = []
    size = 0
    for span in session_spans(session, where, content=content):
        more = sum(len(about["value"].get("stringValue", "")) for about in span["attributes"])
        if spans and (len(spans) >= SPANS_MAX or size + more > SIZE_MAX):
            yield _document(session, spans)
            spans, size = [], 0
        spans.append(span)
        size += more
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
    """The spans of a session, each after the one above it."""
    log = session.log
    span = resolve_range(log, where) if where else None
    entries = log.entries(after=span.first - 1, upto=span.last) if span else log.entries()
    tree = _Tree(session, content)
    for entry in entries:
        # What a fork inherited is told by the session that it is of.
        if entry.session == session.id:
            tree.take(entry)
    return tree.spans(has_root=span is None)


def trace_id(session: SessionId) -> str:
    return hashlib.sha256(f"wakelog trace {session}".encode()).hexdigest()[:32]


def span_id(session: SessionId, seq: Seq) -> str:
    """The span that an event begins; 0 is the session itself."""
    return hashlib.sha256(f"wakelog span {session} {seq}".encode()).hexdigest()[:16]


class _Told(msgspec.Struct, frozen=True, gc=False):
    """An event that a span is made from: where it is and when it happened. Its content is read again when needed."""

    seq: Seq
    hash: bytes
    at: int
    turn: int
    attempt: int

    @classmethod
    def by(cls, entry: Entry) -> _Told:
        header = entry.header
        return cls(entry.seq, entry.hash, entry.happened_at, header.turn, header.attempt)


class _SpanCall(Call):
    """A call with what its span needs."""

    asked_by: _Told | None = None
    ended_by: _Told | None = None
    began_at: int = 0
    duration_us: int = 0
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    costs: dict[str, int] = msgspec.field(default_factory=dict)
    price: str = ""
    stop_reason: str = ""
    error: dict[str, Any] = msgspec.field(default_factory=dict)
    inside: str = ""
    moments: list[dict[str, Any]] = msgspec.field(default_factory=list)


class _Turn:
    """One attempt at a turn."""

    def __init__(self, started: _Told) -> None:
        self.started = started
        self.last = started
        self.ended: _Told | None = None
        self.outcome = ""
        self.error: dict[str, Any] = {}
        self.moments: list[dict[str, Any]] = []


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
        self._first: _Told | None = None
        self._last: _Told | None = None
        self._moments: list[dict[str, Any]] = []
        self._children: list[SessionId] = []
        self._forked_from: SessionId | None = None

    def take(self, entry: Entry) -> None:
        told = _Told.by(entry)
        self._first = self._first or told
        self._last = told
        header, body = entry.header, entry.body
        turn = self._turns.get((header.turn, header.attempt))
        if entry.kind == "turn.started":
            turn = self._turns[header.turn, header.attempt] = _Turn(told)
        elif entry.kind == "turn.ended" and turn is not None:
            turn.ended = told
            turn.outcome, turn.error = text_in(body, "outcome") or "completed", as_dict(body.get("error"))
        if turn is not None:
            turn.last = told
        call = self._calls.take(entry.seq, entry.kind, header, body)
        if call is not None:
            self._note(call, entry, told)
        if entry.kind in _MOMENTS:
            moments = call.moments if call is not None else turn.moments if turn is not None else self._moments
            moments.append(_moment(entry))
        if entry.kind == "subagent.spawned" and text_in(body, "session"):
            self._children.append(SessionId(text_in(body, "session")))
        if entry.kind == "session.forked":
            self._forked_from = SessionId(text_in(body, "parent")) if text_in(body, "parent") else None

    def _note(self, call: _SpanCall, entry: Entry, told: _Told) -> None:
        body = entry.body
        if call.request == entry.seq:
            call.asked_by, call.began_at = told, told.at
            call.tool = call.tool or tool_of(self._log, entry, self._tools)
            call.params, call.inside = as_dict(body.get("params")), text_in(body, "inside")
        if entry.kind == "action.started":
            call.began_at = told.at
        if call.settled == entry.seq or entry.kind == "action.uncertain":
            call.ended_by = told
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

    def _root(self, first: _Told, last: _Told) -> dict[str, Any]:
        head = self._session.head
        about = {"wakelog.session.status": self._session.status, "wakelog.event.count": head.seq}
        linked = [*self._children, *([self._forked_from] if self._forked_from else [])]
        return self._span(
            0,
            f"session {self._name}",
            (first.at, last.at),
            about | self._evidence(first, last) | {"wakelog.selector": self._name},
            moments=self._moments,
            links=[{"traceId": trace_id(id), "spanId": span_id(id, 0)} for id in linked],
        )

    def _turn(self, turn: _Turn) -> dict[str, Any]:
        started, end = turn.started, turn.ended or turn.last
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent,
            "wakelog.turn": started.turn,
            "wakelog.attempt": started.attempt,
            "wakelog.outcome": turn.outcome if turn.ended else "open",
            **self._evidence(started, end, f"@{started.turn}.{started.attempt}"),
        }
        if self._content:
            about |= turn_content(self._log, self._log.entry(started.seq))
        failed = turn.outcome in ("failed", "interrupted")
        error = turn.error or ({"type": turn.outcome} if failed else {})
        name = f"invoke_agent {self._agent}".rstrip()
        return self._span(started.seq, name, (started.at, end.at), about, parent=0, error=error, moments=turn.moments)

    def _call(self, call: _SpanCall) -> dict[str, Any]:
        asked = call.asked_by
        assert asked is not None, "a call begins with the event that asked for it"
        end = call.ended_by or asked
        turn = self._turns.get((call.turn, call.attempt))
        began, ended = call.began_at, end.at
        if end is asked and call.status == "done":
            # A call that was recorded when it was over: it began as long before as it took.
            began = max(ended - call.duration_us, turn.started.at if turn else 0)
        inside = self._calls.by_action.get(call.inside) if call.inside else None
        above = inside if inside is not None and inside is not call else None
        about = {
            **(self._model(call) if call.is_model else self._tool(call)),
            "wakelog.effect": call.effect,
            "wakelog.outcome": call.outcome if call.status == "done" else call.status,
            "wakelog.tries": call.tries,
            "wakelog.cost.usd_micros": call.costs.get("usd_micros") or None,
            **self._evidence(asked, end),
        }
        if self._content:
            done = self._log.entry(call.ended_by.seq) if call.ended_by is not None else None
            about |= call_content(self._log, call, self._log.entry(asked.seq), done)
        error = call.error or {"type": call.outcome}
        model = str(about.get("gen_ai.request.model") or "")
        return self._span(
            asked.seq,
            (f"chat {model}" if call.is_model else f"execute_tool {call.tool}").rstrip(),
            (began, ended),
            about,
            parent=above.request if above else turn.started.seq if turn else 0,
            kind=CLIENT if call.is_model else INTERNAL,
            error=error if call.outcome in (*FAILURES, "denied", "interrupted", "cancelled") else {},
            moments=call.moments,
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

    def _evidence(self, first: _Told, last: _Told, place: str = "") -> dict[str, Any]:
        """The events that a span was made from: where they are, and the hash that proves the last."""
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
        about: dict[str, Any],
        *,
        parent: Seq | None = None,
        kind: int = INTERNAL,
        error: dict[str, Any] | None = None,
        moments: list[dict[str, Any]] | None = None,
        links: list[dict[str, str]] | None = None,
    ) -> dict[str, Any]:
        id = self._session.id
        about = {"gen_ai.conversation.id": id, "session.id": id, **about}
        if error:
            about["error.type"] = text_in(error, "type") or "_OTHER"
        out: dict[str, Any] = {
            "traceId": trace_id(id),
            "spanId": span_id(id, seq),
            **({"parentSpanId": span_id(id, parent)} if parent is not None else {}),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(times[0] * 1000),
            "endTimeUnixNano": str(max(times) * 1000),
            "attributes": otlp.attributes(about),
            "events": moments or [],
            "links": links or [],
            "status": {},
        }
        if error:
            # The words of an error are content: they quote what was asked.
            told = text_in(error, "message") if self._content else ""
            out["status"] = {"code": _FAILED, "message": told or about["error.type"]}
        return out


def _number(given: Any) -> float | None:
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def _moment(entry: Entry) -> dict[str, Any]:
    body = entry.body
    about = {"wakelog.event.first": entry.seq} | {
        f"wakelog.{name}": text_in(body, name) for name in ("rule", "severity", "by", "limit", "reason")
    }
    return {
        "timeUnixNano": str(entry.happened_at * 1000),
        "name": entry.kind,
        "attributes": otlp.attributes(about),
    }
