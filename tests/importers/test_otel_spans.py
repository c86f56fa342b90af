"""Spans of OpenTelemetry: what they tell of a run, and what they do not."""

import json
from pathlib import Path
from typing import Any

from tests.importers.read_back import ReadBack, bring_in, lines, memory, said, written

SECOND = 1_000_000_000
START = 1763510995 * SECOND


def value(given: Any) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(v) for v in given]}}
    return {"stringValue": given}


def span(id: str, name: str, at: int, parent: Any = "", status: Any = None, **about: Any) -> dict[str, Any]:
    operation = name.partition(" ")[0]
    attributes = {"gen_ai.operation.name": operation} | {k.replace("__", "."): v for k, v in about.items()}
    return {
        "traceId": "t" * 32,
        "spanId": id,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(START + at * SECOND),
        "endTimeUnixNano": str(START + (at + 1) * SECOND),
        "attributes": [{"key": k, "value": value(v)} for k, v in attributes.items()],
        "status": status or {},
    }


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "lamps"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def messages(*pairs: tuple[str, Any]) -> str:
    def part(given: Any) -> dict[str, Any]:
        return given if isinstance(given, dict) else {"type": "text", "content": given}

    return json.dumps([{"role": role, "parts": [part(given)]} for role, given in pairs])


CALL = {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "a"}}


def talk() -> list[dict[str, Any]]:
    """In the order that spans come: each when it ends."""
    asked = ("user", "Is it on?")
    return [
        span(
            "b",
            "chat lamp-1",
            1,
            "a",
            gen_ai__request__model="lamp-1",
            gen_ai__response__id="r1",
            gen_ai__response__finish_reasons=["tool_calls"],
            gen_ai__usage__input_tokens=50,
            gen_ai__usage__output_tokens=5,
            **{"gen_ai.usage.cache_read.input_tokens": 20},
            gen_ai__input__messages=messages(asked),
            gen_ai__output__messages=messages(("assistant", CALL)),
        ),
        span(
            "c",
            "execute_tool read_file",
            2,
            "a",
            **{"gen_ai.tool.name": "read_file", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": '"on"'},
        ),
        span(
            "d",
            "chat lamp-1",
            3,
            "a",
            gen_ai__request__model="lamp-1",
            gen_ai__input__messages=messages(
                asked, ("assistant", CALL), ("tool", {"type": "tool_call_response", "id": "c1"})
            ),
            gen_ai__output__messages=messages(("assistant", "It is.")),
        ),
        span("a", "invoke_agent lamp", 0, **{"gen_ai.agent.name": "lamp", "gen_ai.conversation.id": "talk-1"}),
    ]


def imported(path: Path) -> ReadBack:
    report, (found,) = bring_in(memory(), path)
    assert report.format == "otel-spans"
    return found


def test_spans_are_read_in_the_order_they_began(tmp_path: Path) -> None:
    found = imported(written(tmp_path / "spans.json", exported(*talk())))
    assert found.session.name == "otel-talk-1"
    assert found.of("turn.started")[0]["input"] == "Is it on?"
    assert [said(reply) for reply in found.replies] == ["", "It is."]
    (call,) = found.calls
    assert (call["tool"], call["effect"], call["input"], call["output"]) == ("read_file", "read", {"path": "a"}, "on")
    assert call["cost"]["duration_us"] == 1_000_000
    assert found.of("turn.ended")[0]["outcome"] == "completed"
    assert len(found.records) == 4


def test_the_session_says_that_it_is_derived(tmp_path: Path) -> None:
    labels = imported(written(tmp_path / "spans.json", exported(*talk()))).labels
    assert (labels["derived"], labels["service"], labels["agent_name"]) == ("spans", "lamps", "lamp")


def test_usage_is_that_of_the_span(tmp_path: Path) -> None:
    cost = imported(written(tmp_path / "spans.json", exported(*talk()))).replies[0]["cost"]
    assert (cost["tokens_in"], cost["tokens_out"]) == (50, 5)


def test_without_content_the_gap_is_told_and_the_calls_are_there(tmp_path: Path) -> None:
    bare = talk()
    for one in bare:
        one["attributes"] = [a for a in one["attributes"] if not a["key"].endswith((".messages", ".result"))]
    found = imported(written(tmp_path / "spans.json", exported(*bare)))
    assert len(found.of("gap.noted")) == 1
    assert (len(found.replies), len(found.calls), len(found.of("turn.started"))) == (2, 1, 1)


def test_an_error_fails_the_call_and_the_turn(tmp_path: Path) -> None:
    failed = {"code": 2, "message": "no lamp"}
    found = imported(
        written(
            tmp_path / "spans.json",
            exported(
                span("a", "invoke_agent lamp", 0, status=failed),
                span("b", "execute_tool on", 1, "a", error__type="TimeoutError", gen_ai__tool__name="on"),
            ),
        )
    )
    assert found.calls[0]["outcome"] == "timed_out"
    assert (found.of("turn.ended")[0]["outcome"], found.of("turn.ended")[0]["error"]["message"]) == (
        "failed",
        "no lamp",
    )


def test_an_agent_inside_an_agent_is_a_call_and_what_it_did_is_inside(tmp_path: Path) -> None:
    found = imported(
        written(
            tmp_path / "spans.json",
            exported(
                span("a", "invoke_agent lamp", 0),
                span("b", "invoke_agent helper", 1, "a", **{"gen_ai.agent.name": "helper"}),
                span("c", "execute_tool on", 2, "b", **{"gen_ai.tool.name": "on"}),
                span("d", "execute_tool off", 4, "a", **{"gen_ai.tool.name": "off"}),
            ),
        )
    )
    assert [(c["tool"], c.get("inside", "")) for c in found.calls] == [("on", "b"), ("agent:helper", ""), ("off", "")]


def test_one_document_a_line_is_read_as_one_file(tmp_path: Path) -> None:
    parts = [exported(one) for one in talk()]
    whole = imported(written(tmp_path / "spans.json", exported(*talk())))
    assert imported(lines(tmp_path / "spans.jsonl", parts)).kinds == whole.kinds


def test_each_trace_without_a_conversation_is_a_session_and_other_spans_are_kept(tmp_path: Path) -> None:
    other = span("z", "GET /lamps", 9) | {"attributes": [], "traceId": "u" * 32}
    one = span("a", "chat lamp-1", 0, gen_ai__request__model="lamp-1")
    report, found = bring_in(memory(), written(tmp_path / "spans.json", exported(one, other)))
    assert len(report.sessions) == 2
    assert found[1].records["z"] == other


def test_a_time_that_cannot_be_does_not_end_the_import(tmp_path: Path) -> None:
    timeless = span("b", "chat lamp-1", 1) | {"startTimeUnixNano": str((1 << 63) - 1)}
    assert imported(written(tmp_path / "spans.json", exported(timeless))).replies
