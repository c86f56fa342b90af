"""Rollouts of Codex: items and their mirrors, context, tokens, patches, forks."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import wakelog
from tests.every import every
from tests.importers.corpus import records_of
from tests.importers.growth import check_growth, prefixes, seen_once, seen_sessions
from tests.importers.samples import (
    PATCH,
    THREAD,
    call,
    codex,
    event,
    item,
    message,
    meta,
    prompt,
    result,
    rollout,
    tokens,
    write_lines,
)
from tests.importers.seen import Seen
from wakelog.errors import InvalidInputError
from wakelog.exporters.openai_chat import openai_chat
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.source.timestamps import microseconds
from wakelog.importers.transcript_import import import_transcript

TURN = "019a0000-0001-7000-8000-000000000001"


def seen(tmp_path: Path, lines: list[dict[str, Any]]) -> Seen:
    return seen_once(write_lines(tmp_path / "rollout.jsonl", lines))


def test_a_message_that_is_there_as_item_and_as_event_is_imported_once(tmp_path: Path) -> None:
    found = seen(tmp_path, codex())
    assert found.prompts() == ["Make a.txt", "Now delete everything"]
    assert found.said() == ["I look first.", "Done."]
    assert [b["thinking"] for who, b in found.words if who == "model" and b["type"] == "thinking"] == ["**Looking**"]


def test_injected_context_begins_no_turn(tmp_path: Path) -> None:
    found = seen(tmp_path, codex())
    assert [text[:14] for text in found.named("context")] == ["<permissions i", "# AGENTS.md in", "<environment_c"]
    assert found.turns == ["completed", "interrupted"]


def test_a_context_that_nothing_tells_from_words_is_told_by_the_missing_event(tmp_path: Path) -> None:
    lines = [meta(), message("user", "some notes"), *prompt("Go", TURN), message("assistant", "Gone")]
    found = seen(tmp_path, lines)
    assert found.prompts() == ["Go"]
    assert found.named("context") == ["some notes"]


def test_without_events_the_words_tell_which_message_is_the_prompt(tmp_path: Path) -> None:
    context = message("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>")
    lines = [meta(), context, message("user", "Go"), message("assistant", "Gone"), message("user", "Again")]
    assert seen(tmp_path, lines).prompts() == ["Go"]
    lines.append(message("assistant", "Gone again"))
    assert seen(tmp_path, lines).prompts() == ["Go", "Again"]
    unknown = [rollout("session_meta", {"id": "x"}), *lines[1:5]]
    assert seen(tmp_path, unknown).prompts() == ["Go", "Again"]


def test_a_request_from_an_editor_is_told_from_what_the_editor_added(tmp_path: Path) -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n## My request for Codex:\nFix it\n"
    found = seen(tmp_path, [meta(), *prompt(text, TURN), message("assistant", "Fixed")])
    assert found.prompts() == ["Fix it"]
    assert found.named("context") == ["# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py"]


def test_what_an_editor_added_does_not_hide_the_request(tmp_path: Path) -> None:
    text = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n## My request for Codex:\nFix it\n"
    path = write_lines(tmp_path / "rollout.jsonl", [meta(), *prompt(text, TURN), message("assistant", "Fixed")])
    with wakelog.open("memory:") as store:
        import_transcript(store, path)
        session = store.resume(next(iter(store.sessions())).session)
        assert [m["content"] for m in openai_chat(session)][::2] == ["Fix it", "Fixed"]
        assert "asked: Fix it" in str(session.brief())
        assert "Open tabs" not in str(session.brief())


def test_words_that_come_while_a_turn_runs_belong_to_it(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), message("assistant", "Going"), *prompt("Faster", TURN)[1:3]]
    found = seen(tmp_path, [*lines, message("assistant", "Gone")])
    assert found.prompts() == ["Go"]
    assert found.named("queued") == ["Faster"]


def test_tokens_are_counted_once_for_each_answer(tmp_path: Path) -> None:
    found = seen(tmp_path, codex())
    assert found.cost["tokens_in"] == 10_000
    assert found.cost["tokens_out"] == 1000


def test_a_sum_that_begins_anew_goes_on_from_there(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), tokens(1000, 1000), message("assistant", "a"), tokens(400, 400)]
    assert seen(tmp_path, lines).cost["tokens_in"] == 1400


def test_usage_that_is_told_twice_in_two_ways_counts_once(tmp_path: Path) -> None:
    told = {"response_id": "r", "usage": {"input_tokens": 1000, "output_tokens": 100}}
    lines = [meta(), *prompt("Go", TURN), message("assistant", "a"), rollout("token_usage_record", told)]
    assert seen(tmp_path, lines).cost["tokens_in"] == 1000
    assert seen(tmp_path, [*lines, tokens(1000, 1000)]).cost["tokens_in"] == 1000


def test_usage_stands_at_the_answer_that_it_belongs_to_whether_told_before_or_after(tmp_path: Path) -> None:
    for lines in ([tokens(500, 500), message("assistant", "a")], [message("assistant", "a"), tokens(500, 500)]):
        path = write_lines(tmp_path / "rollout.jsonl", [meta(), *prompt("Go", TURN), *lines])
        store = wakelog.open("memory:")
        session = store.resume(import_transcript(store, path).sessions[0].name)
        (answer,) = [e for e in session.log.entries() if e.kind == "action.recorded"]
        assert answer.body["cost"]["tokens_in"] == 500


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ('{"output":"no\\n","metadata":{"exit_code":1,"duration_seconds":0.2}}', "failed"),
        ('{"output":"yes\\n","metadata":{"exit_code":0,"duration_seconds":0.2}}', "succeeded"),
        ("Exit code: 3\nWall time: 0 seconds\nOutput:\nno", "failed"),
        ("Chunk ID: a\nProcess exited with code 0\nOutput:\nExit code: 3", "succeeded"),
        ("the log says: Process exited with code 3", "succeeded"),
        ("exec command rejected by user", "denied"),
        ("aborted by user after 3.2s", "interrupted"),
        ("Wall time: 0.6 seconds\naborted by user", "interrupted"),
        ("Wall time: 0.6 seconds\nOutput:\naborted by user", "succeeded"),
        ("command timed out after 1000 milliseconds", "timed_out"),
        ("failed to parse function arguments: EOF", "failed"),
        ([{"type": "input_text", "text": "fine"}], "succeeded"),
        ({"content": "no", "success": False}, "failed"),
    ],
)
def test_the_outcome_of_a_command_is_found_in_every_way_it_is_told(tmp_path: Path, output: Any, outcome: str) -> None:
    lines = [meta(), *prompt("Go", TURN), call("c", "shell", {"command": ["bash", "-lc", "x"]}), result("c", output)]
    assert seen(tmp_path, lines).calls["c"].outcome == outcome


def test_what_a_command_printed_is_told_from_what_is_said_about_it(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rollout.jsonl", codex())
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    assert Seen(session).calls["c1"].output == "ls: no such file"
    (told,) = [r for _, _, r in records_of(session) if "Chunk ID: 1" in str(r)]
    assert told["payload"]["metadata"]["about"].endswith("Process exited with code 2\nOutput:\n")


def test_a_command_that_still_runs_says_in_its_output_where_the_rest_comes_from(tmp_path: Path) -> None:
    text = "Wall time: 1.0 seconds\nProcess running with session ID 4711\nOutput:\nbuilding\n"
    lines = [meta(), *prompt("Go", TURN), call("c", "exec_command", {"cmd": "make"}), result("c", text)]
    assert seen(tmp_path, lines).calls["c"].output == text


def test_an_event_at_the_end_of_a_call_tells_how_it_ended(tmp_path: Path) -> None:
    end = event("mcp_tool_call_end", call_id="c", result={"Ok": {"content": [], "isError": True}})
    lines = [meta(), *prompt("Go", TURN), call("c", "docs__search", {"q": 1}), end, result("c", "nothing found")]
    assert seen(tmp_path, lines).calls["c"].outcome == "failed"


def test_patches_are_changes_of_files_whose_contents_are_followed(tmp_path: Path) -> None:
    update = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+three\n+four\n*** End Patch"
    shell = {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{update}\nEOF"]}
    gone = (
        "*** Begin Patch\n*** Delete File: a.txt\n*** Update File: b.txt\n*** Move to: c.txt\n@@\n-x\n+y\n*** End Patch"
    )
    path = write_lines(
        tmp_path / "rollout.jsonl",
        [
            meta(),
            *prompt("Go", TURN),
            item("custom_tool_call", call_id="p1", name="apply_patch", input=PATCH),
            item("custom_tool_call_output", call_id="p1", output="Success. Updated the following files:\nA a.txt"),
            call("p2", "shell", shell),
            result("p2", '{"output":"Success.","metadata":{"exit_code":0,"duration_seconds":0}}'),
            call("p3", "apply_patch", {"input": gone}),
            result("p3", "Success. Updated the following files:"),
            call("p4", "apply_patch", {"input": PATCH}),
            result("p4", "patch rejected by user"),
        ],
    )
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    changes = [e for e in session.log.entries() if e.kind == "file.changed"]
    assert Seen(session).files == [
        ("a.txt", "created", 2, 0),
        ("a.txt", "modified", 2, 1),
        ("a.txt", "deleted", 0, 3),
        ("b.txt", "deleted", 0, 1),
        ("c.txt", "created", 1, 0),
    ]
    assert session.log.value(changes[1], changes[1].body["after"]) == "one\nthree\nfour\n"
    assert session.log.value(changes[2], changes[2].body["before"]) == "one\nthree\nfour\n"
    assert changes[0].body["folder"] == "/srv/app"
    assert [c.body["action"] for c in changes] == ["p1", "p2", "p3", "p3", "p3"]


def test_a_summary_stands_for_what_was_said_before(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), message("assistant", "Gone")]
    told = rollout("compacted", {"message": "They went."})
    assert seen(tmp_path, [*lines, told]).named("summary") == ["They went."]
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Summary: gone."}]}]
    hidden = rollout("compacted", {"message": "", "replacement_history": history})
    assert seen(tmp_path, [*lines, hidden]).named("summary") == ["Summary: gone."]


def fork(parent: str = THREAD, **more: Any) -> list[dict[str, Any]]:
    """A fork made a day after its parent, with the parent's records copied at its start."""
    id = "019a0500-0000-7000-8000-00000000bbbb"
    turn = "019a0500-1000-7000-8000-000000000009"
    made = {"timestamp": "2026-01-06T10:00:00.000Z"}
    own = [*prompt("Another way", turn), message("assistant", "Yes"), tokens(10_500, 500)]
    return [meta(id, forked_from_id=parent, **more) | made, *(line | made for line in codex()), *own]


def test_a_fork_has_its_own_turns_and_costs_only(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    write_lines(tmp_path / "parent.jsonl", codex())
    import_transcript(store, tmp_path / "parent.jsonl")
    (found,) = seen_sessions(store, write_lines(tmp_path / "fork.jsonl", fork()))
    assert found.prompts() == ["Another way"]
    assert found.cost["tokens_in"] == 500
    assert not found.calls
    assert found.named("fork") == [f"This session goes on from {THREAD}: 34 records of that one's history come first."]


def test_a_copied_history_is_kept_as_records(tmp_path: Path) -> None:
    report = import_transcript(wakelog.open("memory:"), write_lines(tmp_path / "fork.jsonl", fork()))
    assert report.new_records == len(fork())


def test_a_fork_without_ids_that_tell_the_time_begins_when_time_passes(tmp_path: Path) -> None:
    copied = [message("user", "Old"), event("user_message", message="Old"), message("assistant", "Old answer")]
    own = [message("user", "New", 30), event("user_message", 30, message="New"), message("assistant", "Yes", 31)]
    found = seen(tmp_path, [meta("f", forked_from_id="p"), *copied, *own])
    assert (found.prompts(), found.said()) == (["New"], ["Yes"])


def test_a_sub_agent_is_a_session_that_its_parent_spawned(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    child = "019a0000-0003-7000-8000-00000000cccc"
    spawn = [call("c", "spawn_agent", {"prompt": "Look"}), result("c", json.dumps({"agent_id": child}))]
    parent = write_lines(tmp_path / "parent.jsonl", [meta(), *prompt("Go", TURN), *spawn])
    source = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    agent = write_lines(tmp_path / "agent.jsonl", [meta(child, source=source), *prompt("Look", TURN)])
    spawned = store.resume(import_transcript(store, parent).sessions[0].name)
    session = store.resume(import_transcript(store, agent).sessions[0].name)
    assert [e.body["session"] for e in spawned.log.entries() if e.kind == "subagent.spawned"] == [session.id]
    opened = next(iter(session.log.entries()))
    assert opened.body["spawner"].startswith(spawned.id)


@pytest.mark.parametrize(
    ("status", "outcome", "output"),
    [
        ({"completed": "42"}, "succeeded", "42"),
        ({"errored": "no model"}, "failed", "no model"),
        ("shutdown", "cancelled", None),
        ("running", "", None),
    ],
)
def test_a_sub_agent_runs_until_a_notice_says_that_it_stopped(
    tmp_path: Path, status: Any, outcome: str, output: str | None
) -> None:
    store = wakelog.open("memory:", clock=lambda: microseconds(meta()["timestamp"]))
    child = "019a0000-0003-7000-8000-00000000cccc"
    asked = call("c", "spawn_agent", {"message": "Look"})
    asked["payload"]["namespace"] = "multi_agent_v1"
    lines = [meta(), *prompt("Go", TURN), asked, result("c", json.dumps({"agent_id": child}))]
    path = write_lines(tmp_path / "parent.jsonl", lines)
    session = store.resume(import_transcript(store, path).sessions[0].name)
    assert [(e["status"], e["task"]) for e in session.log.part("subagents").values()] == [("running", "Look")]
    about = json.dumps({"agent_path": child, "status": status})
    notice = f"<subagent_notification>\n{about}\n</subagent_notification>"
    import_transcript(store, write_lines(path, [*lines, message("user", notice), message("user", notice)]))
    assert [e["status"] for e in session.log.part("subagents").values()] == [outcome or "running"]
    found = [e.body for e in session.log.entries() if e.kind == "subagent.returned"]
    assert [(e["outcome"], e.get("output")) for e in found] == ([(outcome, output)] if outcome else [])


def test_a_task_that_another_agent_gave_begins_a_turn(tmp_path: Path) -> None:
    content = [{"type": "input_text", "text": "Look"}]
    task = item("agent_message", author="/root", recipient="/root/look", content=content)
    lines = [meta(), event("task_started", turn_id=TURN), task, message("assistant", "I looked")]
    lines += [task, event("task_complete", turn_id=TURN)]
    found = seen(tmp_path, lines)
    assert (found.turns, found.said()) == (["completed"], ["I looked"])
    assert found.named("agent") == ["Look", "Look"]


def test_a_compressed_rollout_is_the_same_session(tmp_path: Path) -> None:
    store = wakelog.open("memory:")
    plain = write_lines(tmp_path / "rollout.jsonl", codex())
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    assert detect_format(packed).NAME == "codex-rollout"
    first = import_transcript(store, packed)
    assert first.new_records == len(codex())
    assert import_transcript(store, plain).new_records == 0


@pytest.mark.parametrize("pack", [zstandard.ZstdCompressor().compress, gzip.compress])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(pack(prefixes(codex())[-1])[:-10])
    with pytest.raises(InvalidInputError) as refused:
        import_transcript(wakelog.open("memory:"), packed, format="codex-rollout")
    assert refused.value.kind == "bad-transcript"


def test_the_oldest_rollouts_have_items_without_wrappers(tmp_path: Path) -> None:
    head: dict[str, Any] = {"id": "old-1", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None, "git": {}}
    items = [
        message("user", "Go"),
        call("c", "shell", {"command": ["ls"]}),
        result("c", "a"),
        message("assistant", "Ok"),
    ]
    lines = [head, {"record_type": "state"}, *(line["payload"] for line in items)]
    path = write_lines(tmp_path / "rollout.jsonl", lines)
    assert detect_format(path).NAME == "codex-rollout"
    found = seen_once(path)
    assert (found.prompts(), found.said(), list(found.calls)) == (["Go"], ["Ok"], ["c"])


def test_prompts_that_come_as_completed_items_begin_turns(tmp_path: Path) -> None:
    told = {"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": "Go"}]}
    both = [event("item_completed", item=told), event("user_message", message="Go")]
    lines = [meta(), message("user", "Go"), *both, message("assistant", "Gone")]
    assert seen(tmp_path, lines).prompts() == ["Go"]


def test_a_prompt_that_is_only_an_event_is_not_mixed_up_with_context(tmp_path: Path) -> None:
    told = {"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": "Go"}]}
    lines = [meta(), message("user", "# AGENTS.md\nBe brief."), event("item_completed", item=told)]
    found = seen(tmp_path, [*lines, message("assistant", "Gone")])
    assert found.prompts() == ["Go"]
    assert found.named("context") == ["# AGENTS.md\nBe brief."]


def test_commands_that_a_program_of_the_model_ran_are_calls_inside_it(tmp_path: Path) -> None:
    ran = {"type": "CommandExecution", "id": "x", "command": "false", "exit_code": 1, "aggregated_output": ""}
    lines = [
        meta(),
        *prompt("Go", TURN),
        item("custom_tool_call", call_id="c", name="exec", input="run()"),
        event("item_completed", item=ran),
        item("custom_tool_call_output", call_id="c", output="ok"),
    ]
    path = write_lines(tmp_path / "rollout.jsonl", lines)
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    inside = {e.body["action"]: e.body.get("inside", "") for e in session.log.entries() if e.kind == "action.recorded"}
    assert inside["x"] == "c"
    assert Seen(session).calls["x"].outcome == "failed"


@every("is_late", (False, True))
def test_files_that_a_program_of_the_model_patched_are_changes_inside_it(is_late: bool, tmp_path: Path) -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
    patched = {
        "/srv/app/new.py": {"type": "add", "content": "one\ntwo\n"},
        "/srv/app/gone.py": {"type": "delete", "content": "x\n"},
        "/srv/app/old.py": {"type": "update", "unified_diff": diff, "move_path": "/srv/app/moved.py"},
    }
    again = {"/srv/app/new.py": {"type": "update", "unified_diff": diff, "move_path": None}}
    ends = [
        event("patch_apply_end", call_id="exec-1", success=True, stdout="Success.", changes=patched),
        event("item_completed", item={"type": "FileChange", "id": "exec-1", "changes": patched, "status": "completed"}),
        event("item_completed", item={"type": "FileChange", "id": "exec-2", "changes": again, "status": "completed"}),
        event("patch_apply_end", call_id="exec-3", success=False, stderr="no such file", changes=again),
    ]
    answer = item("custom_tool_call_output", call_id="c", output="ok")
    lines = [
        meta(),
        *prompt("Go", TURN),
        item("custom_tool_call", call_id="c", name="exec", input="patch()"),
        *([answer, *ends] if is_late else [*ends, answer]),
    ]
    path = write_lines(tmp_path / f"rollout-{is_late}.jsonl", lines)
    store = wakelog.open("memory:")
    session = store.resume(import_transcript(store, path).sessions[0].name)
    bodies = [e.body for e in session.log.entries() if e.kind == "action.recorded" and e.body["tool"] == "apply_patch"]
    assert [(b["action"], b["inside"], b.get("outcome", "succeeded")) for b in bodies] == [
        ("exec-1", "c", "succeeded"),
        ("exec-2", "c", "succeeded"),
        ("exec-3", "c", "failed"),
    ]
    assert Seen(session).files == [
        ("new.py", "created", 2, 0),
        ("gone.py", "deleted", 0, 1),
        ("old.py", "deleted", 0, 1),
        ("moved.py", "created", 1, 0),
        ("new.py", "modified", 1, 1),
    ]
    last = [e for e in session.log.entries() if e.kind == "file.changed"][-1]
    assert session.log.value(last, last.body["after"]) == "1\ntwo\n"


def test_context_in_the_same_message_as_the_prompt_is_not_part_of_it(tmp_path: Path) -> None:
    context = "<environment_context>\n  <cwd>/demo</cwd>\n</environment_context>"
    both = [{"type": "input_text", "text": "Make it"}, {"type": "input_text", "text": context}]
    lines = [meta(), item("message", role="user", content=both), event("user_message", message="Make it")]
    found = seen(tmp_path, [*lines, message("assistant", "Made")])
    assert (found.prompts(), found.named("context")) == (["Make it"], [context])


def test_turns_that_were_taken_back_are_out_of_view(tmp_path: Path) -> None:
    second = "019a0000-0002-7000-8000-000000000002"
    lines = [meta()]
    for text, turn in (("One", TURN), ("Two", second)):
        lines += [*prompt(text, turn), message("assistant", f"{text}!"), event("task_complete", turn_id=turn)]
    lines += [event("thread_rolled_back", num_turns=1), *prompt("Three", "019a0000-0003-7000-8000-000000000003")]
    lines.append(message("assistant", "Three!"))
    store = wakelog.open("memory:")
    report = import_transcript(store, write_lines(tmp_path / "rollout.jsonl", lines))
    assert [m.text for m in store.resume(report.sessions[0].name).messages()] == ["One", "One!", "Three", "Three!"]


def test_words_that_were_shown_and_never_came_as_an_item_are_kept(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), event("agent_message", message="Gone"), event("task_complete", turn_id=TURN)]
    assert seen(tmp_path, lines).said() == ["Gone"]


def test_a_call_whose_id_comes_again_is_another_call(tmp_path: Path) -> None:
    lines = [meta(), *prompt("Go", TURN), call("c", "shell", {"command": "a"}), call("c", "shell", {"command": "b"})]
    assert len(seen(tmp_path, lines).calls) == 2


def test_a_rollout_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_growth(prefixes(codex()), tmp_path / "rollout.jsonl", "codex-rollout", monkeypatch)
    check_growth(prefixes(fork()), tmp_path / "fork.jsonl", "codex-rollout", monkeypatch)


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    whole = prefixes(codex())[-1]
    store = wakelog.open("memory:")
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(whole[:-30])
    half = import_transcript(store, path)
    assert half.broken_count == 1
    path.write_bytes(whole)
    report = import_transcript(store, path)
    assert (report.new_records, report.broken_count) == (1, 0)


def test_a_half_written_last_line_is_left_while_codex_is_at_work(tmp_path: Path) -> None:
    lines = codex()
    whole = prefixes(lines)[-1]
    store = wakelog.open("memory:", clock=lambda: microseconds(lines[-1]["timestamp"]))
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(whole[:-30])
    half = import_transcript(store, path)
    assert half.broken_count == 0
    path.write_bytes(whole)
    report = import_transcript(store, path)
    assert (report.new_records, report.broken_count) == (1, 0)
    assert half.new_records + 1 == len(lines)


def test_rollouts_are_found_where_codex_keeps_them(tmp_path: Path) -> None:
    folder = tmp_path / ".codex" / "sessions" / "2026" / "01" / "05"
    folder.mkdir(parents=True)
    write_lines(folder / "rollout-2026-01-05T10-00-00-a.jsonl", codex())
    (folder / "rollout-2026-01-05T10-00-00-a.jsonl.zst").write_bytes(b"packed")
    (folder / "rollout-2026-01-04T10-00-00-b.jsonl.zst").write_bytes(b"packed")
    (folder / "notes.jsonl").write_text("{}\n")
    found = [f.path.name for f in find_transcripts(tmp_path) if f.format == "codex-rollout"]
    assert sorted(found) == ["rollout-2026-01-04T10-00-00-b.jsonl.zst", "rollout-2026-01-05T10-00-00-a.jsonl"]
