"""Copilot CLI, Qwen Code, Continue and Cline's sessions: what a session of each looks like once it is here."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import check_growth, prefixes, seen_once
from tests.importers.newer_samples import PATH, SESSION, cline_session, continue_dev, copilot, qwen
from tests.importers.read_back import bring_in, memory
from tests.importers.samples import write_lines
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript

LINES: dict[str, Callable[[], list[dict[str, Any]]]] = {"copilot-cli": copilot, "qwen-code": qwen}
DOCUMENTS: dict[str, tuple[Callable[[], dict[str, Any]], str, str]] = {
    "continue": (continue_dev, f"{SESSION}.json", "history"),
    "cline-sessions": (cline_session, "1794978482168_71qsc.messages.json", "messages"),
}
FORMATS = [*LINES, *DOCUMENTS]


def written(folder: Path, format: str) -> Path:
    if format in LINES:
        return write_lines(folder / "events.jsonl", LINES[format]())
    make, name, _ = DOCUMENTS[format]
    path = folder / name
    path.write_text(json.dumps(make(), indent=1))
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_is_recognised_by_what_stands_in_it(format: str, tmp_path: Path) -> None:
    path = written(tmp_path, format)
    assert format == detect_format(path).NAME
    other = path.rename(tmp_path / "copied.txt")
    assert format == detect_format(other).NAME


@pytest.mark.parametrize("format", FORMATS)
def test_prompts_replies_and_ends_of_turns_are_there(format: str, tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, format))
    assert seen.prompts() == ["Make the limit", "Thanks"]
    said = seen.said()
    assert (said[0], said[-2], said[-1]) == ("I write it.", "Done.", "You are welcome.")
    assert seen.turns == ["completed", "completed"]


@pytest.mark.parametrize(
    ("format", "calls"),
    [
        ("copilot-cli", {"t1": "succeeded", "t2": "succeeded", "t3": "failed", "t4": "denied"}),
        ("qwen-code", {"t1": "succeeded", "t2": "succeeded", "t3": "failed"}),
        ("continue", {"t1": "succeeded", "t2": "failed", "t3": "denied"}),
        ("cline-sessions", {"t0": "failed", "t1": "succeeded", "t2": "succeeded", "t3": "failed"}),
    ],
)
def test_calls_end_as_they_ended(format: str, calls: dict[str, str], tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, format))
    assert {id: call.outcome for id, call in seen.calls.items()} == calls
    assert "No such file" in str(seen.calls["t2" if format == "continue" else "t3"].output)


@pytest.mark.parametrize("format", ["copilot-cli", "qwen-code", "cline-sessions"])
def test_an_edit_has_the_content_before_and_after(format: str, tmp_path: Path) -> None:
    _, [session] = bring_in(memory(), written(tmp_path, format))
    made, edited = session.of("file.changed")
    assert (made["path"], made["change"], made["after"]) == (PATH, "created", "LIMIT = 1\n")
    assert (edited["before"], edited["after"]) == ("LIMIT = 1\n", "LIMIT = 2\n")
    assert (edited["added"], edited["removed"]) == (1, 1)


def test_a_file_that_continue_wrote_is_a_change(tmp_path: Path) -> None:
    assert seen_once(written(tmp_path, "continue")).files == [(PATH, "created", 1, 0)]


@pytest.mark.parametrize(
    ("format", "cost"),
    [
        ("copilot-cli", {"tokens_in": 588, "tokens_out": 80}),
        ("qwen-code", {"tokens_in": 500, "tokens_out": 100}),
        ("continue", {"tokens_in": 400, "tokens_out": 80, "usd_micros": 2000}),
        ("cline-sessions", {"tokens_in": 600, "tokens_out": 120, "usd_micros": 6000}),
    ],
)
def test_usage_is_counted_once(format: str, cost: dict[str, int], tmp_path: Path) -> None:
    seen = seen_once(written(tmp_path, format))
    assert seen.cost.items() >= cost.items()


@pytest.mark.parametrize("format", FORMATS)
def test_labels_say_where_and_with_what(format: str, tmp_path: Path) -> None:
    path = written(tmp_path, format)
    if format == "cline-sessions":
        about = {"cwd": "/srv/shop", "metadata": {"title": "The limit"}}
        path.with_name("1794978482168_71qsc.json").write_text(json.dumps(about))
    _, [session] = bring_in(memory(), path)
    assert session.labels["project"] == "/srv/shop"
    assert session.labels["model"] in ("claude-sonnet-4-5", "qwen3-coder", "gpt-4o")
    if format in ("copilot-cli", "qwen-code"):
        assert (session.labels["branch"], bool(session.labels["agent_version"])) == ("main", True)
    else:
        assert session.labels["title"] == "The limit"


@pytest.mark.parametrize("format", LINES)
def test_a_log_that_grows_is_seen_as_if_it_came_at_once(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_growth(prefixes(LINES[format]()), tmp_path / "events.jsonl", format, monkeypatch)


@pytest.mark.parametrize("format", DOCUMENTS)
def test_a_document_that_grows_is_seen_as_if_it_came_at_once(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, name, field = DOCUMENTS[format]
    whole = make()
    versions = []
    for count in range(1, len(whole[field]) + 1):
        version = copy.deepcopy({**whole, field: whole[field][:count]})
        if states := version[field][-1].get("toolCallStates"):
            for state in states:
                running = {**state, "status": "calling"}
                running.pop("output", None)
                state.clear()
                state.update(running)
            versions.append(json.dumps(version).encode())
            version = {**whole, field: whole[field][:count]}
        versions.append(json.dumps(version).encode())
    check_growth(versions, tmp_path / name, format, monkeypatch)


def test_all_are_found_in_a_home_and_have_names_of_their_own(tmp_path: Path) -> None:
    places = {
        "copilot-cli": f".copilot/session-state/{SESSION}/events.jsonl",
        "qwen-code": f".qwen/projects/-srv-shop/chats/{SESSION}.jsonl",
        "continue": f".continue/sessions/{SESSION}.json",
        "cline-sessions": ".cline/data/sessions/1794978482168_71qsc/1794978482168_71qsc.messages.json",
    }
    for format, place in places.items():
        (tmp_path / place).parent.mkdir(parents=True)
        written(tmp_path, format).rename(tmp_path / place)
    (tmp_path / ".continue/sessions/sessions.json").write_text(json.dumps([{"sessionId": SESSION}]))
    found = find_transcripts(tmp_path)
    assert {f.format for f in found} == {*places}
    assert len(found) == 4
    with wakelog.open("memory:") as store:
        names = {s.name for f in found for s in import_transcript(store, f.path, format=f.format).sessions}
    assert names == {"copilot-1e55adca", "qwen-1e55adca", "continue-1e55adca", "cline-1794978482168_71qsc"}


def test_usage_that_copilot_reports_after_its_reply_belongs_to_that_reply(tmp_path: Path) -> None:
    lines = copilot()
    lines[4], lines[5] = lines[5], lines[4]
    seen = seen_once(write_lines(tmp_path / "events.jsonl", lines))
    assert seen.cost["tokens_out"] == 80


def test_copilot_goes_back_is_stopped_and_compacts(tmp_path: Path) -> None:
    def event(id: str, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": id, "timestamp": "2026-01-05T11:00:00.000Z"}

    skill = event("x0", "user.message", content="A page", source="skill-pdf")
    back = event("x1", "session.snapshot_rewind", upToEventId="e19", eventsRemoved=3)
    asked, stopped = event("x2", "user.message", content="Another way"), event("x3", "abort", reason="user_initiated")
    compacted = event("x4", "session.compaction_complete", success=True, summaryContent="The limit was made.")
    path = write_lines(tmp_path / "events.jsonl", [*copilot(), skill, back, asked, stopped, compacted])
    store = memory()
    _, [session] = bring_in(store, path)
    assert [turn["outcome"] for turn in session.of("turn.ended")] == ["completed", "completed", "interrupted"]
    assert {"history.rewound", "history.compacted"} <= {*session.kinds}
    assert [m["content"] for m in session.of("message.added") if m.get("name") == "context"][-1] == "A page"


def test_qwen_goes_back_to_an_earlier_line(tmp_path: Path) -> None:
    lines = qwen()
    again = copy.deepcopy(lines[9]) | {"uuid": "r1", "parentUuid": "q8", "timestamp": "2026-01-05T11:00:00.000Z"}
    again["message"]["parts"] = [{"text": "Make it three"}]
    answer = copy.deepcopy(lines[10]) | {"uuid": "r2", "parentUuid": "r1", "timestamp": "2026-01-05T11:00:01.000Z"}
    store = memory()
    report, _ = bring_in(store, write_lines(tmp_path / "chat.jsonl", [*lines, again, answer]))
    texts = [m.text for m in store.resume(report.sessions[0].name).messages()]
    assert "Thanks" not in texts
    assert texts[-2:] == ["Make it three", "You are welcome."]


def test_records_of_continue_have_the_time_of_their_file(tmp_path: Path) -> None:
    path = written(tmp_path, "continue")
    os.utime(path, (1767607200, 1767607200))
    store = memory()
    report, _ = bring_in(store, path)
    times = {e.happened_at for e in store.resume(report.sessions[0].name).log.entries()}
    assert times == {1767607200_000_000}


def test_a_state_of_older_versions_of_continue_is_a_call_too(tmp_path: Path) -> None:
    session = continue_dev()
    item = session["history"][1]
    [item["toolCallState"]] = item.pop("toolCallStates")
    item["message"].pop("toolCalls")
    path = tmp_path / "old.json"
    path.write_text(json.dumps(session))
    assert seen_once(path).calls["t1"].outcome == "succeeded"
