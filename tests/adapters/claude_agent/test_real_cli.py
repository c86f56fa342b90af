"""The SDK's own bundled program, offline: a turn with a call against a model on loopback, resumed from our store."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from claude_agent_sdk import project_key_for_directory as project_key_for

import wakelog
from tests.hooks.mock_models import COMMAND, DONE, mock_models
from wakelog.adapters.claude_agent import WakelogSessionStore, hooks
from wakelog.store import Store

PROMPT = "please make the file"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    with mock_models() as model:
        for name in list(os.environ):
            if name.startswith(("CLAUDE", "ANTHROPIC")):
                monkeypatch.delenv(name)
        for name, value in {
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-mock-nothing",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }.items():
            monkeypatch.setenv(name, value)
        yield folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def ask(project: Path, sessions: WakelogSessionStore, prompt: str, **more: Any) -> ResultMessage:
    options = ClaudeAgentOptions(
        cwd=project, session_store=sessions, allowed_tools=["Bash"], model="claude-sonnet-4-5", **more
    )

    async def run() -> ResultMessage:
        return [m async for m in query(prompt=prompt, options=options) if isinstance(m, ResultMessage)][-1]

    return asyncio.run(asyncio.wait_for(run(), 180))


def test_a_turn_is_recorded_and_resumed_from_the_store_alone(project: Path, store: Store) -> None:
    sessions = WakelogSessionStore(store)
    result = ask(project, sessions, PROMPT)
    assert result.result == DONE
    key = {"project_key": project_key_for(project), "session_id": result.session_id}
    session = sessions.session(key)
    kinds = [e.kind for e in session.log.entries()]
    assert kinds.count("turn.started") == 1
    assert kinds.count("turn.ended") == 1
    [asked] = [e.body for e in session.log.entries() if e.body.get("tool") == "Bash"]
    assert asked["input"]["command"] == COMMAND
    texts = [m.text for m in session.messages()]
    assert PROMPT in texts
    assert DONE in texts
    assert store.cost(session.id).total.tokens_in >= 20
    assert session.verify().ok

    loaded = asyncio.run(sessions.load(key))
    assert loaded
    shutil.rmtree(Path(os.environ["HOME"]) / ".claude")
    again = ask(project, WakelogSessionStore(store), "and once more", resume=result.session_id)
    assert again.session_id == result.session_id
    grown = asyncio.run(sessions.load(key))
    assert grown is not None
    assert grown[: len(loaded)] == loaded
    uuids = [entry["uuid"] for entry in grown if "uuid" in entry]
    assert len(uuids) == len(set(uuids))
    assert store.resume(session.id).head.turn == 2


def test_hooks_record_a_call_before_it_runs_and_the_transcript_settles_it(project: Path, store: Store) -> None:
    sessions = WakelogSessionStore(store)
    result = ask(project, sessions, PROMPT, hooks=hooks(sessions), session_store_flush="eager")
    session = sessions.session({"project_key": project_key_for(project), "session_id": result.session_id})
    about = [e for e in session.log.entries() if e.body.get("action") == "toolu_mock1"]
    assert [e.kind for e in about] == ["action.requested", "action.started", "action.succeeded"]
    assert session.log.part("pending_actions") == {}
    assert session.verify().ok


def test_hooks_alone_record_turns_and_calls(project: Path, store: Store) -> None:
    session = store.session("alone")
    options = ClaudeAgentOptions(cwd=project, allowed_tools=["Bash"], model="claude-sonnet-4-5", hooks=hooks(session))

    async def run() -> None:
        async for _ in query(prompt=PROMPT, options=options):
            pass

    asyncio.run(asyncio.wait_for(run(), 180))
    kinds = [e.kind for e in session.log.entries()]
    assert kinds[1:] == [
        *("turn.started", "action.requested", "action.started", "action.succeeded", "message.added", "turn.ended")
    ]
