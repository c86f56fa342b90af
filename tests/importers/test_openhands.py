"""OpenHands: actions and observations, as an array or as lines, and the state that changes beside them."""

from pathlib import Path
from typing import Any

import pytest

from tests.importers.corpus import expected
from tests.importers.read_back import ReadBack, bring_in, lines, memory, said, written
from wakelog.errors import InvalidInputError


def metadata(call: str, tool: str, arguments: str, reply: str = "r1") -> dict[str, Any]:
    asked = {"id": call, "type": "function", "function": {"name": tool, "arguments": arguments}}
    response = {
        "id": reply,
        "model": "lamp-1",
        "choices": [{"finish_reason": "tool_calls", "message": {"content": "Let me see.", "tool_calls": [asked]}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "cache_creation_input_tokens": 40},
    }
    return {"function_name": tool, "tool_call_id": call, "model_response": response}


def event(id: int, source: str, **about: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": f"2025-01-20T20:29:{id:02}.000001", "source": source, "message": "", **about}


def conversation() -> list[dict[str, Any]]:
    look, edit = metadata("c1", "execute_bash", '{"command": "ls"}'), metadata("c2", "str_replace_editor", "{}", "r2")
    return [
        event(0, "environment", observation="agent_state_changed", content="", extras={"agent_state": "loading"}),
        event(1, "user", action="message", args={"content": "Build a lamp."}),
        event(2, "agent", action="run", tool_call_metadata=look, args={"command": "ls", "thought": "Let me see."}),
        event(
            3,
            "agent",
            cause=2,
            observation="run",
            tool_call_metadata=look,
            content="nothing\n",
            extras={"metadata": {"exit_code": 2}},
        ),
        event(4, "agent", action="edit", tool_call_metadata=edit, args={"path": "/w/lamp.py", "thought": ""}),
        event(
            5,
            "agent",
            cause=4,
            observation="edit",
            tool_call_metadata=edit,
            content="--- +++",
            extras={
                "path": "/w/lamp.py",
                "prev_exist": False,
                "old_content": None,
                "new_content": "on = 1\n",
                "formatted_output_and_error": "made",
            },
        ),
        event(6, "agent", action="message", args={"content": "Done.", "wait_for_response": True}),
    ]


def imported(tmp_path: Path, content: list[dict[str, Any]]) -> ReadBack:
    report, (found,) = bring_in(memory(), written(tmp_path / "lamp.json", content))
    assert report.format == "openhands"
    return found


def test_actions_and_observations_are_calls_and_their_answers(tmp_path: Path) -> None:
    found = imported(tmp_path, conversation())
    assert [(c["tool"], c["input"], c["outcome"]) for c in found.calls] == [
        ("execute_bash", {"command": "ls"}, "failed"),
        ("str_replace_editor", {}, "succeeded"),
    ]
    assert found.of("turn.started")[0]["input"] == "Build a lamp."
    assert [said(reply) for reply in found.replies] == ["Let me see.", "Let me see.", "Done."]
    assert found.of("turn.ended")[0]["outcome"] == "completed"


def test_an_answer_of_the_model_counts_once_though_each_event_repeats_it(tmp_path: Path) -> None:
    cost = imported(tmp_path, conversation()).replies[0]["cost"]
    assert (cost["tokens_in"], cost["tokens_out"]) == (100, 20)


def test_an_edit_has_the_file_before_and_after(tmp_path: Path) -> None:
    (change,) = imported(tmp_path, conversation()).of("file.changed")
    assert (change["path"], change["change"], change["after"], change["added"]) == (
        "/w/lamp.py",
        "created",
        "on = 1\n",
        1,
    )


def test_a_command_that_still_runs_timed_out_and_a_rejected_one_was_denied(tmp_path: Path) -> None:
    slow, no = metadata("c3", "execute_bash", "{}", "r3"), metadata("c4", "execute_bash", "{}", "r4")
    more = [
        event(7, "agent", action="run", tool_call_metadata=slow, args={}),
        event(
            8, "agent", observation="run", tool_call_metadata=slow, content="", extras={"metadata": {"exit_code": -1}}
        ),
        event(9, "agent", action="run", tool_call_metadata=no, args={}),
        event(10, "user", observation="user_rejected", tool_call_metadata=no, content="No!", extras={}),
    ]
    found = imported(tmp_path, [*conversation()[:2], *more])
    assert [c["outcome"] for c in found.calls] == ["timed_out", "denied"]


def test_events_without_meaning_of_their_own_are_kept_whole(tmp_path: Path) -> None:
    found = imported(tmp_path, conversation())
    assert found.records["0"] == conversation()[0]
    assert found.records["2"]["tool_call_metadata"]["model_response"]["usage"]["prompt_tokens"] == 100
    assert found.records["3"]["tool_call_metadata"]["model_response"] == "r1"
    assert found.records["5"]["content"] == "--- +++"


def v1(id: str, kind: str, source: str = "agent", **about: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2025-11-20T10:00:00.5", "source": source, "kind": kind, **about}


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def stream() -> list[dict[str, Any]]:
    call = {"id": "c1", "name": "terminal", "arguments": '{"command": "pytest"}', "origin": "completion"}
    return [
        v1("a", "SystemPromptEvent", system_prompt={"type": "text", "text": "Be brief."}),
        v1("b", "ConversationStateUpdateEvent", "environment", key="full_state", value={"execution_status": "idle"}),
        v1("c", "MessageEvent", "user", llm_message={"role": "user", "content": text("Test it.")}),
        v1("d", "ConversationStateUpdateEvent", "environment", key="execution_status", value="running"),
        v1(
            "e",
            "ActionEvent",
            thought=text("I run the tests."),
            reasoning_content="They may fail.",
            action={"command": "pytest", "kind": "TerminalAction"},
            tool_name="terminal",
            tool_call_id="c1",
            tool_call=call,
            llm_response_id="r1",
        ),
        v1(
            "f",
            "ObservationEvent",
            "environment",
            tool_name="terminal",
            tool_call_id="c1",
            action_id="e",
            observation={"content": text("1 failed"), "exit_code": 1, "kind": "TerminalObservation"},
        ),
        v1(
            "g",
            "ConversationStateUpdateEvent",
            "environment",
            key="stats",
            value={
                "usage_to_metrics": {
                    "agent": {"accumulated_cost": 0.25, "accumulated_token_usage": {"prompt_tokens": 9}}
                }
            },
        ),
        v1("h", "MessageEvent", llm_message={"role": "assistant", "content": text("One fails.")}),
        v1("i", "ConversationStateUpdateEvent", "environment", key="execution_status", value="finished"),
    ]


def test_lines_of_the_newer_version_tell_the_same_things(tmp_path: Path) -> None:
    folder = tmp_path / "talk-1"
    folder.mkdir()
    report, (found,) = bring_in(memory(), lines(folder / "events.jsonl", stream()))
    assert (report.format, report.sessions[0].name) == ("openhands", "openhands-talk-1")
    (call,) = found.calls
    assert (call["tool"], call["input"], call["output"], call["outcome"]) == (
        "terminal",
        {"command": "pytest"},
        "1 failed",
        "failed",
    )
    assert found.replies[0]["output"]["content"][:2] == [
        {"type": "thinking", "thinking": "They may fail."},
        {"type": "text", "text": "I run the tests."},
    ]
    assert found.of("turn.ended")[0]["outcome"] == "completed"


def test_changes_of_the_conversation_are_changes_of_the_state(tmp_path: Path) -> None:
    _, (found,) = bring_in(memory(), lines(tmp_path / "events.jsonl", stream()))
    deltas = [body["delta"] for body in found.of("state.patched")]
    assert deltas[0] == [{"op": "add", "path": "/data/execution_status", "value": "idle"}]
    assert found.session.log.part("data")["execution_status"] == "finished"


def test_sums_of_what_was_used_are_counted_once(tmp_path: Path) -> None:
    more = stream()
    more.insert(7, {**more[6], "id": "g2"})
    _, (found,) = bring_in(memory(), lines(tmp_path / "events.jsonl", more))
    assert found.session.log.part("budget")["spent"]["usd_micros"] == 250_000


def test_a_line_that_is_cut_off_is_kept_and_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "events.jsonl", stream())
    path.write_text(path.read_text() + '{"id": "z", "kind": "Mess')
    report, (found,) = bring_in(memory(), path)
    assert report.broken_count == 1
    assert '{"id": "z", "kind": "Mess' in found.records.values()


def test_a_document_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        bring_in(memory(), written(tmp_path / "x.json", 3), "openhands")
    assert refused.value.kind == "bad-transcript"


def test_real_conversations_have_the_counts_of_an_independent_reader() -> None:
    for path, counts in expected("openhands"):
        report, (found,) = bring_in(memory(), path)
        assert report.format == "openhands"
        assert counts == {"kind": "list", "n": len(found.records)}
        assert len(found.calls) == 4
