"""goose: a database with all sessions, in the shape that the real program wrote."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.growth import seen_sessions
from tests.importers.read_back import ReadBack, bring_in, memory
from wakelog.importers import transcript_import
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.transcript_import import import_transcript

Row = tuple[str, str, list[dict[str, Any]], dict[str, Any]]
"""The session, the role, the parts and the metadata of a message."""
PATH = "/srv/shop/limit.py"
FAILED = "ls: cannot access '/none': No such file or directory\n\nCommand exited with code 2"
USED = {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 40, "cost": 0.001, "costSource": "estimated"}
TABLES = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, session_type TEXT, working_dir TEXT, created_at TEXT,
    parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT,
    content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);
INSERT INTO sessions VALUES ('20260105_1', 'The limit', 'user', '/srv/shop', '2026-01-05 10:00:00', NULL);
INSERT INTO sessions VALUES ('20260105_2', 'Delegated task', 'sub_agent', '/srv/shop', '2026-01-05 10:00:09',
    '20260105_1');
INSERT INTO sessions VALUES ('20260105_3', 'Never used', 'user', '/srv/shop', '2026-01-05 10:00:10', NULL);
"""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def ask(call: str, tool: str, **given: Any) -> dict[str, Any]:
    value = {"name": tool, "arguments": given}
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": value}}


def answer(call: str, words: str, **more: Any) -> dict[str, Any]:
    value = {"content": [{**text(words), "annotations": {"priority": 0.0}}], "isError": False, **more}
    return {"type": "toolResponse", "id": call, "toolResult": {"status": "success", "value": value}}


def user(*parts: dict[str, Any], session: str = "20260105_1", **metadata: Any) -> Row:
    return session, "user", [*parts], {"userVisible": True, "agentVisible": True, **metadata}


def model(*parts: dict[str, Any], session: str = "20260105_1", used: bool = True) -> Row:
    metadata = {"inference": {"provider": "openai", "requestedModel": "gpt-4o"}}
    return session, "assistant", [*parts], {**metadata, "usage": USED} if used else metadata


def messages() -> list[Row]:
    thought = {"type": "thinking", "thinking": "First the file.", "signature": ""}
    return [
        user(text("Make the limit")),
        user(text("<turn-context>…</turn-context>"), userVisible=False, turnContext=True),
        model(thought, text("I write it."), ask("t1", "write", path=PATH, content="LIMIT = 1\n")),
        user(answer("t1", f"Created {PATH} (1 lines)")),
        model(text("It must be two."), ask("t2", "edit", path="limit.py", before="1", after="2")),
        user(answer("t2", f"Edited {PATH} (1 lines -> 1 lines)")),
        model(ask("t3", "shell", command="ls /none"), used=False),
        user(answer("t3", FAILED, isError=True, structuredContent={"exit_code": 2})),
        model(ask("t4", "shell", command="rm -rf build")),
        user(answer("t4", "The user has declined to run this tool. DO NOT attempt to call this tool again.")),
        model(ask("t5", "delegate", instructions="Look at it.")),
        user(text("Subagent ID: 20260105_2\n\nLook at it."), session="20260105_2"),
        model(text("It is two."), session="20260105_2"),
        user(answer("t5", "It is two.", _meta={"subagent_session_id": "20260105_2"})),
        model(text("Done.")),
        user(text("Thanks")),
        model(text("You are welcome.")),
    ]


def write(path: Path, rows: list[Row]) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(TABLES)
        for number, (session, role, parts, metadata) in enumerate(rows):
            row = f"m{number}", session, role, json.dumps(parts), 1767607200 + number, json.dumps(metadata)
            columns = "message_id, session_id, role, content_json, created_timestamp, metadata_json"
            db.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
        db.commit()
    return path


@pytest.fixture
def sessions(tmp_path: Path) -> list[ReadBack]:
    report, found = bring_in(memory(), write(tmp_path / "sessions.db", messages()))
    assert report.format == "goose"
    assert [s.name for s in report.sessions] == ["goose-20260105_1", "goose-20260105_2"]
    return found


def test_prompts_replies_and_calls_are_there(tmp_path: Path) -> None:
    seen, helper = seen_sessions(memory(), write(tmp_path / "sessions.db", messages()))
    assert seen.prompts() == ["Make the limit", "Thanks"]
    assert seen.said() == ["I write it.", "It must be two.", "Done.", "You are welcome."]
    assert seen.turns == ["completed", "completed"]
    outcomes = {"t1": "succeeded", "t2": "succeeded", "t3": "failed", "t4": "denied", "t5": "succeeded"}
    assert {id: call.outcome for id, call in seen.calls.items()} == outcomes
    assert "No such file" in seen.calls["t3"].output
    assert helper.said() == ["It is two."]


def test_an_edit_has_the_content_before_and_after(sessions: list[ReadBack]) -> None:
    made, edited = sessions[0].of("file.changed")
    assert (made["path"], made["change"], made["after"]) == ("limit.py", "created", "LIMIT = 1\n")
    assert (edited["path"], edited["before"], edited["after"]) == ("limit.py", "LIMIT = 1\n", "LIMIT = 2\n")


def test_usage_and_cost_are_counted_once(tmp_path: Path) -> None:
    seen, helper = seen_sessions(memory(), write(tmp_path / "sessions.db", messages()))
    assert seen.cost == {"tokens_in": 600, "tokens_out": 120, "usd_micros": 6000}
    assert helper.cost == {"tokens_in": 100, "tokens_out": 20, "usd_micros": 1000}


def test_a_sub_agent_is_a_session_linked_with_its_call(sessions: list[ReadBack]) -> None:
    parent, child = sessions
    assert child.labels["title"] == "Delegated task"
    [returned] = parent.of("subagent.returned")
    assert returned["session"] == child.session.id
    assert child.of("session.opened")[0]["spawner"].startswith(parent.session.id)


def test_labels_say_where_and_with_what(sessions: list[ReadBack]) -> None:
    expected = {"project": "/srv/shop", "title": "The limit", "model": "gpt-4o", "origin": "20260105_1"}
    assert sessions[0].labels.items() >= expected.items()


def test_a_message_that_is_no_list_is_kept_and_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "sessions.db", messages())
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE messages SET content_json = '{cut' WHERE message_id = 'm14'")
        db.commit()
    report, [session, _] = bring_in(memory(), path)
    assert report.broken_count == 1
    assert session.records["15"] == "{cut"


def test_a_database_that_grows_is_seen_as_if_it_came_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("COLD_US", "QUIET_US"):
        monkeypatch.setattr(transcript_import, limit, 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store, path = wakelog.open("memory:"), tmp_path / "sessions.db"
    for count in range(1, len(messages()) + 1):
        grown = seen_sessions(store, write(path, messages()[:count]))
    whole = seen_sessions(wakelog.open("memory:"), path)
    assert [s.comparable() for s in grown] == [s.comparable() for s in whole]
    assert import_transcript(store, path).new_records == 0


def test_a_database_of_a_running_goose_counts_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/goose/sessions/sessions.db"
    path.parent.mkdir(parents=True)
    write(path, messages()[:3])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
        [before] = find_transcripts(tmp_path)
        db.execute("UPDATE sessions SET name = 'A new title'")
        db.commit()
        [after] = find_transcripts(tmp_path)
        assert before.format == after.format == "goose"
        assert after.size > before.size
        assert len(import_transcript(memory(), path).sessions) == 1


@pytest.mark.parametrize("when", [None, "2026-01-05 10:00:00", 1 << 60])
def test_a_time_that_is_no_number_of_seconds_ends_no_import(when: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "sessions.db", messages())
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE messages SET created_timestamp = ?", (when,))
        db.commit()
    assert import_transcript(memory(), path).new_records == len(messages())
