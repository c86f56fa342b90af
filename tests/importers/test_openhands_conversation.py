"""OpenHands' command line and SDK: a folder with a state and a file for each event, as the real programs wrote it."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import seen_once, seen_sessions
from tests.importers.read_back import bring_in, memory
from wakelog.errors import UnsupportedError
from wakelog.importers import transcript_import
from wakelog.importers.discovery import find_in_folder, find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

ID = "f529a45e-4314-4c3b-a5c2-ba9edbf764fc"
PATH = "/srv/shop/limit.py"
FAILED = "ls: cannot access '/none': No such file or directory"


def text(words: str) -> dict[str, Any]:
    return {"cache_prompt": False, "type": "text", "text": words}


def said(source: str, words: str, reply: str = "") -> dict[str, Any]:
    role = "user" if source == "user" else "assistant"
    message = {"role": role, "content": [text(words)], "thinking_blocks": []}
    more = {"llm_response_id": reply} if reply else {}
    return {"source": source, "llm_message": message, "kind": "MessageEvent", **more}


def action(call: str, reply: str, tool: str, words: str = "", **given: str) -> dict[str, Any]:
    return {
        "source": "agent",
        "thought": [text(words)] if words else [],
        "thinking_blocks": [],
        "action": {**given, "kind": "TerminalAction"},
        "tool_name": tool,
        "tool_call_id": call,
        "tool_call": {"id": call, "name": tool, "arguments": json.dumps(given), "origin": "completion"},
        "llm_response_id": reply,
        "kind": "ActionEvent",
    }


def observation(call: str, tool: str, words: str, **seen: Any) -> dict[str, Any]:
    about = {"content": [text(words)], "is_error": False, **seen}
    more = {"source": "environment", "tool_name": tool, "tool_call_id": call, "kind": "ObservationEvent"}
    return {"observation": about, **more}


def events() -> list[dict[str, Any]]:
    made = {"command": "create", "path": PATH, "prev_exist": False, "new_content": "LIMIT = 1\n"}
    edited = {"command": "str_replace", "path": PATH, "prev_exist": True}
    edited |= {"old_content": "LIMIT = 1\n", "new_content": "LIMIT = 2\n"}
    found = [
        {"source": "agent", "system_prompt": text("You are OpenHands agent."), "kind": "SystemPromptEvent"},
        said("user", "Make the limit"),
        action("t1", "r1", "file_editor", "I write it.", command="create", path=PATH),
        observation("t1", "file_editor", f"File created successfully at: {PATH}", **made),
        action("t2", "r2", "file_editor", command="str_replace", path=PATH),
        action("t3", "r2", "terminal", command="ls /none"),
        observation("t2", "file_editor", "The file has been edited.", **edited),
        observation("t3", "terminal", FAILED, command="ls /none", exit_code=2),
        action("t4", "r3", "terminal", command="true"),
        observation("t4", "terminal", "", command="true", exit_code=0),
        said("agent", "Done.", "r4"),
        said("user", "Thanks"),
        action("t5", "r5", "finish", message="You are welcome."),
        observation("t5", "finish", "You are welcome."),
    ]
    return [{"id": f"e{n}", "timestamp": f"2026-01-05T10:00:{n:02}.000001", **each} for n, each in enumerate(found)]


def state(*replies: str, status: str = "finished", helpers: tuple[str, ...] = ()) -> dict[str, Any]:
    def metrics(ids: tuple[str, ...]) -> dict[str, Any]:
        used = {"model": "lamp-1", "prompt_tokens": 100, "completion_tokens": 20, "cache_read_tokens": 40}
        used |= {"cache_write_tokens": 0, "reasoning_tokens": 5}
        costs = [{"model": "lamp-1", "cost": 0.001, "timestamp": 1.0} for _ in ids]
        return {"token_usages": [used | {"response_id": id} for id in ids], "costs": costs}

    return {
        "id": ID,
        "agent": {"llm": {"model": "lamp-1", "usage_id": "agent"}},
        "workspace": {"working_dir": "/srv/shop", "kind": "LocalWorkspace"},
        "persistence_dir": f"/home/ada/.openhands/conversations/{ID}",
        "execution_status": status,
        "stats": {"usage_to_metrics": {"agent": metrics(replies), "condenser": metrics(helpers)}},
    }


REPLIES = ("r1", "r2", "r3", "r4", "r5")


def written(folder: Path, given: list[dict[str, Any]], about: dict[str, Any]) -> Path:
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for number, event in enumerate(given):
        (folder / "events" / f"event-{number:05}-{event['id']}.json").write_text(json.dumps(event))
    path = folder / "base_state.json"
    path.write_text(json.dumps(about))
    return path


def test_a_conversation_has_its_turns_calls_files_and_usage(tmp_path: Path) -> None:
    path = written(tmp_path, events(), state(*REPLIES))
    seen = seen_once(path)
    assert seen.prompts() == ["Make the limit", "Thanks"]
    assert seen.said() == ["I write it.", "Done."]
    assert seen.turns == ["completed", "completed"]
    outcomes = {"t1": "succeeded", "t2": "succeeded", "t3": "failed", "t4": "succeeded", "t5": "succeeded"}
    assert {id: call.outcome for id, call in seen.calls.items()} == outcomes
    assert seen.calls["t4"].output == ""
    assert seen.files == [("limit.py", "created", 1, 0), ("limit.py", "modified", 1, 1)]
    assert seen.cost == {"tokens_in": 500, "tokens_out": 100, "usd_micros": 5000}
    _, [session] = bring_in(memory(), path)
    expected = {"agent": "openhands", "origin": ID, "project": "/srv/shop", "model": "lamp-1"}
    assert session.labels.items() >= expected.items()


def test_models_that_only_help_are_counted_too(tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, events(), state(*REPLIES, helpers=("c1",))))
    assert seen.cost["tokens_in"] == 600


def test_times_are_those_of_the_machine(tmp_path: Path) -> None:
    store = memory()
    report = import_transcript(store, written(tmp_path, events(), state(*REPLIES)))
    first = next(iter(store.resume(report.sessions[0].name).log.entries()))
    local = datetime.datetime.fromisoformat("2026-01-05T10:00:00.000001").astimezone()
    assert first.happened_at == int(local.timestamp() * 1_000_000)


def test_a_conversation_that_grows_is_seen_as_if_it_came_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("COLD_US", "QUIET_US"):
        monkeypatch.setattr(transcript_import, limit, 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store = wakelog.open("memory:")
    for count in range(1, len(events()) + 1):
        given = events()[:count]
        replies = dict.fromkeys(e["llm_response_id"] for e in given if "llm_response_id" in e)
        late = list(replies)[:-1] if count % 2 else replies
        for known in (late, replies):
            path = written(tmp_path, given, state(*known, status="running"))
            grown = seen_sessions(store, path)
    whole = seen_sessions(wakelog.open("memory:"), path)
    assert [s.comparable() for s in grown] == [s.comparable() for s in whole]
    assert import_transcript(store, path).new_records == 0


def test_it_is_found_once_and_its_events_are_no_transcripts(tmp_path: Path) -> None:
    folder = tmp_path / ".openhands/conversations" / ID.replace("-", "")
    path = written(folder, events(), state(*REPLIES))
    assert [f.path for f in find_transcripts(tmp_path)] == [path]
    assert [f.path for f in find_in_folder(folder)] == [path]
    with pytest.raises(UnsupportedError):
        detect_format(next((folder / "events").iterdir()))


def test_a_broken_event_is_kept_and_reported(tmp_path: Path) -> None:
    path = written(tmp_path, events(), state(*REPLIES))
    (tmp_path / "events" / "event-00003-e3.json").write_text('{"cut')
    report, [session] = bring_in(memory(), path)
    assert report.broken_count == 1
    assert '{"cut' in session.records.values()


def test_a_conversation_that_got_stuck_failed(tmp_path: Path) -> None:
    path = written(tmp_path, events()[:10], state("r1", "r2", "r3", status="stuck"))
    assert seen_once(path).turns == ["failed"]
