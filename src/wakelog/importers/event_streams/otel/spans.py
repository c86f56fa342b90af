"""OpenTelemetry: spans of generative AI as OTLP JSON, one document or one per line (as the file exporter writes).

Spans are made for measuring, not for recording: they arrive when they end, and mostly without content. So a session
made from them has the label `derived`, and a gap if the content is missing. A conversation, otherwise a trace, is a
session. Spans are read in the order they started: `invoke_agent` is a turn, or a call if it is inside another one;
`chat` is a reply of a model, `execute_tool` a call. All other spans are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers.common.chat import json_or_text
from wakelog.importers.event_streams.otel.span_reader import SpanReader, operation_of
from wakelog.importers.source.files import (
    RecordIds,
    Sample,
    home_files,
    is_document,
    json_digest,
    json_lines,
    path_digest,
    read_document,
    storable,
)
from wakelog.importers.source.timestamps import YEAR_2100_S
from wakelog.importers.steps import SourceRecord, Transcript, TranscriptHead
from wakelog.model.json_fields import as_dict, as_list, as_text, count_in, text_in, whole_number

NAME = "otel-spans"
TITLE = "OpenTelemetry"
find_in_home = home_files()
MARK, OWNER = "imported", "owner"
"""In a file that grows with incoming spans: how many of its lines were imported before, and into which session."""
_GROUPS = ("scopeSpans", "spans")
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")


def recognises(sample: Sample) -> bool:
    is_otlp = sample.has(b'"spans"') and (b'"resourceSpans"' in sample.start or b'"scopeSpans"' in sample.start)
    return is_otlp and b"gen_ai." in sample.start


def transcripts(path: Path) -> Iterator[Transcript]:
    spans, broken = _spans(path)
    groups: dict[str, list[dict[str, Any]]] = {}
    owners = _owners(spans)
    for span in spans:
        groups.setdefault(owners.get(text_in(span, "traceId"), "") or "trace", []).append(span)
    if not groups and broken:
        groups[f"{path.stem}-{path_digest(path)}"] = []
    for number, (owner, group) in enumerate(groups.items()):
        yield _transcript(owner, group, broken if number == 0 else [])


def _transcript(owner: str, spans: list[dict[str, Any]], broken: list[tuple[Any, str]]) -> Transcript:
    labels = {"derived": "spans"}
    for span in spans:
        attributes = span["attributes"]
        for key, label in (("service.name", "service"), ("gen_ai.agent.name", "agent_name")):
            if as_text(attributes.get(key)) and label not in labels:
                labels[label] = attributes[key][:200]
    return Transcript(TranscriptHead(owner, NAME, labels=labels), lambda: _records(spans, broken))


def _records(spans: list[dict[str, Any]], broken: list[tuple[Any, str]]) -> Iterator[tuple[SourceRecord, int]]:
    ids = RecordIds()
    for rest, why in broken:
        yield SourceRecord(ids.unique(json_digest(rest)), rest=rest, broken=why), len(str(rest))
    ordered = sorted(spans, key=lambda s: (s["start"], s["end"] == 0, -s["end"]))
    reader = SpanReader(ordered)
    for number, span in enumerate(ordered):
        id = ids.unique(text_in(span, "spanId") or json_digest(span["raw"]))
        steps = tuple(reader.steps(number))
        yield SourceRecord(id, steps, span["start"] // 1000, rest=span["raw"]), len(str(span["raw"]))


def _owners(spans: list[dict[str, Any]]) -> dict[str, str]:
    """The conversation or session of each trace; otherwise the trace's own id."""
    owners: dict[str, str] = {}
    for span in spans:
        trace, attributes = text_in(span, "traceId"), span["attributes"]
        # A trace stays in its session even if a late span names another one.
        owner = span["owner"] or text_in(attributes, "gen_ai.conversation.id") or text_in(attributes, "session.id")
        if owner and (trace not in owners or owners[trace] == trace):
            owners[trace] = owner
        owners.setdefault(trace, trace)
    return owners


def _spans(path: Path) -> tuple[list[dict[str, Any]], list[tuple[Any, str]]]:
    """All spans of a file, each with its attributes as one object; and what is not a span."""
    lines = list(json_lines(path))
    documents: list[Any] = [line.value for line in lines if line.value is not None]
    broken: list[tuple[Any, str]] = [(line.text, line.broken) for line in lines if line.value is None]
    if is_document(lines):
        given = read_document(path)
        documents, broken = given if isinstance(given, list) else [given], []
    spans: list[dict[str, Any]] = []
    marks = [line.value for line in lines if line.value and MARK in line.value]
    had = max((count_in(mark, MARK) for mark in marks), default=0)
    owner = next((text_in(mark, OWNER) for mark in marks), "")
    late = [line.number > had for line in lines if line.value is not None] if had else []
    seen: set[bytes] = set()
    for number, given in enumerate(documents):
        for resource in as_list(as_dict(given).get("resourceSpans", [given])):
            shared = _attributes(as_dict(as_dict(resource).get("resource")).get("attributes"))
            for scope in as_list(as_dict(resource).get("scopeSpans", [resource])):
                # What a group of spans shares is stored with the first of them.
                attributes = {k: v for each in (resource, scope) for k, v in as_dict(each).items() if k not in _GROUPS}
                for span in as_list(as_dict(scope).get("spans")):
                    if isinstance(span, dict):
                        same = msgspec.json.encode(span)
                        if text_in(span, "spanId") and same in seen:
                            continue  # sent twice
                        seen.add(same)
                        spans.append(
                            _span(span, shared, attributes) | {"late": bool(late) and late[number], "owner": owner}
                        )
                        attributes = {}
                    else:
                        broken.append((storable(span), "a span is not an object"))
    return spans, broken


def _span(span: dict[str, Any], shared: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
    raw = as_dict(storable(span | {"group": group} if group else span))
    attributes = {**shared, **_attributes(span.get("attributes"))}
    start, end = _nanoseconds(span.get("startTimeUnixNano")), _nanoseconds(span.get("endTimeUnixNano"))
    return raw | {
        "raw": raw,
        "attributes": attributes,
        "start": start,
        "end": end,
        "operation": operation_of(attributes, text_in(span, "name")),
    }


def _attributes(value: Any) -> dict[str, Any]:
    found = {}
    for entry in as_list(value):
        key = text_in(as_dict(entry), "key")
        if key:
            found[key] = storable(_value(as_dict(entry).get("value")))
    return found


def _value(given: Any, depth: int = 0) -> Any:
    fields = as_dict(given)
    if depth > 40:
        return None
    if "arrayValue" in fields:
        return [_value(v, depth + 1) for v in as_list(as_dict(fields["arrayValue"]).get("values"))]
    if "kvlistValue" in fields:
        entries = (as_dict(e) for e in as_list(as_dict(fields["kvlistValue"]).get("values")))
        return {text_in(e, "key"): _value(e.get("value"), depth + 1) for e in entries}
    value = next((fields[k] for k in _VALUES if k in fields), None)
    if "intValue" in fields and isinstance(value, str):
        number = json_or_text(value)
        return number if isinstance(number, int) else value
    return value


def _nanoseconds(value: Any) -> int:
    """A time in nanoseconds, which is a string in JSON. 0 for anything else, also for a time after 2100."""
    number = whole_number(value)
    return number if number < YEAR_2100_S * 1_000_000_000 else 0
