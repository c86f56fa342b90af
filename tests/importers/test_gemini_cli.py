"""Sessions of Gemini CLI, in both forms."""

import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import check_growth, prefixes, seen_once, seen_sessions
from tests.importers.samples import gemini, gemini_call, gemini_log, gemini_messages, write_lines
from tests.importers.seen import Seen
from wakelog.errors import WakelogError
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.transcript_import import import_transcript


def write_document(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document, indent=2))
    return path


def seen(tmp_path: Path, messages: list[dict[str, Any]]) -> Seen:
    return seen_once(write_document(tmp_path / "session.json", gemini() | {"messages": messages}))


def test_both_forms_of_a_session_are_seen_alike(tmp_path: Path) -> None:
    document = write_document(tmp_path / "session.json", gemini())
    log = write_lines(tmp_path / "session.jsonl", gemini_log())
    assert detect_format(document).NAME == detect_format(log).NAME == "gemini-cli"
    old, new = seen_once(document), seen_once(log)
    assert old.prompts() == ["Write a.txt"]
    assert old.said() == ["I write it.", "Done."]
    assert old.named("info") == ["Update available"]
    assert (old.cost["tokens_in"], old.cost["tokens_out"]) == (600, 38)
    assert new.comparable() == old.comparable()


def test_a_session_that_moved_to_the_new_form_is_not_imported_again(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    import_transcript(store, write_document(tmp_path / "session.json", gemini()))
    (found,) = seen_sessions(store, write_lines(tmp_path / "session.jsonl", gemini_log()))
    assert found.comparable() == seen_once(tmp_path / "session.json").comparable()


def test_a_command_that_failed_is_told_by_its_exit_code(tmp_path: Path) -> None:
    calls = seen(tmp_path, gemini_messages()).calls
    assert {id: c.outcome for id, c in calls.items()} == {"w1": "succeeded", "s1": "failed", "r1": "succeeded"}


@pytest.mark.parametrize(
    ("status", "output", "outcome"),
    [
        ("error", "File not found", "failed"),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "denied"),
        ("cancelled", "User cancelled the operation.", "cancelled"),
        ("success", "Exit Code: 1 is what the manual says", "succeeded"),
    ],
)
def test_the_outcome_of_a_call_is_as_its_status_says(tmp_path: Path, status: str, output: str, outcome: str) -> None:
    call = gemini_call("c", "run_shell_command", {"command": "x"}, output, status)
    message = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    assert seen(tmp_path, [gemini_messages()[0], message]).calls["c"].outcome == outcome


def test_edits_are_changes_of_files_whose_contents_are_followed(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    report = import_transcript(store, write_document(tmp_path / "session.json", gemini()))
    session = store.resume(report.sessions[0].name)
    changes = [e for e in session.log.entries() if e.kind == "file.changed"]
    assert Seen(session).files == [("/srv/a.txt", "created", 1, 0), ("/srv/a.txt", "modified", 1, 1)]
    assert session.log.value(changes[1], changes[1].body["after"]) == "goodbye\n"


def test_a_file_with_a_misleading_name_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    args = {"file_path": "/created.txt", "old_string": "a", "new_string": "b"}
    call = gemini_call("c", "replace", args, "Successfully modified file: /created.txt (1 replacements).")
    message = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    assert seen(tmp_path, [gemini_messages()[0], message]).files == [("/created.txt", "modified", 1, 1)]


def test_an_edit_whose_display_has_both_contents_has_both(tmp_path: Path) -> None:
    display = {"fileName": "b", "fileDiff": "", "originalContent": "a\n", "newContent": "b\nc\n"}
    args = {"file_path": "/b", "old_string": "a", "new_string": "b\nc"}
    call = gemini_call("c", "replace", args, "Successfully modified", resultDisplay=display)
    message = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    assert seen(tmp_path, [gemini_messages()[0], message]).files == [("/b", "modified", 2, 1)]


def test_a_result_that_comes_as_a_message_answers_its_call(tmp_path: Path) -> None:
    call = {"id": "c", "name": "read_file", "args": {"path": "x"}, "status": "executing"}
    answer = {"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "text"}}}
    asked = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    told = {"id": "u", "type": "user", "content": [answer]}
    for messages in ([asked, told], [told, asked]):
        found = seen(tmp_path, [gemini_messages()[0], *messages])
        assert found.calls["c"].output == "text"
        assert found.prompts() == ["Write a.txt"]


def test_a_history_that_the_program_wrote_anew_brings_only_what_is_new(tmp_path: Path) -> None:
    summary = {"id": "s", "type": "user", "content": [{"text": "<state_snapshot>all done</state_snapshot>"}]}
    again = {"$set": {"messages": [summary, *gemini_messages()[-2:]], "lastUpdated": "2026-01-05T10:01:00.000Z"}}
    found = seen_once(write_lines(tmp_path / "session.jsonl", [*gemini_log(), again]))
    assert found.named("summary") == ["<state_snapshot>all done</state_snapshot>"]
    assert found.said() == ["I write it.", "Done."]
    assert found.cost["tokens_out"] == 38


def test_a_turn_that_was_cut_off_ends_with_its_last_act_not_when_its_history_was_written_anew(tmp_path: Path) -> None:
    header, asked, *_ = gemini_log()
    again = {"$set": {"messages": [asked], "lastUpdated": "2026-01-05T12:00:00.000Z"}}
    later = {"id": "u9", "timestamp": "2026-01-05T12:00:01.000Z", "type": "user", "content": [{"text": "Go on"}]}
    with wakelog.open("memory:") as store:
        path = write_lines(tmp_path / "session.jsonl", [header, asked, again, later])
        session = store.resume(import_transcript(store, path).sessions[0].name)
        ended, _ = [entry.body for entry in session.log.entries() if entry.kind == "turn.ended"]
    assert (ended["outcome"], ended["occurred_at"]) == ("interrupted", microseconds(asked["timestamp"]))


def test_messages_that_were_taken_back_are_out_of_view(tmp_path: Path) -> None:
    def turn(n: int) -> list[dict[str, Any]]:
        return [
            {"id": f"u{n}", "type": "user", "content": f"Question {n}"},
            {"id": f"g{n}", "type": "gemini", "content": f"Answer {n}"},
        ]

    lines = [gemini_log()[0], *turn(1), *turn(2), {"$rewindTo": "u2"}, *turn(3)]
    store = wakelog.open("memory:")
    report = import_transcript(store, write_lines(tmp_path / "session.jsonl", lines))
    assert [m.text for m in store.resume(report.sessions[0].name).messages()] == [
        "Question 1",
        "Answer 1",
        "Question 3",
        "Answer 3",
    ]


def test_context_that_the_program_put_in_begins_no_turn(tmp_path: Path) -> None:
    context = {"id": "c", "type": "user", "content": "<session_context>\nToday is Monday\n</session_context>"}
    typed = {"id": "d", "type": "user", "content": [{"text": "Look at a.py\nx = 1"}], "displayContent": "Look at @a.py"}
    found = seen(tmp_path, [context, typed])
    assert found.prompts() == ["Look at @a.py"]
    assert [c[:10] for c in found.named("context")] == ["<session_c", "Look at a."]


@pytest.mark.parametrize("part", [{"type": "text"}, {"type": "text", "text": None}, {"text": 1}])
def test_a_part_without_its_text_stops_nothing(tmp_path: Path, part: dict[str, Any]) -> None:
    typed = {"id": "u", "type": "user", "content": [part, {"text": "Go"}]}
    assert "Go" in str(seen(tmp_path, [typed]).prompts())


def test_a_summary_becomes_the_title(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    report = import_transcript(store, write_lines(tmp_path / "session.jsonl", gemini_log()))
    assert store.resume(report.sessions[0].name).log.part("labels")["title"] == "Writes a file"


def test_a_log_that_grows_is_seen_as_if_it_was_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_growth(prefixes(gemini_log()), tmp_path / "session.jsonl", "gemini-cli", monkeypatch)


def test_a_document_that_is_written_anew_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def versions() -> list[bytes]:
        messages: list[dict[str, Any]] = []
        found = []
        for message in gemini_messages():
            bare = {k: v for k, v in message.items() if k not in ("toolCalls", "tokens")}
            running = [
                {k: v for k, v in c.items() if k != "result"} | {"status": "executing"}
                for c in message.get("toolCalls", ())
            ]
            for version in (bare, bare | {"toolCalls": running}, message):
                found.append(json.dumps(gemini() | {"messages": [*messages, version]}).encode())
            messages.append(message)
        return found

    check_growth(versions(), tmp_path / "session.json", "gemini-cli", monkeypatch)


def test_a_document_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(gemini())[:-20])
    with pytest.raises(WakelogError) as refused:
        import_transcript(wakelog.open("memory:"), path, format="gemini-cli")
    assert refused.value.kind == "bad-transcript"


def test_sub_agents_belong_to_their_session(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "app" / "chats"
    parent = gemini()["sessionId"]
    (chats / parent).mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/srv/app\n")
    call = gemini_call("c", "investigator", {"prompt": "Look"}, "Found it", agentId="agent-1")
    asked = {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]}
    write_lines(chats / "session-2026-01-05T10-00-11111111.jsonl", [*gemini_log()[:2], asked])
    header = gemini_log()[0] | {"sessionId": "agent-1", "kind": "subagent"}
    last = gemini_call("l", "complete_task", {"result": {"response": "Found it"}}, "Task completed.")
    ended = {"id": "h", "type": "gemini", "content": "", "toolCalls": [last]}
    write_lines(chats / parent / "agent-1.jsonl", [header, *gemini_log()[1:4], ended])
    found = [f.path for f in find_transcripts(tmp_path) if f.format == "gemini-cli"]
    assert len(found) == 2
    store = wakelog.open("memory:")
    sessions = {p.name[:5]: store.resume(import_transcript(store, p).sessions[0].name) for p in found}
    spawned = [e.body["session"] for e in sessions["sessi"].log.entries() if e.kind == "subagent.spawned"]
    assert spawned == [sessions["agent"].id]
    assert sessions["agent"].log.part("turn")["status"] == "completed"
    assert sessions["sessi"].log.part("labels")["project"] == "/srv/app"


def test_a_tool_named_like_the_last_call_of_a_sub_agent_ends_no_turn_of_a_user(tmp_path: Path) -> None:
    """A server for lists of tasks may well have a tool `complete_task`."""
    done = gemini_call("l", "complete_task", {"id": 7}, "Task 7 is completed.")
    asked = {"id": "h", "type": "gemini", "content": "", "toolCalls": [done]}
    then = {"id": "i", "type": "gemini", "content": "", "toolCalls": [gemini_call("m", "glob", {"pattern": "*"}, "a")]}
    path = write_lines(tmp_path / "session-2026-01-05T10-00-11111111.jsonl", [*gemini_log()[:2], asked, then])
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    assert {e.header.turn for e in session.log.entries() if e.kind == "action.recorded"} == {1}
