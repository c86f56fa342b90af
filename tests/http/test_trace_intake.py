"""The receiver of spans, with OpenTelemetry's own SDK and exporters as the sender."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

import wakelog
from tests.receiver import Got, Reaction, receiving
from wakelog import otlp
from wakelog.exporters.session_spans import session_document
from wakelog.exporters.span_sender import SpanSender
from wakelog.http.trace_intake import BODY_MAX, TraceImports, TraceIntake, intake_running
from wakelog.importers.event_streams.otel.span_spool import SpanSpool
from wakelog.store import Store

OK = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x"}]}]}]}


class Intake:
    def __init__(self, url: str, spool: SpanSpool, store: Store) -> None:
        self.url, self.store, self.spool = url, store, spool
        self.imports = TraceImports(spool, store)

    def post(self, body: bytes, path: str = "/v1/traces", method: str = "POST", **headers: str) -> urllib3.HTTPResponse:
        given = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        answer = urllib3.request(method, self.url + path, body=body, headers=given, retries=False)
        assert isinstance(answer, urllib3.HTTPResponse)
        return answer


@pytest.fixture(autouse=True)
def _no_settings_of_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the SDK send here, whatever the environment says about telemetry."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Intake]:
    spool = SpanSpool(tmp_path / "spool", quiet_s=0)
    with wakelog.open(tmp_path / "store") as store, intake_running(TraceIntake(spool)) as url:
        yield Intake(url, spool, store)
    spool.close()


def traced(endpoint: str, compression: Any = None) -> Any:
    """A provider of the real SDK that sends each batch when it is flushed."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "lamps"}))
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces", compression=compression, timeout=120))
    )
    return provider


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_an_agent_that_is_traced_by_the_real_sdk_becomes_a_session(intake: Intake, compression: str | None) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression

    provider = traced(intake.url, Compression(compression) if compression else None)
    tracer = provider.get_tracer("agent")
    talk = {"gen_ai.conversation.id": "talk-7"}
    with tracer.start_as_current_span(
        "invoke_agent lamp", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lamp", **talk}
    ):
        said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Is it on?"}]}])
        answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "I will look."}]}])
        with tracer.start_as_current_span(
            "chat lamp-1",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "lamp-1",
                "gen_ai.usage.input_tokens": 12,
                "gen_ai.input.messages": said,
                "gen_ai.output.messages": answer,
                **talk,
            },
        ):
            pass
        with (
            pytest.raises(TimeoutError),
            tracer.start_as_current_span(
                "execute_tool look", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
            ),
        ):
            raise TimeoutError("no answer")
    provider.shutdown()
    assert intake.imports.step() == 1
    session = intake.store.resume("otel-talk-7")
    (call,) = [row for row in session.calls.table() if row.tool == "look"]
    assert call.outcome == "failed"
    assert [m.text for m in session.messages()] == ["Is it on?", "I will look."]
    assert session.log.part("labels")["service"] == "lamps"
    assert session.budget.cost().rows[0].tokens_in == 12
    assert session.verify().ok


def test_a_program_with_the_instrumentation_of_openai_becomes_a_session(
    intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    import openai
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "lamp-1-b",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }

    def model(_: Got) -> Reaction:
        return Reaction(200, {"Content-Type": "application/json"}, json.dumps(reply).encode())

    provider = traced(intake.url)
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        with receiving(model) as api:
            client = openai.OpenAI(base_url=f"{api.url}/v1", api_key="none", max_retries=0)
            client.chat.completions.create(model="lamp-1", messages=[{"role": "user", "content": "Is it on?"}])
            client.close()
    finally:
        instrumentor.uninstrument()
        provider.shutdown()
    assert intake.imports.step() == 1
    (head,) = intake.store.sessions()
    session = intake.store.resume(head.session)
    (row,) = session.calls.table()
    assert (row.effect, row.outcome, row.tokens) == ("model", "succeeded", 12)
    assert [m.text for m in session.messages()] == ["Is it on?", "It is."]


@pytest.mark.parametrize("protocol", ["http/json", "http/protobuf"])
def test_what_one_store_exports_another_receives(intake: Intake, tmp_path: Path, protocol: str) -> None:
    from wakelog.cli.demo import build

    with wakelog.open(tmp_path / "other") as other:
        build("fix-bug", other.engine, at_us=1_794_733_200_000_000)
        session = other.resume("fix-bug")
        sent = SpanSender(intake.url, protocol=protocol).send(session_document(session, content=True))
        assert (sent.spans, sent.rejected) == (36, 0)
        intake.imports.step()
        (head,) = intake.store.sessions()
        received = intake.store.resume(head.session)
        asked = [row.tool for row in session.calls.table() if row.effect != "model"]
        assert sorted(row.tool for row in received.calls.table() if row.effect != "model") == sorted(asked)
        assert received.log.part("labels")["origin"] == session.id


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"nonsense", {}, 400, "not JSON"),
        (b'{"resourceSpans": 3}', {}, 400, "resourceSpans"),
        (b"\xff\xff", {"Content_Type": "application/x-protobuf"}, 400, "protobuf"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "text/plain"),
        (b"{}", {"Content_Encoding": "br"}, 415, "gzip"),
        (b"{}", {"Content_Encoding": "gzip"}, 400, "not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], {"Content_Encoding": "gzip"}, 400, "in the middle"),
        (gzip.compress(b" " * (BODY_MAX + 1), mtime=0), {"Content_Encoding": "gzip"}, 413, "smaller batches"),
        (b"{}", {"Host": "evil.example"}, 400, "evil.example"),
        (b"{}", {"Origin": "https://evil.example"}, 400, "evil.example"),
    ],
)
def test_bad_requests_are_answered_as_otlp_asks(
    intake: Intake, body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    answer = intake.post(body, **headers)
    assert answer.status == status
    assert said.encode() in answer.data
    assert answer.headers["content-type"] == headers.get("Content_Type", "").replace("text/plain", "") or "json"
    assert intake.imports.step() == 0


def test_a_body_that_is_announced_too_large_is_not_read(intake: Intake) -> None:
    answer = intake.post(b" " * (BODY_MAX + 1))
    assert answer.status == 413


def test_paths_methods_and_partial_success(intake: Intake) -> None:
    assert intake.post(b"{}", path="/v1/logs").status == 404
    assert intake.post(b"", method="GET").status == 405
    assert intake.post(b"{}").json() == {}
    half = json.loads(json.dumps(OK))
    half["resourceSpans"][0]["scopeSpans"][0]["spans"].append({"traceId": "0" * 32, "spanId": "cd" * 8})
    told = intake.post(json.dumps(half).encode()).json()["partialSuccess"]
    assert told["rejectedSpans"] == "1"
    packed = otlp.as_protobuf(half)
    answer = intake.post(packed, Content_Type="application/x-protobuf")
    assert otlp.read_partial_success(answer.data)["rejectedSpans"] == "1"


def test_where_there_is_no_room_the_sender_is_told_to_wait(tmp_path: Path) -> None:
    spool = SpanSpool(tmp_path / "spool", spool_max=1)
    with wakelog.open(tmp_path / "store") as store, intake_running(TraceIntake(spool)) as url:
        answer = Intake(url, spool, store).post(json.dumps(OK).encode())
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")


def test_with_a_token_only_those_who_have_it_are_let_in(tmp_path: Path) -> None:
    spool = SpanSpool(tmp_path / "spool")
    with wakelog.open(tmp_path / "store") as store, intake_running(TraceIntake(spool, token="hunter2")) as url:
        asker = Intake(url, spool, store)
        assert asker.post(b"{}").status == 401
        wrong = asker.post(b"{}", Authorization="Bearer hunter3")
        assert (wrong.status, b"hunter2" in wrong.data) == (401, False)
        assert asker.post(b"{}", Authorization="Bearer hunter2").status == 200
