"""Sessions as OpenTelemetry spans."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.exporters.session_spans import session_document
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import Query


class SpansQuery(Query, frozen=True):
    place: str = ""
    """A turn or a range: `@2`, `@1..@5`; by default the whole session."""
    content: bool = False
    """Include messages, inputs and outputs."""


class SpanDocument(msgspec.Struct, frozen=True, rename="camel"):
    """An OTLP export of traces in JSON."""

    resource_spans: list[dict[str, Any]]


@route("GET", "/sessions/{session}/spans")
def spans(call: VerbRequest, query: SpansQuery) -> SpanDocument:
    """Returns a session as OpenTelemetry spans in OTLP's JSON: the session, its turns, and its model and tool calls.
    Content is left out unless asked for."""
    results = session_document(call.session(), query.place, content=query.content)
    return SpanDocument(results["resourceSpans"])
