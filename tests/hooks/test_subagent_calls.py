"""Calls of a sub-agent that works in the background: the turns of its parent end while they run. And questions to a
person, which wait longer than a turn, too."""

import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.hooks.test_subagents import CHILD, Claude, told
from tests.importers.claude import NAME
from wakelog.hooks.shell_files import files_around
from wakelog.importers.transcript_import import import_transcript

MAKE = {"tool_name": "Bash", "tool_input": {"command": "make count > count.txt"}}


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    made = Claude(tmp_path)
    made.starts()
    return made


def says(agent: Claude, event: str, **fields: Any) -> None:
    """A hook around the sub-agent's call, with the record of the files that our own adds."""
    about = {**MAKE, "agent_id": "a1", "agent_type": "general-purpose", "cwd": str(agent.path.parent), **fields}
    agent.says(event, **about)
    if event != "PermissionRequest":
        seen = json.loads(files_around(json.dumps({**about, "hook_event_name": event}).encode()))
        agent.says(seen.pop("hook_event_name"), **{k: v for k, v in seen.items() if k != "session_id"})


@pytest.mark.parametrize("is_taken_meanwhile", [False, True])
def test_what_it_changes_is_recorded_though_a_turn_of_its_parent_ended(agent: Claude, is_taken_meanwhile: bool) -> None:
    says(agent, "PreToolUse", tool_use_id="t2")
    agent.Stop()
    if is_taken_meanwhile:
        agent.take()
    (agent.path.parent / "count.txt").write_text("42\n")
    says(agent, "PostToolUse", tool_use_id="t2", tool_response={"stdout": ""})
    agent.SubagentStop()
    agent.take()
    with wakelog.open(agent.url) as store:
        changes = told(store.resume(CHILD), "file.changed")
    assert [(Path(c["path"]).name, c["change"], c["action"]) for c in changes] == [("count.txt", "created", "t2")]


@pytest.mark.parametrize(("is_run", "answer"), [(True, ("allow", "user")), (False, ("deny", ""))])
def test_a_question_about_it_is_answered_by_what_becomes_of_it(
    agent: Claude, is_run: bool, answer: tuple[str, str]
) -> None:
    says(agent, "PreToolUse", tool_use_id="t2")
    says(agent, "PermissionRequest")
    agent.Stop()
    agent.take()
    with wakelog.open(agent.url) as store:
        assert told(store.resume(NAME), "input.answered") == []
    if is_run:
        says(agent, "PostToolUse", tool_use_id="t2", tool_response={"stdout": ""})
    agent.SubagentStop()
    agent.take()
    with wakelog.open(agent.url) as store:
        answers = told(store.resume(NAME), "input.answered")
    assert [(a["answer"], a.get("by", "")) for a in answers] == [answer]


def test_a_question_of_the_main_agent_leaves_its_open(agent: Claude) -> None:
    says(agent, "PreToolUse", tool_use_id="t2")
    says(agent, "PermissionRequest")
    agent.says("PreToolUse", tool_use_id="t9", **MAKE)
    agent.says("PermissionRequest", **MAKE)
    agent.says("PostToolUse", tool_use_id="t9", tool_response={"stdout": ""}, **MAKE)
    agent.take()
    with wakelog.open(agent.url) as store:
        session = store.resume(NAME)
        assert [a["answer"] for a in told(session, "input.answered")] == ["allow"]
        assert len(told(session, "input.requested")) == 2


def test_a_question_that_the_log_has_is_not_given_up_with_the_turn(agent: Claude) -> None:
    agent.says("PreToolUse", tool_use_id="t9", **MAKE)
    agent.says("PermissionRequest", **MAKE)
    agent.take()
    agent.says("PostToolUse", tool_use_id="t9", tool_response={"stdout": ""}, **MAKE)
    agent.Stop()
    agent.take()
    with wakelog.open(agent.url) as store:
        session = store.resume(NAME)
        assert [(a["answer"], a.get("by")) for a in told(session, "input.answered")] == [("allow", "user")]
        assert told(session, "action.abandoned") == []
        assert session.log.part("turn")["status"] == "completed"


def test_a_question_that_nobody_answered_ends_with_its_session_when_that_is_idle(agent: Claude) -> None:
    agent.says("PermissionRequest", **MAKE)
    agent.take()
    with wakelog.open(agent.url, clock=lambda: agent.at_us + 365 * 86400 * 1_000_000) as store:
        import_transcript(store, agent.path)
        session = store.resume(NAME)
        assert session.log.part("pending_actions") == {}
        assert session.status == "closed"
