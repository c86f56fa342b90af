"""`wakelog import` of a framework's database, where that framework is not installed."""

import importlib.util
import sqlite3
from pathlib import Path

import pytest

from tests.adapters.command_line import command
from wakelog.adapters.takeovers import FRAMEWORKS, takeover_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("langgraph") is not None, reason="LangGraph is here")


def test_nobody_takes_over_for_a_framework_that_is_missing() -> None:
    assert [takeover_of(name) for name in (*FRAMEWORKS, "codex-rollout")] == [None] * 3


def test_a_database_on_a_server_is_refused_with_what_to_install(tmp_path: Path) -> None:
    said = command("import", "postgresql://me:secret@127.0.0.1:1/db", "--store", str(tmp_path / "store"), code=6)
    assert "neither LangGraph nor Google ADK is here" in said
    assert "pip install 'wakelog[langgraph]'" in said
    assert "secret" not in said


def test_an_import_for_reading_says_how_to_go_on(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "adk.db")
    columns = "app_name, user_id, id, state, create_time, update_time"
    db.execute(f"CREATE TABLE sessions ({columns})")
    db.execute("CREATE TABLE events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)")
    db.execute("CREATE TABLE app_states (app_name, state)")
    db.execute("CREATE TABLE user_states (app_name, user_id, state)")
    db.execute("INSERT INTO sessions VALUES ('shop', 'ann', 's1', '{\"n\": 1}', 1, 1)")
    db.commit()
    db.close()
    said = command("import", str(tmp_path / "adk.db"), "--store", str(tmp_path / "store"))
    assert "for reading" in said
    assert "pip install 'wakelog[adk]'" in said
