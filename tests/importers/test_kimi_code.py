"""Kimi Code: lines of steps, calls and usage, in the shape that the real program wrote, and a sub-agent beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.growth import check_growth, prefixes, seen_once
from tests.importers.read_back import bring_in, memory
from tests.importers.samples import write_lines
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

SESSION = "session_0cba6e09-d5d3-46dc-8e75-af39d82f8111"
PATH = "/srv/shop/limit.py"
FAILED = "ls: cannot access '/none': No such file or directory\nCommand failed with exit code: 2."
REJECTED = 'Tool "Bash" was not run because the user rejected the approval request.'
USED = {"inputOther": 60, "output": 20, "inputCacheRead": 40, "inputCacheCreation": 0}


def line(kind: str, **about: Any) -> dict[str, Any]:
    return {"type": kind, "agentId": "main", **about}


def message(words: str, id: str = "", kind: str = "user") -> dict[str, Any]:
    said = {"role": "user", "content": [{"type": "text", "text": words}], "toolCalls": [], "origin": {"kind": kind}}
    return line("context.append_message", message=said | ({"id": id} if id else {}))


def event(kind: str, **about: Any) -> dict[str, Any]:
    return line("context.append_loop_event", event={"type": kind, **about})


def step(uuid: str, *inside: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        event("step.begin", uuid=uuid, turnId="0", step=1),
        line("llm.request", provider="kimi", model="kimi-k2"),
        line("usage.record", model="kimi-k2", usage=USED, usageScope="turn"),
        *inside,
        event("step.end", uuid=uuid, finishReason="tool_use", usage=USED, messageId=f"chatcmpl-{uuid}"),
    ]


def part(uuid: str, **content: str) -> dict[str, Any]:
    return event("content.part", uuid=f"p-{uuid}", stepUuid=uuid, part=content)


def call(uuid: str, id: str, tool: str, **args: str) -> dict[str, Any]:
    return event("tool.call", uuid=f"u-{id}", stepUuid=uuid, toolCallId=id, name=tool, args=args, display={})


def result(id: str, output: str, **more: Any) -> dict[str, Any]:
    return event("tool.result", parentUuid=f"u-{id}", toolCallId=id, result={"output": output, "durationMs": 2, **more})


def wire() -> list[dict[str, Any]]:
    repeated = {"message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}, "meta": {}}
    lines = [
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1767607200000},
        line("profile.bind", modelAlias="kimi-k2", profileName="agent", systemPrompt="You are Kimi Code CLI."),
        message("Make the limit", "m1"),
        message("<system-reminder>\nToday is …</system-reminder>", kind="injection"),
        *step(
            "s1",
            part("s1", type="think", think="First the file."),
            part("s1", type="text", text="I write it."),
            line("file_history.tracked", turnId=0, path="limit.py", entry={"key": None, "version": 1}),
            call("s1", "t1", "Write", path=PATH, content="LIMIT = 1\n"),
            result("t1", f"Wrote 10 bytes to {PATH}"),
        ),
        *step(
            "s2",
            part("s2", type="text", text="It must be two."),
            call("s2", "t2", "Edit", path=PATH, old_string="1", new_string="2"),
            call("s2", "t3", "Bash", command="ls /none"),
            call("s2", "t4", "Bash", command="rm -rf build"),
            result("t2", f"Replaced 1 occurrence in {PATH}"),
            result("t3", FAILED, isError=True),
            result("t4", REJECTED, isError=True),
        ),
        *step(
            "s3",
            call("s3", "t5", "Agent", description="Look", prompt="Look at it.", subagent_type="explore"),
            line("subagent.spawned", subagentId="agent-0", parentToolCallId="t5"),
            result("t5", "agent_id: agent-0\nstatus: completed\n\nIt is two."),
        ),
        *step("s4", part("s4", type="text", text="Done.")),
        {"message": repeated, "type": "agent.message.appended", "kind": "event"},
        line("turn.ended", turnId=0, reason="completed", durationMs=383),
        message("Thanks", "m2"),
        *step("s5", part("s5", type="text", text="You are welcome.")),
        line("turn.ended", turnId=1, reason="completed", durationMs=10),
    ]
    return [{**each, "time": 1767607200000 + number} for number, each in enumerate(lines)]


def written(home: Path) -> Path:
    """The session's lines, with its state and a sub-agent beside them."""
    folder = home / ".kimi-code/sessions/wd_shop_5ff5a080e65b" / SESSION
    for agent in ("main", "agent-0"):
        (folder / "agents" / agent).mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({"id": SESSION, "cwd": "/srv/shop", "title": "The limit"}))
    task = message("Look at it.", "m9", "system_trigger")
    helper = [wire()[0], task, *step("h1", part("h1", type="text", text="It is two.")), line("turn.ended")]
    write_lines(folder / "agents/agent-0/wire.jsonl", helper)
    return write_lines(folder / "agents/main/wire.jsonl", wire())


def test_a_file_is_recognised_by_what_stands_in_it(tmp_path: Path) -> None:
    path = written(tmp_path).rename(tmp_path / "copied.txt")
    assert detect_format(path).NAME == "kimi-code"


def test_prompts_replies_calls_and_usage_are_there(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path))
    assert seen.prompts() == ["Make the limit", "Thanks"]
    assert seen.said() == ["I write it.", "It must be two.", "Done.", "You are welcome."]
    assert seen.turns == ["completed", "completed"]
    outcomes = {"t1": "succeeded", "t2": "succeeded", "t3": "failed", "t4": "denied", "t5": "succeeded"}
    assert {id: call.outcome for id, call in seen.calls.items()} == outcomes
    assert (seen.cost["tokens_in"], seen.cost["tokens_out"]) == (500, 100)


def test_an_edit_has_the_content_before_and_after(tmp_path: Path) -> None:
    _, [session] = bring_in(memory(), written(tmp_path))
    made, edited = session.of("file.changed")
    assert (made["path"], made["change"], made["after"]) == ("limit.py", "created", "LIMIT = 1\n")
    assert (edited["before"], edited["after"]) == ("LIMIT = 1\n", "LIMIT = 2\n")
    expected = {"project": "/srv/shop", "title": "The limit", "model": "kimi-k2", "origin": SESSION}
    assert session.labels.items() >= expected.items()


def test_a_session_and_its_sub_agent_are_found_and_linked(tmp_path: Path) -> None:
    written(tmp_path)
    store = memory()
    names = {s.name for f in find_transcripts(tmp_path) for s in import_transcript(store, f.path).sessions}
    assert names == {"kimi-0cba6e09", "kimi-0cba6e09-agent-0"}
    parent, child = (store.resume(name) for name in sorted(names))
    assert child.id in [e.body["session"] for e in parent.log.entries() if e.kind == "subagent.returned"]


def test_a_turn_that_was_stopped_and_a_summary(tmp_path: Path) -> None:
    summary = {"role": "user", "content": [{"type": "text", "text": "The limit was made."}]}
    more = [
        line("context.apply_compaction", summary=summary, count=5, time=1767607300000),
        message("Go on", "m3") | {"time": 1767607300001},
        line("turn.ended", turnId=2, reason="cancelled", time=1767607300002),
    ]
    seen = seen_once(write_lines(tmp_path / "wire.jsonl", [*wire(), *more]))
    assert seen.named("summary") == ["The limit was made."]
    assert seen.turns == ["completed", "completed", "interrupted"]


def test_a_log_that_grows_is_seen_as_if_it_came_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_growth(prefixes(wire()), tmp_path / "wire.jsonl", "kimi-code", monkeypatch)
