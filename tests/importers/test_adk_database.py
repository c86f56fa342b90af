"""Databases of Google ADK, in all schemas: each session with its turns, calls, costs and state."""

import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any

from tests.importers.read_back import bring_in, memory

EVENTS: list[dict[str, Any]] = [
    {"author": "user", "content": {"role": "user", "parts": [{"text": "What is the weather?"}]}},
    {
        "author": "clerk",
        "content": {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"function_call": {"id": "c1", "name": "weather", "args": {"city": "Bern"}}},
                {"function_call": {"id": "c2", "name": "fail", "args": {}}},
            ],
        },
        "model_version": "gemini-2.5-flash",
        "usage_metadata": {"prompt_token_count": 100, "candidates_token_count": 10},
    },
    {
        "author": "clerk",
        "content": {
            "role": "user",
            "parts": [
                {"function_response": {"id": "c1", "name": "weather", "response": {"sky": "blue"}}},
                {"function_response": {"id": "c2", "name": "fail", "response": {"error": "it broke"}}},
            ],
        },
        "actions": {"state_delta": {"city": "Bern", "user:home": ["Bern"]}},
    },
    {"author": "clerk", "content": {"role": "model", "parts": [{"text": "It is blue."}]}, "model_version": "m"},
]


def database(path: Path, *, schema: str = "v1") -> Path:
    """A database as ADK writes it, with one session of four events."""
    with sqlite3.connect(path) as db:
        for table in ("app_states", "user_states"):
            db.execute(f"CREATE TABLE {table} (app_name TEXT, user_id TEXT, state TEXT, update_time)")
        db.execute("CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT, state TEXT, create_time, update_time)")
        state = json.dumps({"city": "Bern", "began": 1})
        db.execute("INSERT INTO sessions VALUES ('shop', 'ann', 's1', ?, 1, 2)", (state,))
        db.execute("INSERT INTO sessions VALUES ('shop', 'bob', 's1', '{}', 3, 3)")
        own = "event_data TEXT" if schema != "v0" else "author TEXT, content TEXT, usage_metadata TEXT, actions BLOB"
        known = "id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, timestamp"
        db.execute(f"CREATE TABLE events ({known}, {own})")
        for number in range(len(EVENTS)):
            add(db, number, schema)
    return path


def add(db: sqlite3.Connection, number: int, schema: str = "v1") -> None:
    event = EVENTS[number % len(EVENTS)]
    at: Any = f"2026-01-02 03:04:{number:02}.500000" if schema == "v1" else 1_767_323_040.5 + number
    known = (f"e{number}", "shop", "ann", "s1", f"inv-{number // len(EVENTS)}", at)
    if schema != "v0":
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", (*known, json.dumps(event)))
        return
    columns = (event["author"], json.dumps(event["content"]), json.dumps(event.get("usage_metadata")))
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*known, *columns, pickle.dumps({})))


def test_a_session_has_its_turn_calls_costs_and_state(tmp_path: Path) -> None:
    for schema in ("v1", "sqlite"):
        store = memory()
        report, _ = bring_in(store, database(tmp_path / f"{schema}.db", schema=schema))
        assert report.format == "adk"
        assert [s.name for s in report.sessions] == ["adk-shop-ann-s1", "adk-shop-bob-s1"]
        session = store.resume("adk-shop-ann-s1")
        state = session.state()
        assert (state.turn.number, state.turn.status) == (1, "completed")
        assert {name: (use.calls, use.errors) for name, use in state.tools_used.items()} == {
            "model": (2, 0),
            "weather": (1, 0),
            "fail": (1, 1),
        }
        assert state.data == {"city": "Bern", "user:home": ["Bern"], "began": 1}
        assert state.labels["adk.user"] == "ann"
        assert session.messages()[0].text == "What is the weather?"
        assert session.messages()[-1].text == "It is blue."
        assert store.cost("adk-shop-ann-s1").total.tokens_in == 100


def test_a_second_import_adds_what_is_new(tmp_path: Path) -> None:
    store, path = memory(), database(tmp_path / "adk.db")
    assert bring_in(store, path)[0].new_records == 6
    assert bring_in(store, path)[0].new_records == 0
    with sqlite3.connect(path) as db:
        for number in range(4, 8):
            add(db, number)
    assert bring_in(store, path)[0].new_records == 4
    assert store.resume("adk-shop-ann-s1").state().turn.number == 2


def test_a_pickle_of_the_old_schema_is_not_read_and_that_is_noted(tmp_path: Path) -> None:
    store = memory()
    bring_in(store, database(tmp_path / "old.db", schema="v0"))
    session = store.resume("adk-shop-ann-s1")
    gaps = [e.body["missed"] for e in session.log.entries() if e.kind == "gap.noted"]
    assert gaps == ["the actions of this event, a pickle that is not read"] * 4
    assert session.state().tools_used["weather"].calls == 1


def test_an_event_that_is_no_json_is_kept_and_named(tmp_path: Path) -> None:
    path = database(tmp_path / "adk.db")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE events SET event_data = '{broken' WHERE id = 'e1'")
    report, _ = bring_in(memory(), path)
    assert report.broken == ("event e1 is not an object",)
