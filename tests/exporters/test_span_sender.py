"""Spans sent to a collector: in batches, again when it is busy, and never with a key in a message."""

import gzip
from typing import Any

import pytest

from tests.receiver import Got, Reaction, receiving
from wakelog import otlp
from wakelog.errors import InvalidInputError, UnavailableError
from wakelog.exporters.span_sender import BATCH, TRIES, SpanSender


def document(count: int) -> dict[str, Any]:
    spans = [{"traceId": "ab" * 16, "spanId": f"{n + 1:016x}", "name": f"s{n}"} for n in range(count)]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "t"}, "spans": spans}]}]}


def names(got: list[Got], media: str) -> list[str]:
    read = otlp.read_json if media == otlp.JSON else otlp.read_protobuf
    assert {g.headers["content-type"] for g in got} == {media}
    return [span["name"] for g in got for span in otlp.spans_in(read(gzip.decompress(g.body)))]


@pytest.mark.parametrize(("protocol", "media"), [("http/json", otlp.JSON), ("http/protobuf", otlp.PROTOBUF)])
def test_all_spans_arrive_in_batches(protocol: str, media: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, other=2")
    with receiving() as collector:
        sent = SpanSender(collector.url, protocol=protocol).send(document(BATCH + 1))
    assert (sent.spans, sent.rejected) == (BATCH + 1, 0)
    assert names(collector.got, media) == [f"s{n}" for n in range(BATCH + 1)]
    assert [(g.path, g.headers["x-key"], g.headers["other"]) for g in collector.got] == [("/v1/traces", "a b", "2")] * 2


def test_a_path_of_ones_own_is_used_as_it_is() -> None:
    with receiving() as collector:
        SpanSender(f"{collector.url}/in/traces").send(document(1))
    assert collector.got[0].path == "/in/traces"


def test_a_busy_collector_is_asked_again_when_it_says() -> None:
    answers = iter([Reaction(503), Reaction(429, {"Retry-After": "7"}), Reaction()])
    waits: list[float] = []
    with receiving(lambda _: next(answers)) as collector:
        SpanSender(collector.url, sleep=waits.append).send(document(1))
    assert waits == [0.5, 7.0]
    assert len({g.body for g in collector.got}) == 1


def test_who_stays_away_or_busy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2")
    waits: list[float] = []
    with receiving(lambda _: Reaction(503)) as collector, pytest.raises(UnavailableError) as busy:
        SpanSender(collector.url, sleep=waits.append).send(document(1))
    assert len(collector.got) == TRIES
    with pytest.raises(UnavailableError) as away:
        SpanSender("http://127.0.0.1:9", sleep=waits.append).send(document(1))
    assert len(waits) == 2 * (TRIES - 1)
    assert "hunter2" not in str(busy.value) + str(away.value)


def test_a_refusal_is_told_at_once_in_the_collectors_words() -> None:
    refusal = Reaction(401, {"Content-Type": "application/json"}, b'{"code":16,"message":"no such key"}')
    with receiving(lambda _: refusal) as collector, pytest.raises(InvalidInputError, match="401 no such key") as caught:
        SpanSender(collector.url).send(document(1))
    assert caught.value.kind == "otlp-refused"
    assert len(collector.got) == 1


@pytest.mark.parametrize("protocol", ["http/json", "http/protobuf"])
def test_spans_that_the_collector_rejects_are_counted(protocol: str) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans, response.partial_success.error_message = 2, "too old"
    body, media = response.SerializeToString(), otlp.PROTOBUF
    if protocol == "http/json":
        body, media = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', otlp.JSON
    with receiving(lambda _: Reaction(200, {"Content-Type": media}, body)) as collector:
        sent = SpanSender(collector.url, protocol=protocol).send(document(3))
    assert (sent.spans, sent.rejected, sent.message) == (3, 2, "too old")


@pytest.mark.parametrize("url", ["collector:4318", "ftp://x", "http://user:pass@x"])
def test_a_bad_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError):
        SpanSender(url)


def test_a_protocol_that_cannot_be_spoken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(InvalidInputError, match="grpc"):
        SpanSender("http://127.0.0.1:9")
