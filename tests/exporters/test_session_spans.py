"""A session as spans: valid by OpenTelemetry's own classes, silent about content, and the way back."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.importers.read_back import bring_in
from wakelog import events as ev
from wakelog import otlp
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError
from wakelog.exporters import session_spans
from wakelog.exporters.session_spans import SCHEMA_URL, session_document, span_id, trace_id
from wakelog.session import Session
from wakelog.store import Store

SECRET = "the quick zebra"


@pytest.fixture
def store() -> Store:
    ticks = iter(range(1_790_000_000_000_000, 1_890_000_000_000_000, 1_000_000))
    return Store(MemoryEngine(), clock=lambda: next(ticks))


def worked(store: Store) -> Session[Any]:
    session = store.session("work", goal=SECRET, labels={"agent_name": "lamp", "service": "lamps"})
    with session.turn(user=f"Is it on? {SECRET}"):
        session.append(
            ev.ActionRecorded(
                action="m1",
                tool="model",
                effect="model",
                input={"messages": [{"role": "user", "content": f"Is it on? {SECRET}"}], "system": SECRET},
                params={"model": "claude-lamp-1", "temperature": 0, "max_tokens": 100},
                output={
                    "type": "message",
                    "role": "assistant",
                    "id": "r1",
                    "model": "claude-lamp-1-b",
                    "content": [{"type": "tool_use", "id": "c1", "name": "read_lamp", "input": {"lamp": SECRET}}],
                },
                stop_reason="tool_use",
                cost=ev.Cost(tokens_in=50, tokens_out=5, cache_read_tokens=20, usd_micros=7, duration_us=300_000),
            ),
            ev.ActionRequested(action="c1", tool="read_lamp", effect="read", input={"lamp": SECRET}),
            ev.ActionStarted(action="c1"),
            ev.ActionSucceeded(action="c1", output=f"on, says {SECRET}"),
        )
        session.append(
            ev.ActionRequested(action="c2", tool="switch", input=SECRET, approval=True),
            ev.ActionApproved(action="c2", by="ada"),
            ev.ActionStarted(action="c2"),
            ev.ActionRecorded(action="c3", tool="inner", effect="read", inside="c2"),
            ev.ActionFailed(action="c2", error=ev.Failure("lamp-gone", f"no {SECRET}")),
        )
        session.monitors.flag("loop", SECRET)
    return session


def told(span: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def spans_of(session: Session[Any], **how: Any) -> dict[str, dict[str, Any]]:
    return {span["name"]: span for span in otlp.spans_in(session_document(session, **how))}


def test_a_session_is_a_trace_of_turns_models_and_tools(store: Store) -> None:
    session = worked(store)
    spans = spans_of(session)
    assert list(spans) == [
        "session work",
        "invoke_agent lamp",
        "chat claude-lamp-1",
        "execute_tool read_lamp",
        "execute_tool switch",
        "execute_tool inner",
    ]
    above = {name: span.get("parentSpanId") for name, span in spans.items()}
    ids = {name: span["spanId"] for name, span in spans.items()}
    turn = ids["invoke_agent lamp"]
    assert list(above.values()) == [None, ids["session work"], turn, turn, turn, ids["execute_tool switch"]]
    assert {span["traceId"] for span in spans.values()} == {trace_id(session.id)}
    model = told(spans["chat claude-lamp-1"])
    assert model["gen_ai.provider.name"] == "anthropic"
    assert (model["gen_ai.usage.input_tokens"], model["gen_ai.usage.cache_read.input_tokens"]) == ("50", "20")
    assert model["session.id"] == model["gen_ai.conversation.id"] == session.id
    took = int(spans["chat claude-lamp-1"]["endTimeUnixNano"]) - int(spans["chat claude-lamp-1"]["startTimeUnixNano"])
    assert took == 300_000_000
    failed = spans["execute_tool switch"]
    assert failed["status"] == {"code": 2, "message": "lamp-gone"}
    assert [event["name"] for event in failed["events"]] == ["action.approved"]
    assert [event["name"] for event in spans["invoke_agent lamp"]["events"]] == ["flag.raised"]


def test_a_span_leads_back_to_its_events(store: Store) -> None:
    session = worked(store)
    call = told(spans_of(session)["execute_tool read_lamp"])
    name, _, place = call["wakelog.selector"].partition("@")
    entries = list(session[f"@{place}"])
    assert name == "work"
    assert [e.kind for e in entries] == ["action.requested", "action.started", "action.succeeded"]
    assert entries[-1].hash.hex() == call["wakelog.event.hash"]


def test_content_stays_here_unless_it_is_asked_for(store: Store) -> None:
    session = worked(store)
    assert SECRET not in str(session_document(session))
    spans = spans_of(session, content=True)
    assert (
        told(spans["execute_tool read_lamp"])["gen_ai.tool.call.arguments"]
        == msgspec.json.encode({"lamp": SECRET}).decode()
    )
    assert spans["execute_tool switch"]["status"]["message"] == f"no {SECRET}"
    assert told(spans["chat claude-lamp-1"])["gen_ai.response.id"] == "r1"


def test_every_name_is_one_of_the_conventions(store: Store) -> None:
    from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes, session_attributes
    from opentelemetry.semconv.schemas import Schemas

    known = {
        value
        for module in (gen_ai_attributes, error_attributes, session_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    document = session_document(worked(store), content=True)
    names = {name for span in otlp.spans_in(document) for name in told(span)}
    assert {name for name in names if not name.startswith("wakelog.")} <= known
    assert SCHEMA_URL in {each.value for each in Schemas}


def test_the_document_is_valid_by_the_real_classes_and_comes_back_the_same(store: Store) -> None:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

    document = session_document(worked(store), content=True)
    data = TracesData.FromString(otlp.as_protobuf(document))
    found = data.resource_spans[0].scope_spans[0].spans
    assert [len(span.trace_id) for span in found] == [16] * 6
    assert [len(span.span_id) for span in found] == [8] * 6
    assert found[2].kind == Span.SPAN_KIND_CLIENT
    assert found[4].status.code == Status.STATUS_CODE_ERROR
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in found)
    back = otlp.read_protobuf(otlp.as_protobuf(document))
    assert otlp.as_protobuf(back) == otlp.as_protobuf(document)
    assert [told(s) for s in otlp.spans_in(back)] == [told(s) for s in otlp.spans_in(document)]


def test_what_is_imported_again_has_the_same_turns_calls_and_words(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(otlp.as_json(session_document(worked(store), content=True)))
    report, (found,) = bring_in(Store(MemoryEngine()), path)
    assert report.format == "otel-spans"
    assert found.of("turn.started")[0]["input"] == f"Is it on? {SECRET}"
    calls = {call["action"]: call for call in found.calls}
    assert [(c["tool"], c["outcome"]) for c in calls.values()] == [
        ("read_lamp", "succeeded"),
        ("switch", "failed"),
        ("inner", "succeeded"),
    ]
    assert (calls["c1"]["input"], calls["c1"]["output"]) == ({"lamp": SECRET}, f"on, says {SECRET}")
    assert found.replies[0]["cost"]["tokens_in"] == 50


def test_a_long_session_is_several_documents_and_is_never_held_whole(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = worked(store)
    monkeypatch.setattr(session_spans, "SPANS_MAX", 2)
    documents = session_spans.session_documents(session, content=True)
    path = tmp_path / "spans.jsonl"
    path.write_bytes(b"".join(otlp.as_json(document) + b"\n" for document in documents))
    whole = list(otlp.spans_in(session_document(session, content=True)))
    parts = [list(otlp.spans_in(document)) for document in session_spans.session_documents(session, content=True)]
    assert [len(part) for part in parts] == [2, 2, 2]
    assert [span for part in parts for span in part] == whole
    _, (found,) = bring_in(Store(MemoryEngine()), path)
    assert [call["tool"] for call in found.calls] == ["read_lamp", "switch", "inner"]
    monkeypatch.setattr(session_spans, "SIZE_MAX", 1)  # less than any span has: then each goes alone
    assert len(list(session_spans.session_documents(session))) == 6
    seen: list[int] = []
    read = session.log.entry

    def noted(seq: int) -> Any:
        seen.append(seq)
        return read(seq)

    monkeypatch.setattr(session.log, "entry", noted)
    parts_one_by_one = session_spans.session_documents(session, content=True)
    next(parts_one_by_one)
    assert len(seen) <= 1, "content is read when its span is given out"


def test_the_same_event_is_the_same_span_in_every_export(store: Store) -> None:
    session = worked(store)
    before = spans_of(session)
    with session.turn(user="and now?"):
        session.message("assistant", "still on")
    after = session_document(session)
    assert {s["spanId"] for s in before.values()} < {s["spanId"] for s in otlp.spans_in(after)}
    (only,) = otlp.spans_in(session_document(session, "@2"))
    assert (only["name"], only["parentSpanId"]) == ("invoke_agent lamp", span_id(session.id, 0))
    assert only in list(otlp.spans_in(after))


def test_a_fork_tells_its_own_work_and_links_to_its_parent(store: Store) -> None:
    session = worked(store)
    fork = session.fork(name="other")
    with fork.turn(user="try"):
        fork.message("assistant", "tried")
    root, turn = otlp.spans_in(session_document(fork))
    assert root["links"] == [{"traceId": trace_id(session.id), "spanId": span_id(session.id, 0)}]
    assert told(turn)["wakelog.turn"] == "2"


def test_what_was_pruned_or_is_open_is_still_a_span(store: Store) -> None:
    from wakelog.log.removal import erase

    session = worked(store)
    asked = next(e.seq for e in session.events(kind="action.requested"))
    erase(session.log, [asked], why="asked for", by="ada")
    session.append(ev.ActionRequested(action="waits", tool="send", approval=True))
    spans = spans_of(session, content=True)
    assert "gen_ai.tool.call.arguments" not in told(spans["execute_tool read_lamp"])
    assert told(spans["execute_tool send"])["wakelog.outcome"] == "waiting"
    assert spans["execute_tool send"]["status"] == {}


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"resourceSpans":1}', b"[" * 100_000])
def test_a_bad_document_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError) as caught:
        otlp.read_json(body)
    assert caught.value.kind == "bad-otlp"


def test_bad_protobuf_and_bad_ids_are_refused() -> None:
    with pytest.raises(InvalidInputError):
        otlp.read_protobuf(b"\x0a\xff\xff")
    with pytest.raises(InvalidInputError):
        otlp.as_protobuf({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]})
