"""What a transcript of Claude Code becomes: turns, answers, calls, files, sub-agents."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.importers.claude import (
    FOLDER,
    MODEL,
    NAME,
    SESSION,
    Lines,
    bring_in,
    call,
    calls,
    events,
    imported,
    live_store,
    said,
    seen,
    text,
    thinking,
)
from tests.importers.corpus import records_of
from wakelog.importers.transcript_import import import_transcript


def models(session: Any) -> list[dict[str, Any]]:
    return [body for body in events(session, "action.recorded") if body.get("effect") == "model"]


def test_an_answer_that_is_split_over_lines_is_one_and_is_paid_once(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Look around.")
    lines.reply("m1", thinking("Where to begin?"), text("I'll look."), call("t1", "Read", file_path="a"), tokens=70)
    lines.result("t1", "     1→hello")
    lines.reply("m2", text("Done."), tokens=5)
    session = bring_in(lines, tmp_path)
    first, second = models(session)
    assert [b["type"] for b in first["output"]["content"]] == ["thinking", "text", "tool_use"]
    assert first["output"]["content"][0] == thinking("Where to begin?")
    assert [m["cost"]["tokens_out"] for m in (first, second)] == [70, 5]
    assert first["cost"]["usd_micros"] > 0
    assert first["params"] == {"model": MODEL}


def test_parallel_calls_share_a_group_also_when_their_answers_stand_between_the_lines(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Read both.")
    lines.reply("m1", call("t1", "Read", file_path="a"), tokens=30)
    lines.result("t1", "one")
    lines.reply("m1", call("t2", "Read", file_path="b"), tokens=30)
    lines.result("t2", "two")
    session = bring_in(lines, tmp_path)
    assert [(c["group"], c["output"], c["outcome"]) for c in calls(session)] == [
        ("m1", "one", "succeeded"),
        ("m1", "two", "succeeded"),
    ]
    assert sum(m["cost"].get("tokens_out", 0) for m in models(session)) == 30


@pytest.mark.parametrize(
    ("answer", "structured", "outcome"),
    [
        ("The user doesn't want to proceed with this tool use.", None, "denied"),
        ("This command requires approval", None, "denied"),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", None, "cancelled"),
        ("[Request interrupted by user for tool use]", None, "interrupted"),
        ("Exit code 1\nno such file", None, "error"),
        ("half of it", {"stdout": "half of it", "stderr": "", "interrupted": True}, "interrupted"),
    ],
)
def test_a_call_that_did_not_work_says_how(answer: str, structured: Any, outcome: str, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Try.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    lines.result("t1", answer, structured, is_error=structured is None)
    (found,) = calls(bring_in(lines, tmp_path))
    assert (found["outcome"], found["output"]) == (outcome, answer)


def test_a_picture_is_kept_once_and_mentioned_where_it_stood(tmp_path: Path) -> None:
    data = base64.b64encode(b"\x89PNG picture" * 50).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    lines = Lines()
    lines.prompt([text("What is this?"), image])
    lines.reply("m1", call("t1", "Read", file_path="a.png"))
    lines.result("t1", [image], {"type": "image", "file": {"base64": data, "type": "image/png"}})
    session = bring_in(lines, tmp_path)
    (artefact,) = events(session, "artefact.recorded")
    assert artefact["media"] == "image/png"
    assert data[:40] not in str([e.body for e in session.log.entries()])
    assert calls(session)[0]["output"][0]["source"]["type"] == "sha256"


def edit(path: str, before: str | None, old: str, new: str) -> dict[str, Any]:
    lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
    patch = [{"oldStart": 1, "newStart": 1, "lines": lines}]
    return {"filePath": path, "oldString": old, "newString": new, "originalFile": before, "structuredPatch": patch}


@pytest.mark.parametrize(
    ("tool", "structured", "expected"),
    [
        ("Edit", edit(f"{FOLDER}/a.py", "x = 1\ny = 2\n", "x = 1", "x = 3"), ("modified", "x = 3\ny = 2\n", 1, 1)),
        (
            "MultiEdit",
            {
                "filePath": f"{FOLDER}/a.py",
                "originalFileContents": "x = 1\ny = 2\n",
                "edits": [{"old_string": "1", "new_string": "5"}, {"old_string": "y", "new_string": "z"}],
            },
            ("modified", "x = 5\nz = 2\n", 2, 2),
        ),
        (
            "Write",
            {"type": "create", "filePath": f"{FOLDER}/a.py", "content": "one\ntwo\n", "structuredPatch": []},
            ("created", "one\ntwo\n", 2, 0),
        ),
    ],
)
def test_an_edit_is_a_change_of_a_file_with_its_content(
    tool: str, structured: Any, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    lines = Lines()
    lines.prompt("Edit it.")
    lines.reply("m1", call("t1", tool, file_path=f"{FOLDER}/a.py"))
    lines.result("t1", "The file was updated.", structured)
    (change,) = events(bring_in(lines, tmp_path), "file.changed")
    assert (change["path"], change["action"]) == ("a.py", "t1")
    assert (change.get("change", "modified"), change["after"], change["added"], change.get("removed", 0)) == expected


def test_an_edit_that_failed_changed_nothing_and_its_details_are_kept(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Edit it.")
    lines.reply("m1", call("t1", "Edit", file_path="a.py"))
    lines.result("t1", "String not found", edit(f"{FOLDER}/a.py", "whole", "old", "new"), is_error=True)
    session = bring_in(lines, tmp_path)
    assert events(session, "file.changed") == []
    (*_, (_, _, rest)) = records_of(session)
    assert isinstance(rest, dict)
    assert rest["toolUseResult"]["originalFile"] == "whole"


def sub_agent() -> tuple[Lines, Lines]:
    parent, child = Lines(), Lines(prefix="a", isSidechain=True, agentId="a1b2")
    parent.prompt("Have it looked into.")
    parent.reply("m1", call("t1", "Task", description="look", prompt="Look into it."))
    parent.result("t1", "It is fine.", {"agentId": "a1b2", "status": "completed", "totalDurationMs": 1500})
    child.prompt("Look into it.")
    child.reply("c1", text("It is fine."))
    return parent, child


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_sub_agents_file_and_its_parents_know_each_other_in_any_order(order: tuple[int, int], tmp_path: Path) -> None:
    parent, child = sub_agent()
    paths = [tmp_path / f"{SESSION}.jsonl", tmp_path / SESSION / "subagents" / "agent-a1b2.jsonl"]
    files = [parent.write(paths[0]), child.write(paths[1])]
    store = live_store()
    for place in order:
        import_transcript(store, files[place])
    above = store.resume(NAME)
    below = store.resume(f"{NAME}-agent-a1b2")
    assert [e["session"] for e in events(above, "subagent.spawned", "subagent.returned")] == [below.id] * 2
    (opened,) = events(below, "session.opened")
    assert opened["spawner"].partition("@")[0] == above.id
    assert seen(below)[-1] == "It is fine."


def test_a_side_chain_in_the_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Have it looked into.")
    asked = lines.reply("m1", call("t1", "Task", description="look", prompt="Look into it."))
    lines.prompt("Look into it.", parent=None, isSidechain=True)
    lines.reply("c1", text("It is fine."), isSidechain=True)
    lines.result("t1", "It is fine.", {"status": "completed"}, parent=asked)
    lines.reply("m2", text("All is well."))
    store, report = imported(lines.write(tmp_path / f"{SESSION}.jsonl"))
    above, below = (store.resume(s.name) for s in report.sessions)
    assert [e["session"] for e in events(above, "subagent.spawned")] == [below.id]
    assert seen(above)[-1] == "All is well."
    assert seen(below) == ["Look into it.", "It is fine."]


def test_going_back_shows_the_new_branch_and_keeps_the_old(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    fork = lines.reply("m1", text("Begun."))
    lines.prompt("Go left.")
    lines.reply("m2", text("Left."))
    lines.prompt("Go right.", parent=fork)
    lines.reply("m3", text("Right."))
    session = bring_in(lines, tmp_path)
    assert seen(session) == ["Begin.", "Begun.", "Go right.", "Right."]
    assert "Left." in str(said(session))


def test_going_back_to_the_beginning_leaves_nothing_in_view(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Wrong.")
    lines.reply("m1", text("As you say."))
    lines.prompt("Right.", parent=None)
    lines.reply("m2", text("Yes."))
    assert seen(bring_in(lines, tmp_path)) == ["Right.", "Yes."]


def test_going_back_into_a_branch_that_was_left_shows_that_branch(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    fork = lines.reply("m1", text("Begun."))
    lines.prompt("Go left.")
    left = lines.reply("m2", text("Left."))
    lines.prompt("Go right.", parent=fork)
    lines.reply("m3", text("Right."))
    lines.prompt("On with left.", parent=left)
    lines.reply("m4", text("Further left."))
    assert seen(bring_in(lines, tmp_path)) == [
        "Begin.",
        "Begun.",
        "Go left.",
        "Left.",
        "On with left.",
        "Further left.",
    ]


def test_going_back_into_the_middle_of_a_turn_hides_the_rest_of_it(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("First."), call("t1", "Bash", command="make"))
    middle = lines.result("t1", "made")
    lines.reply("m2", text("Second."))
    lines.prompt("Otherwise, please.", parent=middle)
    shown = seen(bring_in(lines, tmp_path))
    assert "Second." not in shown
    assert shown[-1] == "Otherwise, please."


def test_files_that_all_begin_anew_are_not_taken_for_going_back(tmp_path: Path) -> None:
    lines = Lines()
    for number in range(3):
        lines.prompt(f"Question {number}", parent=None)
        lines.reply(f"m{number}", text(f"Answer {number}"), parent=None)
    assert len(seen(bring_in(lines, tmp_path))) == 6


def test_a_summary_stands_for_what_was_said_before(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("A long story.")
    last = lines.reply("m1", text("Indeed."))
    lines.add("system", parent=None, subtype="compact_boundary", logicalParentUuid=last, content="Compacted")
    lines.prompt("They talked.", isCompactSummary=True)
    lines.prompt("Go on.")
    lines.reply("m2", text("I go on."))
    session = bring_in(lines, tmp_path)
    assert [m.text for m in session.messages()] == ["They talked.", "Go on.", "I go on."]
    assert [m.text for m in session.messages(compacted=False)] == ["A long story.", "Indeed.", "Go on.", "I go on."]
    assert seen(session)[-2:] == ["Go on.", "I go on."]


def test_what_was_typed_meanwhile_commands_and_hints_begin_no_turn(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.add("queue-operation", operation="enqueue", content="And then the tests.")
    lines.prompt("<local-command-stdout>ok</local-command-stdout>")
    lines.prompt("<command-name>/model</command-name><command-args></command-args>")
    lines.prompt("Caveat: …", isMeta=True)
    lines.prompt(
        "<command-message>review</command-message><command-name>/review</command-name>"
        "<command-args>the parser</command-args>"
    )
    lines.reply("m1", text("Reviewed."))
    session = bring_in(lines, tmp_path)
    assert [e["input"] for e in events(session, "turn.started")] == ["Begin.", "/review the parser"]
    assert [e["name"] for e in events(session, "message.added")] == ["queued", "command", "command", "meta"]


def test_a_prompt_that_only_passes_the_queue_is_said_once(tmp_path: Path) -> None:
    lines = Lines()
    for number, words in enumerate(("Begin.", "Go on.")):
        lines.add("queue-operation", operation="enqueue", content=words)
        lines.add("queue-operation", operation="dequeue")
        lines.prompt(words)
        lines.reply(f"m{number}", text("Done."), stop="end_turn")
    session = bring_in(lines, tmp_path)
    assert [m.text for m in session.messages()] == ["Begin.", "Done.", "Go on.", "Done."]
    assert events(session, "message.added") == []


def test_a_command_of_the_program_begins_no_turn_whatever_is_given_to_it(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("Yes."))
    lines.prompt("<command-name>/compact</command-name>\n<command-args>keep the plan</command-args>")
    session = bring_in(lines, tmp_path)
    assert [e["input"] for e in events(session, "turn.started")] == ["Begin."]


def test_an_interrupted_turn_ends_so_with_its_open_calls(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", call("t1", "Bash", command="sleep 100"))
    lines.prompt([text("[Request interrupted by user for tool use]")])
    session = bring_in(lines, tmp_path)
    assert [e["outcome"] for e in events(session, "turn.ended")] == ["interrupted"]
    assert [c["outcome"] for c in calls(session)] == ["interrupted"]


def test_a_change_of_folder_branch_or_version_is_a_label(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("Yes."), gitBranch="topic", version="2.2.0")
    labels = bring_in(lines, tmp_path).log.part("labels")
    assert (labels["branch"], labels["agent_version"], labels["project"]) == ("topic", "2.2.0", FOLDER)


def test_a_folder_of_the_project_is_the_same_project(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", call("t1", "Write"), cwd=f"{FOLDER}/web")
    written = {"type": "create", "filePath": f"{FOLDER}/web/a.js", "content": "1\n", "structuredPatch": []}
    lines.result("t1", "ok", structured=written, cwd=f"{FOLDER}/web")
    lines.reply("m2", text("Done."), cwd="/home/ada/other")
    session = bring_in(lines, tmp_path)
    assert [e["path"] for e in events(session, "file.changed")] == ["web/a.js"]
    assert [e["labels"] for e in events(session, "labels.set") if "project" in e["labels"]] == [
        {"project": "/home/ada/other"}
    ]


def test_lines_of_other_types_are_kept_as_they_are(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.add("progress", data={"type": "hook_progress", "odd": [1, None]})
    lines.add("from-the-future", anything={"at": "all"})
    session = bring_in(lines, tmp_path)
    assert [rest for _, _, rest in records_of(session)][1:] == lines.lines[1:]


def test_everything_of_a_line_that_says_something_is_in_its_events_or_kept(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.", permissionMode="default", thinkingMetadata={"level": "high"})
    lines.reply("m1", text("Yes."), odd={"field": 1})
    rests = [rest for _, _, rest in records_of(bring_in(lines, tmp_path))]
    for rest, line in zip(rests, lines.lines, strict=True):
        assert isinstance(rest, dict)
        known = {**rest, **rest["common"]}
        assert {k for k in line if k not in ("uuid", "message")} <= known.keys()
        assert all(known[k] == v for k, v in line.items() if k not in ("uuid", "message"))
    assert rests[1]["message"]["usage"]["output_tokens"] == 100


def test_parents_in_a_circle_end_no_import(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Look around.")
    lines.reply("m1", text("Done."))
    first = lines.add("system", subtype="info", parent="")
    second = lines.add("system", subtype="info")
    lines.lines[-2]["parentUuid"] = second
    lines.prompt("And again.", parent=first)
    itself = lines.add("system", subtype="info")
    lines.lines[-1]["parentUuid"] = itself
    lines.prompt("Once more.", parent=itself)
    assert [t["input"] for t in events(bring_in(lines, tmp_path), "turn.started")] == [
        "Look around.",
        "And again.",
        "Once more.",
    ]


@pytest.mark.parametrize("never", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_year_that_cannot_be_does_not_end_an_import(never: str, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Look around.")
    lines.reply("m1", text("Done."))
    lines.lines[-1]["timestamp"] = never
    assert models(bring_in(lines, tmp_path))


def test_tokens_that_were_written_as_text_count(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Look around.")
    lines.reply("m1", text("Done."))
    lines.lines[-1]["message"]["usage"] = {"input_tokens": "10", "output_tokens": "5"}
    (reply,) = models(bring_in(lines, tmp_path))
    assert (reply["cost"]["tokens_in"], reply["cost"]["tokens_out"]) == (10, 5)


@pytest.mark.parametrize(("took", "microseconds"), [(1500, 1_500_000), (-1, 0), (1e300, 0), ("fast", 0)])
def test_a_duration_that_cannot_be_is_none(took: Any, microseconds: int, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Try.")
    lines.reply("m1", call("t1", "WebFetch", url="https://example.org"))
    lines.result("t1", "a page", {"durationMs": took})
    session = bring_in(lines, tmp_path)
    (found,) = [e for e in events(session, "action.recorded") if e["tool"] == "WebFetch"]
    assert (found.get("cost") or {}).get("duration_us", 0) == microseconds


def test_a_turn_that_an_api_error_ended_has_failed(tmp_path: Path) -> None:
    said = "API Error: 529 Overloaded"
    lines = Lines()
    lines.prompt("do it")
    lines.reply("m1", text(said), isApiErrorMessage=True)
    lines.prompt("once more")
    lines.reply("m2", text("done"))
    session = bring_in(lines, tmp_path)
    ended = events(session, "turn.ended")
    assert [e.get("outcome", "completed") for e in ended] == ["failed", "completed"]
    assert said in str(ended[0]["error"])


def test_a_label_that_changed_with_a_prompt_is_not_of_the_turn_before(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("Yes."))
    lines.prompt("Go on, on another branch.", gitBranch="topic")
    lines.reply("m2", text("I did."), gitBranch="topic")
    entries = [
        e for e in bring_in(lines, tmp_path).log.entries() if e.kind in ("turn.started", "turn.ended", "labels.set")
    ]
    kinds = [e.kind for e in entries if e.body.get("labels") != {"model": MODEL}]
    assert kinds[:4] == ["turn.started", "turn.ended", "labels.set", "turn.started"]
    assert [e.header.turn for e in entries if "branch" in (e.body.get("labels") or {})] == [0]
