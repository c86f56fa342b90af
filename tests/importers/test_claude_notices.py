"""Words that the agent's program says: notices that make it work, what was queued meanwhile, sub-agents that end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.every import every
from tests.importers.claude import (
    FOLDER,
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
    text,
)
from wakelog.importers.transcript_import import import_transcript
from wakelog.session import Session
from wakelog.timeline.turn_words import request_of_turn, words_of_turn


def notice(task: str, summary: str, status: str = "completed") -> str:
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<tool-use-id>t1</tool-use-id>\n<output-file>/tmp/x/{task}"
        f".output</output-file>\n<status>{status}</status>\n<summary>{summary}</summary>\n</task-notification>"
    )


DONE = notice("b1", 'Background command "make" failed with exit code 2', "failed")


def told(session: Session[Any], name: str) -> list[Any]:
    return [words for _, named, words in (m for m in said(session) if len(m) == 3) if named == name]


def background(lines: Lines) -> None:
    lines.prompt("Build it in the background.")
    lines.reply("m1", call("t1", "Bash", command="make", run_in_background=True))
    lines.result("t1", "Command running in background with ID: b1", {"backgroundTaskId": "b1"})
    lines.reply("m2", text("Started."))


@every("ends", (True, False))
def test_a_notice_that_wakes_the_agent_begins_a_turn_that_nobody_asked_for(ends: bool, tmp_path: Path) -> None:
    lines = Lines()
    background(lines)
    if ends:
        lines.add("system", subtype="turn_duration", durationMs=5000)
    lines.prompt(DONE, origin={"kind": "task-notification"})
    lines.reply("m3", text("The cause is x."), call("t2", "Edit", file_path=f"{FOLDER}/a.c"))
    lines.result("t2", "ok", {"filePath": f"{FOLDER}/a.c", "oldString": "x", "newString": "y", "originalFile": "x\n"})
    lines.reply("m4", text("Mended."))
    session = bring_in(lines, tmp_path / str(ends))
    first, second = [e for e in session.log.entries() if e.kind == "turn.started"]
    assert ("input" in second.body, first.header.actor, second.header.actor) == (False, "user", "runtime")
    changed = next(e for e in session.log.entries() if e.kind == "file.changed")
    assert changed.header.turn == 2
    assert told(session, "notice") == [DONE]
    words, asked = words_of_turn(session.log, 2), request_of_turn(session.log, 2)
    assert words is not None
    assert (words.text, words.by) == (
        'Background command "make" failed with exit code 2',
        "program",
    )
    assert asked is not None
    assert (asked.text, asked.by) == ("Build it in the background.", "user")


def test_a_notice_in_the_middle_of_a_turn_begins_none(tmp_path: Path) -> None:
    lines = Lines()
    background(lines)
    lines.prompt("And the tests?")
    lines.reply("m3", call("t2", "Bash", command="make test"))
    lines.prompt(DONE)
    lines.result("t2", "ok")
    lines.reply("m4", text("Both done."))
    session = bring_in(lines, tmp_path)
    assert [e["input"] for e in events(session, "turn.started")] == ["Build it in the background.", "And the tests?"]
    assert told(session, "notice") == [DONE]


@every("kind", ("auto-continuation", "peer", "coordinator"))
def test_who_wrote_a_message_counts_and_not_how_it_reads(kind: str, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.", origin={"kind": "human"})
    lines.reply("m1", text("Done."))
    lines.prompt("Go on with the task.", origin={"kind": kind}, isMeta=True)
    lines.reply("m2", text("I went on."))
    session = bring_in(lines, tmp_path / kind)
    assert [e.get("input") for e in events(session, "turn.started")] == ["Begin.", None]
    assert told(session, "notice") == ["Go on with the task."]


@every("prompt", ("Also the docs.", [{"type": "text", "text": "Also the docs."}]))
@every("is_queued", (True, False))
def test_what_was_typed_while_the_agent_worked_is_said_once(prompt: Any, is_queued: bool, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    if is_queued:
        lines.lines.append({"type": "queue-operation", "operation": "enqueue", "content": "Also the docs."})
    lines.result("t1", "ok")
    if is_queued:
        lines.lines.append({"type": "queue-operation", "operation": "remove"})
    lines.add("attachment", attachment={"type": "queued_command", "prompt": prompt, "commandMode": "prompt"})
    lines.reply("m2", text("The docs too."))
    session = bring_in(lines, tmp_path / f"{type(prompt).__name__}-{is_queued}")
    (words,) = told(session, "queued")
    assert words in ("Also the docs.", prompt)
    assert len(events(session, "turn.started")) == 1


def test_a_notice_that_waits_in_the_queue_is_said_when_the_agent_is_told(tmp_path: Path) -> None:
    lines = Lines()
    background(lines)
    lines.prompt("And the tests?")
    lines.reply("m3", call("t2", "Bash", command="make test"))
    lines.lines.append({"type": "queue-operation", "operation": "enqueue", "content": DONE})
    lines.result("t2", "ok")
    lines.add("attachment", attachment={"type": "queued_command", "prompt": DONE, "commandMode": "task-notification"})
    lines.add("attachment", attachment={"type": "skill_listing", "prompt": "no words of anybody"})
    lines.reply("m4", text("Both done."))
    session = bring_in(lines, tmp_path)
    assert (told(session, "notice"), told(session, "queued")) == ([DONE], [])


@every("status", ("completed", "failed", "killed"))
def test_a_sub_agent_in_the_background_returns_when_the_notice_says_so(status: str, tmp_path: Path) -> None:
    started = {"isAsync": True, "status": "async_launched", "agentId": "a77", "prompt": "Look around."}
    lines = Lines()
    lines.prompt("Send somebody.")
    lines.reply("m1", call("t1", "Agent", description="scout", prompt="Look around."))
    lines.result("t1", "Async agent launched.", started)
    lines.reply("m2", text("Somebody looks around."))
    before = lines.write(tmp_path / status / f"{SESSION}.jsonl")
    store, _ = imported(before)
    (child,) = [info.name for info in store.sessions() if "agent" in info.name] or [""]
    assert child == ""  # its own transcript makes it
    session = store.resume(NAME)
    assert [s["status"] for s in session.log.part("subagents").values()] == ["running"]
    lines.prompt(notice("a77", 'Agent "scout" finished', status))
    lines.reply("m3", text("It is back."))
    import_transcript(store, lines.write(before))
    outcome = {"completed": "succeeded", "killed": "cancelled"}.get(status, status)
    assert [s["status"] for s in session.log.part("subagents").values()] == [outcome]
    assert len(events(session, "subagent.returned")) == 1


def test_a_sub_agent_is_linked_though_its_call_was_never_answered(tmp_path: Path) -> None:
    lines, agent = Lines(), Lines(prefix="c", isSidechain=True, agentId="a1")
    lines.prompt("Send somebody.")
    lines.reply("m1", call("t1", "Agent", description="scout", prompt="Look around."))
    agent.prompt("Look around.")
    path = agent.write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl")
    path.with_suffix(".meta.json").write_text(json.dumps({"toolUseId": "t1"}))
    store, _ = imported(lines.write(tmp_path / f"{SESSION}.jsonl"))
    session = store.resume(NAME)
    (about,) = session.log.part("subagents").items()
    assert (about[0], about[1]["status"]) == (store.reserve(f"{NAME}-agent-a1"), "running")
    assert about[1]["task"] == "scout"
    lines.prompt("What happened?")
    import_transcript(store, lines.write(tmp_path / f"{SESSION}.jsonl"))
    assert len(events(session, "subagent.spawned")) == 1
    at_once = imported(tmp_path / f"{SESSION}.jsonl")[0].resume(NAME)
    assert [body["outcome"] for body in events(at_once, "subagent.returned")] == ["interrupted"]


def test_a_sub_agent_of_a_sub_agent_belongs_to_that_one(tmp_path: Path) -> None:
    folder = tmp_path / SESSION / "subagents"
    store = live_store()
    for agent, above in (("a1", ""), ("a2", "a1")):
        lines = Lines(prefix=agent[1], isSidechain=True, agentId=agent)
        lines.prompt("Look around.")
        lines.reply(f"m{agent}", text("I looked."))
        path = lines.write(folder / f"agent-{agent}.jsonl")
        about = {"agentType": "general-purpose", "spawnDepth": 1} | ({"parentAgentId": above} if above else {})
        path.with_suffix(".meta.json").write_text(json.dumps(about))
        import_transcript(store, path)
    spawners = {name: str(store.resume(f"{NAME}-agent-{name}").log.entry(1).body["spawner"]) for name in ("a1", "a2")}
    assert spawners["a2"].split("@")[0] == store.resume(f"{NAME}-agent-a1").id
    assert spawners["a1"].split("@")[0] == store.reserve(NAME)


@every("broken", ("", "not json", "[]", '{"parentAgentId": 7}'))
def test_what_the_file_beside_a_sub_agent_says_may_be_broken(broken: str, tmp_path: Path) -> None:
    lines = Lines(isSidechain=True, agentId="a1")
    lines.prompt("Look around.")
    path = lines.write(tmp_path / str(len(broken)) / "agent-a1.jsonl")
    path.with_suffix(".meta.json").write_text(broken)
    store = live_store()
    assert import_transcript(store, path).broken == ()
    assert store.is_open(f"{NAME}-agent-a1")


@pytest.mark.parametrize(
    ("kind", "outcome"), [("user-rejected", "denied"), ("permission-rule", "denied"), ("interrupted", "interrupted")]
)
def test_a_denial_is_told_by_its_kind_whatever_the_person_said(kind: str, outcome: str, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Try.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    lines.result("t1", "take another way", is_error=True, toolDenialKind=kind)
    (found,) = calls(bring_in(lines, tmp_path))
    assert (found["outcome"], found["output"]) == (outcome, "take another way")


def test_an_answer_that_the_program_made_up_is_no_error(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    made_up = {"id": "x", "model": "<synthetic>", "role": "assistant", "content": [text("No response requested.")]}
    lines.add("assistant", message=made_up, isApiErrorMessage=False)
    lines.add("assistant", message=made_up | {"content": [text("API Error: 429")]}, isApiErrorMessage=True)
    session = bring_in(lines, tmp_path)
    assert [(e.get("name", ""), e["content"]) for e in events(session, "message.added")] == [
        ("", "No response requested."),
        ("error", "API Error: 429"),
    ]
