"""Databases of the OpenAI Agents SDK's sessions: read into turns and calls, each item once and as it was."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import wakelog
from wakelog.adapters.item_log import ItemLog
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store

SCHEMA = """
create table agent_sessions (session_id text primary key, created_at timestamp, updated_at timestamp);
create table agent_messages (id integer primary key autoincrement, session_id text not null, message_data text not null,
    created_at timestamp default current_timestamp);
"""
ITEMS: list[Any] = [
    {"role": "user", "content": "What is the weather?"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    {"type": "message", "id": "m_1", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
    {"role": "user", "content": "Thanks"},
    {"role": "user", "content": "Really"},
]


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as opened:
        yield opened


def add(path: Path, session: str, *items: Any) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        if not db.execute("select 1 from sqlite_master").fetchall():
            db.executescript(SCHEMA)
        db.execute("insert or ignore into agent_sessions (session_id) values (?)", (session,))
        for item in items:
            raw = item if isinstance(item, str) else json.dumps(item)
            row = (session, raw, "2026-11-16 10:00:00")
            db.execute("insert into agent_messages (session_id, message_data, created_at) values (?, ?, ?)", row)


def kept(store: Store, name: str) -> list[Any]:
    return [item.value for item in ItemLog(store.resume(name), "openai-agents").refresh()]


def test_each_session_of_a_database_is_read_into_turns_and_calls(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    add(path, "user-1", *ITEMS)
    add(path, "@5", ITEMS[0])
    report = import_transcript(store, path)
    assert (report.format, [s.turns for s in report.sessions]) == ("openai-agents", [2, 1])
    session = store.resume("user-1")
    entries = list(session.log.entries())
    assert [(e.body["tool"], e.body["input"]) for e in entries if e.kind == "action.requested"] == [
        ("weather", {"city": "Paris"})
    ]
    assert [e.body["output"] for e in entries if e.kind == "action.succeeded"] == ["sunny"]
    assert [m.text for m in session.messages() if m.role == "user"] == ["What is the weather?", "Thanks", "Really"]
    assert {e.happened_at for e in entries if e.kind == "turn.started"} == {1794823200_000000}
    assert kept(store, "user-1") == ITEMS
    assert store.resume(report.sessions[1].name).log.part("labels")["origin"] == "@5"


def test_a_second_import_adds_what_is_new(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    for size in range(1, len(ITEMS) + 1):
        add(path, "user-1", ITEMS[size - 1])
        assert import_transcript(store, path).new_records == 1
        assert import_transcript(store, path).new_records == 0
        assert kept(store, "user-1") == ITEMS[:size]


def test_an_item_that_is_no_json_is_told_and_stops_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    add(path, "user-1", ITEMS[0], "{not json", "[1]", ITEMS[3])
    report = import_transcript(store, path)
    assert report.broken_count == 2
    assert "item 2 is not JSON" in report.broken[0]
    assert [i for i in kept(store, "user-1") if isinstance(i, dict)] == [ITEMS[0], ITEMS[3]]


def test_a_session_of_something_else_is_left_alone(store: Store, tmp_path: Path) -> None:
    own = store.session("user-1")
    path = tmp_path / "agents.db"
    add(path, "user-1", ITEMS[0])
    [imported] = import_transcript(store, path).sessions
    assert imported.name != "user-1"
    assert own.head.seq == 1
