"""Telemetry: sessions as spans of OpenTelemetry."""

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
    """What was said and done too."""


class SpanDocument(msgspec.Struct, frozen=True, rename="camel"):
    """An export of traces, as OTLP writes it in JSON."""

    resource_spans: list[dict[str, Any]]


@route("GET", "/sessions/{session}/spans")
def spans(call: VerbRequest, query: SpansQuery) -> SpanDocument:
    """Gives a session as spans of OpenTelemetry in OTLP's JSON: the session, its turns, and the calls of models and
    tools. What was said is left out, unless it is asked for."""
    found = session_document(call.session(), query.place, content=query.content)
    return SpanDocument(found["resourceSpans"])
