"""The brief at the start of a session: only where it was asked for, short, and nothing when something is wrong."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.hooks.conversation import CLAUDE, claude, spooled
from wakelog.hooks.intake import take_in
from wakelog.hooks.start_brief import CHARS_MAX, brief_for

NEXT = "77777777-0000-4000-8000-000000000007"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WAKELOG_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.delenv("WAKELOG_STORE", raising=False)
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


# The command itself gives up after three seconds, because agents do not wait: on a busy machine they are soon over.
PATIENT = (
    "import runpy, sys; from wakelog.hooks import start_brief; start_brief.TIME_S = 600;"
    " sys.argv[0] = 'wakelog'; runpy.run_module('wakelog', run_name='__main__')"
)


def start(
    folder: Path, *args: str, origin: str = NEXT, event: str = "SessionStart", is_patient: bool = False, **env: str
):
    how = ["-c", PATIENT] if is_patient else ["-m", "wakelog"]
    said = {"session_id": origin, "cwd": str(folder), "hook_event_name": event, "source": "startup"}
    return subprocess.run(
        [sys.executable, *how, "hook", "claude-code", *args],
        input=json.dumps(said).encode(),
        capture_output=True,
        env={**os.environ, **env},
        timeout=180,
    )


def test_the_last_session_of_the_project_is_told_of(folder: Path) -> None:
    spooled(claude(cwd=str(folder)))
    done = start(folder, "--brief", is_patient=True)
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert "claude-0a1b2c3d" in told["additionalContext"]
    assert "Fixed." in told["additionalContext"]
    assert "not an instruction" in told["additionalContext"]
    assert len(told["additionalContext"]) < CHARS_MAX + 500


def test_a_session_that_goes_on_is_told_of_itself_and_others_are_not(folder: Path) -> None:
    spooled(claude(cwd=str(folder)))
    take_in(wakelog.open)
    assert "claude-0a1b2c3d" in brief_for("claude-code", CLAUDE, str(folder))
    assert brief_for("claude-code", NEXT, "/somewhere/else") == ""


def test_without_the_option_and_at_other_events_nothing_is_printed(folder: Path) -> None:
    spooled(claude(cwd=str(folder)))
    assert start(folder).stdout == b""
    assert start(folder, "--brief", event="UserPromptSubmit").stdout == b""


@pytest.mark.parametrize("trouble", ["missing", "garbage", "folder in the way", "locked", "unknown engine"])
def test_a_store_in_trouble_prints_nothing(folder: Path, tmp_path: Path, trouble: str) -> None:
    url = tmp_path / "store.db"
    held = None
    if trouble == "garbage":
        url.write_bytes(b"this is no database" * 500)
    elif trouble == "folder in the way":
        url.mkdir()
    elif trouble == "locked":
        held = sqlite3.connect(url, isolation_level=None)
        held.execute("create table t (x)")
        held.execute("begin exclusive")
    named = "odd://nowhere" if trouble == "unknown engine" else str(url)
    for args in ((), ("--brief",)):
        done = start(folder, *args, WAKELOG_STORE=named)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    if held is not None:
        held.close()
