"""AG-UI: a stream of small events, and what they add up to."""

import json
from pathlib import Path
from typing import Any

from tests.importers.read_back import ReadBack, bring_in, lines, memory, said, written

USER = {"id": "u1", "role": "user", "content": "Is it raining?"}


def event(type: str, **about: Any) -> dict[str, Any]:
    return {"type": type, "timestamp": 1763510995123, **about}


def message(id: str, *pieces: str, role: str = "assistant", family: str = "TEXT_MESSAGE") -> list[dict[str, Any]]:
    return [
        event(f"{family}_START", messageId=id, role=role),
        *(event(f"{family}_CONTENT", messageId=id, delta=piece) for piece in pieces),
        event(f"{family}_END", messageId=id),
    ]


def call(id: str, tool: str, *pieces: str, parent: str = "") -> list[dict[str, Any]]:
    return [
        event("TOOL_CALL_START", toolCallId=id, toolCallName=tool, parentMessageId=parent),
        *(event("TOOL_CALL_ARGS", toolCallId=id, delta=piece) for piece in pieces),
        event("TOOL_CALL_END", toolCallId=id),
    ]


def started(*messages: dict[str, Any], run: str = "r1", thread: str = "t1") -> dict[str, Any]:
    return event("RUN_STARTED", threadId=thread, runId=run, input={"messages": list(messages)})


FINISHED = event("RUN_FINISHED", threadId="t1", runId="r1")


def imported(tmp_path: Path, *events: dict[str, Any]) -> ReadBack:
    report, (found,) = bring_in(memory(), lines(tmp_path / "stream.jsonl", events))
    assert report.format == "ag-ui"
    assert len(found.records) == len(events)
    return found


def test_pieces_add_up_to_messages_and_calls(tmp_path: Path) -> None:
    result = event("TOOL_CALL_RESULT", messageId="m2", toolCallId="c1", content="yes", role="tool")
    events = [*message("m1", "Let ", "me see."), *call("c1", "get_weather", '{"at":', ' "here"}', parent="m1"), result]
    found = imported(tmp_path, started(USER), *events, *message("m3", "It is."), FINISHED)
    assert found.of("turn.started")[0]["input"] == "Is it raining?"
    assert [said(reply) for reply in found.replies] == ["Let me see.", "It is."]
    (one,) = found.calls
    assert (one["tool"], one["input"], one["output"], one["group"]) == ("get_weather", {"at": "here"}, "yes", "m1")
    assert found.of("turn.ended")[0]["outcome"] == "completed"
    assert found.replies[0]["occurred_at"] == 1763510995_123000


def test_thoughts_are_told_apart_from_words(tmp_path: Path) -> None:
    thought = message("x1", "Hm", ".", family="REASONING_MESSAGE")
    found = imported(tmp_path, started(USER), *thought, *message("m1", "Yes."), FINISHED)
    assert found.replies[0]["output"]["content"] == [{"type": "thinking", "thinking": "Hm."}]


def test_chunks_end_where_something_else_begins(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        started(USER),
        event("TEXT_MESSAGE_CHUNK", messageId="m1", role="assistant", delta="It "),
        event("TEXT_MESSAGE_CHUNK", messageId="m1", delta="is."),
        event("TOOL_CALL_CHUNK", toolCallId="c1", toolCallName="note", delta='{"a"'),
        event("TOOL_CALL_CHUNK", delta=": 1}"),
        event("TOOL_CALL_RESULT", toolCallId="c1", content="ok"),
        FINISHED,
    )
    assert said(found.replies[0]) == "It is."
    assert found.calls[0]["input"] == {"a": 1}


def test_only_the_first_chunk_of_a_message_must_name_it(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        started(USER),
        event("TEXT_MESSAGE_CHUNK", messageId="m1", role="assistant", delta="It "),
        event("TEXT_MESSAGE_CHUNK", delta="is."),
        event("TOOL_CALL_CHUNK", toolCallId="c1", toolCallName="note", delta="{}"),
        event("TEXT_MESSAGE_CHUNK", delta="Noted."),
        event("TOOL_CALL_RESULT", toolCallId="c1", content="ok"),
        FINISHED,
    )
    assert [said(reply) for reply in found.replies if said(reply)] == ["It is.", "Noted."]


def test_the_state_follows_snapshots_and_patches(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        started(USER),
        event("STATE_SNAPSHOT", snapshot={"lamps": []}),
        event("STATE_DELTA", delta=[{"op": "add", "path": "/lamps/-", "value": "red"}]),
        event("STATE_DELTA", delta=[{"op": "remove", "path": "/nothing"}]),
        FINISHED,
    )
    assert found.session.log.part("data") == {"state": {"lamps": ["red"]}}
    assert len(found.of("state.patched")) == 2


def test_a_tool_of_the_interface_is_answered_by_the_next_run(tmp_path: Path) -> None:
    asked = {
        "id": "m1",
        "role": "assistant",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "confirm", "arguments": "{}"}}],
    }
    answer = {"id": "x", "role": "tool", "toolCallId": "c1", "content": "confirmed"}
    found = imported(
        tmp_path,
        started(USER),
        *call("c1", "confirm", parent="m1"),
        FINISHED,
        started(USER, asked, answer, run="r2"),
        *message("m2", "Done."),
        FINISHED,
    )
    assert [(c["output"], c["outcome"]) for c in found.calls] == [("confirmed", "succeeded")]
    assert len(found.of("turn.started")) == 1


def test_messages_that_come_again_are_not_said_twice(tmp_path: Path) -> None:
    said_before = {"id": "m1", "role": "assistant", "content": "Yes."}
    second = {"id": "u2", "role": "user", "content": "And now?"}
    found = imported(
        tmp_path,
        started(USER),
        *message("m1", "Yes."),
        event("MESSAGES_SNAPSHOT", messages=[USER, said_before]),
        FINISHED,
        started(USER, said_before, second, run="r2"),
        *message("m2", "No."),
        FINISHED,
    )
    assert [turn["input"] for turn in found.of("turn.started")] == ["Is it raining?", "And now?"]
    assert [said(reply) for reply in found.replies] == ["Yes.", "No."]


def test_an_error_ends_the_turn_and_steps_are_spans(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        event("RUN_STARTED", threadId="t1", runId="r1"),
        event("STEP_STARTED", stepName="search"),
        event("STEP_FINISHED", stepName="search"),
        event("RUN_ERROR", message="out of credit", code="402"),
    )
    assert [c["tool"] for c in found.calls] == ["step:search"]
    ended = found.of("turn.ended")[0]
    assert (ended["outcome"], ended["error"]["message"]) == ("failed", "out of credit")


def test_each_thread_is_a_session(tmp_path: Path) -> None:
    events = [started(USER), *message("m1", "Yes."), FINISHED, started(USER, thread="t2"), *message("m2", "No.")]
    report, found = bring_in(memory(), written(tmp_path / "stream.json", events))
    assert [s.name for s in report.sessions] == ["ag-ui-t1", "ag-ui-t2"]
    assert sum(len(one.records) for one in found) == len(events)


def test_the_stream_as_it_was_sent_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "stream.txt"
    sent = [started(USER), *message("m1", "Yes."), FINISHED]
    path.write_text(": hello\n\n" + "".join(f"event: message\ndata: {json.dumps(e)}\n\n" for e in sent))
    report, (found,) = bring_in(memory(), path)
    assert (report.format, report.broken_count, len(found.records)) == ("ag-ui", 0, len(sent))
    assert said(found.replies[0]) == "Yes."


def test_a_stream_that_grows_gives_only_what_is_new(tmp_path: Path) -> None:
    store = memory()
    path = tmp_path / "stream.jsonl"
    events = [started(USER), *message("m1", "It ", "is ", "is."), FINISHED]
    bring_in(store, lines(path, events[:3]))
    report, (found,) = bring_in(store, lines(path, events))
    assert report.new_records == len(events) - 3
    assert [said(reply) for reply in found.replies] == ["It is is."]
