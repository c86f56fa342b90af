"""The real agents, offline, with a sub-agent: both sessions are in the log, linked and ended, as an import has them."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.hooks.mock_models import MADE, TASK, mock_models
from tests.hooks.real_agents import PROMPT, Machine, prompted, resumed
from tests.hooks.test_killed_agents import GATED, kill_in_call
from wakelog.hooks.intake import take_in
from wakelog.session import Session

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path: Path):
    with mock_models(delegates=True) as model:
        yield Machine(tmp_path, model.url)


def told(session: Session[Any], *kinds: str) -> list[dict[str, Any]]:
    return [session.log.value(e, e.body) for e in session.log.entries() if e.kind in kinds]


def gist(session: Session[Any]) -> dict[str, Any]:
    """What an import tells too."""
    calls = told(session, "action.recorded", "action.requested")
    return {
        "calls": [(call["action"], call["tool"], call.get("outcome", "")) for call in calls],
        "turns": [turn.get("outcome", "completed") for turn in told(session, "turn.ended")],
        "tasks": [body["task"] for body in told(session, "subagent.spawned")],
        "ends": [body["outcome"] for body in told(session, "subagent.returned")],
    }


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_sub_agent_is_recorded_beside_its_parent(machine: Machine, agent: str, monkeypatch) -> None:
    machine.run(*prompted(agent, machine.set_up(agent), PROMPT))
    assert (machine.project / "made.txt").exists()
    monkeypatch.setenv("WAKELOG_DATA", str(machine.data))
    monkeypatch.setenv("HOME", str(machine.home))
    assert take_in(wakelog.open, into=str(machine.data / "store")).troubles == []
    machine.wakelog("--store", str(machine.data / "imported"), "import", "--yes")
    with wakelog.open(machine.data / "store") as store, wakelog.open(machine.data / "imported") as other:
        sessions = {bool(s.log.entry(1).body.get("spawner")): s for s in map(store.resume, _names(store))}
        parent, child = sessions[False], sessions[True]
        assert str(child.log.entry(1).body["spawner"]).partition("@")[0] == parent.id
        assert [body["session"] for body in told(parent, "subagent.spawned")] == [child.id]
        assert [body["outcome"] for body in told(parent, "subagent.returned")] == ["succeeded"]
        assert (parent.status, child.status) == ("closed", "closed")
        assert child.messages()[0].text == TASK
        assert MADE in str(told(child, "action.recorded"))
        assert [(Path(b["path"]).name, b["change"]) for b in told(child, "file.changed")] == [("made.txt", "created")]
        assert told(parent, "file.changed") == []
        assert parent.verify().ok
        assert child.verify().ok
        for session in (parent, child):
            imported = gist(other.resume(session.name))
            if agent == "gemini" and session is parent:
                imported["turns"] = ["completed"]  # its file does not say, so an import waits until it is quiet
            assert gist(session) == imported
        before = [session.head.seq for session in (parent, child)]
    machine.wakelog("--store", str(machine.data / "store"), "import", "--yes")
    with wakelog.open(machine.data / "store") as store:
        assert [store.resume(session.name).head.seq for session in (parent, child)] == before


def _names(store: wakelog.Store) -> list[str]:
    return [info.name for info in store.sessions()]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_sub_agent_that_was_killed_with_its_agent_is_interrupted_when_that_comes_back(
    tmp_path: Path, agent: str
) -> None:
    with mock_models(GATED, delegates=True) as model:
        machine = Machine(tmp_path, model.url)
        os.mkfifo(machine.project / "gate")
        found = machine.set_up(agent)
        kill_in_call(machine, prompted(agent, found, PROMPT))
        machine.wakelog("ls")
        with wakelog.open(machine.data / "store") as store:
            sessions = {bool(s.log.entry(1).body.get("spawner")): s for s in map(store.resume, _names(store))}
            parent, child = sessions[False].name, sessions[True].name
            assert [each["status"] for each in sessions[False].log.part("subagents").values()] == ["running"]
            assert child_state(sessions[True]) == ("active", "open")
        command = machine.wakelog("resume", parent, "--print").partition(" && ")[2]
        machine.run(*resumed(agent, found, shlex.split(command), "go on"))
        machine.wakelog("ls")
    with wakelog.open(machine.data / "store") as store:
        assert child_state(store.resume(child)) == ("closed", "interrupted")
        told_last = store.resume(parent).log.part("subagents")
        assert told_last[store.resume(child).id]["status"] in ("interrupted", "cancelled")
        assert "running" not in {each["status"] for each in told_last.values()}
        assert {store.resume(name).status for name in _names(store)} == {"closed"}
        assert all(store.resume(name).verify().ok for name in _names(store))


def child_state(child: Session[Any]) -> tuple[str, str]:
    return child.status, str(child.log.part("turn")["status"])
