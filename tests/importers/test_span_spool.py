"""Spans as they come: out of order, late, twice, too many, and with a process that dies in between."""

from pathlib import Path
from typing import Any

import pytest

from tests.importers.read_back import ReadBack, bring_in, memory, written
from tests.importers.test_otel_spans import START, exported, span, talk
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotAllowedError, UnavailableError
from wakelog.importers.event_streams.otel.span_spool import SpanSpool
from wakelog.store import Store

TRACE = "ab" * 16


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def real(one: dict[str, Any]) -> dict[str, Any]:
    """A span with ids as OpenTelemetry makes them."""
    above = one["parentSpanId"]
    return one | {
        "traceId": TRACE,
        "spanId": one["spanId"].encode().hex().zfill(16),
        "parentSpanId": above.encode().hex().zfill(16) if above else "",
    }


def spans() -> list[dict[str, Any]]:
    """chat, tool, chat, and last the agent that they are of."""
    return [real(one) for one in talk()]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(tmp_path: Path, clock: Clock) -> SpanSpool:
    return SpanSpool(tmp_path / "spool", clock=clock)


def taken_in(spool: SpanSpool, store: Store) -> ReadBack:
    assert spool.ready() == [TRACE]
    (session,) = spool.bring_in(store, TRACE).sessions
    return ReadBack(store.resume(session.name))


def test_a_trace_waits_for_its_root_and_is_read_like_a_file(spool: SpanSpool, clock: Clock, tmp_path: Path) -> None:
    store = memory()
    for one in spans():
        assert spool.take(exported(one)).spans == 1
        clock.now += 2
        if one["name"].startswith(("chat", "execute")):
            assert spool.ready() == [], "its parent has not come"
    found = taken_in(spool, store)
    _, (other,) = bring_in(memory(), written(tmp_path / "whole.json", exported(*spans())))
    assert found.kinds == other.kinds
    assert found.session.name == "otel-talk-1"
    assert spool.ready() == []


def test_a_span_that_is_sent_again_is_told_once(spool: SpanSpool, clock: Clock) -> None:
    store = memory()
    for one in (*spans(), *spans()):
        spool.take(exported(one))
    clock.now += 2
    found = taken_in(spool, store)
    assert (len(found.replies), len(found.calls), len(found.records)) == (2, 1, 4)
    spool.take(exported(spans()[1]))
    clock.now += 2
    again = taken_in(spool, store)
    assert (len(again.calls), len(again.records)) == (1, 4)


def test_a_root_that_comes_late_ends_the_turn_that_is_there(spool: SpanSpool, clock: Clock) -> None:
    store = Store(MemoryEngine(), clock=lambda: START // 1000 + 60_000_000)
    *inner, root = spans()
    spool.take(exported(*inner))
    clock.now += 10
    assert spool.ready() == []
    clock.now += 25
    before = taken_in(spool, store)
    assert (len(before.of("turn.started")), len(before.of("turn.ended"))) == (1, 0)
    assert before.session.name == f"otel-{TRACE}"
    spool.take(exported(root))
    clock.now += 2
    assert spool.ready() == [TRACE]
    spool.bring_in(store, TRACE)
    after = ReadBack(store.resume(before.session.name))
    assert (len(after.of("turn.started")), len(after.of("turn.ended"))) == (1, 1)
    assert after.session.verify().ok


def test_a_child_that_comes_late_is_added(spool: SpanSpool, clock: Clock) -> None:
    store = memory()
    chat, tool, *rest = spans()
    spool.take(exported(chat, *rest))
    clock.now += 2
    before = taken_in(spool, store)
    assert tool["spanId"] not in before.records
    spool.take(exported(tool))
    clock.now += 2
    after = taken_in(spool, store)
    assert tool["spanId"] in after.records
    assert [c["tool"] for c in after.calls] == ["read_file"]
    assert len(after.of("turn.started")) == 1
    assert after.session.verify().ok


def test_the_next_process_goes_on_where_one_died(tmp_path: Path, clock: Clock) -> None:
    store = memory()
    first = SpanSpool(tmp_path / "spool", clock=clock)
    *inner, root = spans()
    first.take(exported(*inner))
    file = tmp_path / "spool" / f"{TRACE}.jsonl"
    with file.open("ab") as out:
        out.write(b'{"resourceSpans":[{"scopeSpans"')
    with pytest.raises(NotAllowedError) as caught:
        SpanSpool(tmp_path / "spool")
    assert caught.value.kind == "spool-taken"
    first.close()
    second = SpanSpool(tmp_path / "spool", clock=clock)
    second.take(exported(root))
    clock.now += 2
    found = taken_in(second, store)
    assert len(found.records) == 4
    second.close()
    third = SpanSpool(tmp_path / "spool", clock=clock)
    assert third.ready() == [], "what the session has is known from the file"


def test_spans_without_valid_ids_are_counted_and_the_rest_is_kept(spool: SpanSpool) -> None:
    bad = [spans()[0] | {"traceId": "zz"}, spans()[0] | {"spanId": "0" * 16}, {}]
    taken = spool.take(exported(*spans(), *bad))
    assert (taken.spans, taken.rejected) == (4, 3)
    assert "traceId" in taken.why


def test_one_trace_and_all_traces_are_bounded(tmp_path: Path) -> None:
    small = SpanSpool(tmp_path / "a", trace_max=1000)
    assert small.take(exported(spans()[3])).spans == 1
    taken = small.take(exported(*spans()))
    assert (taken.spans, taken.rejected) == (0, 4)
    full = SpanSpool(tmp_path / "b", spool_max=10)
    with pytest.raises(UnavailableError) as caught:
        full.take(exported(*spans()))
    assert caught.value.kind == "spool-full"


def test_what_has_nothing_to_do_with_ai_is_forgotten(spool: SpanSpool, clock: Clock) -> None:
    other = span("a", "GET /lamps", 0) | {"attributes": [], "traceId": TRACE, "spanId": "1" * 16}
    spool.take(exported(other))
    clock.now += 100
    assert spool.ready() == []
    assert spool.forget() == 1
    assert list(spool.folder.glob("*.jsonl")) == []


def test_what_is_in_its_session_is_forgotten_after_an_hour(spool: SpanSpool, clock: Clock) -> None:
    spool.take(exported(*spans()))
    clock.now += 2
    spool.bring_in(memory(), TRACE)
    assert spool.forget() == 0
    clock.now += 3601
    assert spool.forget() == 1
