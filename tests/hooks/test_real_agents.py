"""The real agents, offline: each makes a turn with a call against a model on loopback, and is found in the log."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.hooks.mock_models import COMMAND, DONE, mock_models
from tests.hooks.real_agents import PROMPT, Machine, prompted
from wakelog.hooks.intake import take_in

pytestmark = pytest.mark.slow
SHELLS = {"goose": "shell", "kimi": "Bash"}
"""How agents name their shell."""


@pytest.fixture
def machine(tmp_path: Path):
    with mock_models() as model:
        yield Machine(tmp_path, model.url)


def check(machine: Machine, short: str, events: set[str]) -> list[str]:
    """What every agent must leave; the kinds of events in its session."""
    assert (machine.project / "made.txt").read_text() == "made-by-the-agent\n"
    heard = {record["hook_event_name"] for record in machine.spooled()}
    assert events <= heard, heard
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAKELOG_DATA", str(machine.data))
        patch.setenv("HOME", str(machine.home))
        report = take_in(wakelog.open, into=str(machine.data / "store"))
    assert report.troubles == []
    [name] = [each for each in report.sessions if each.startswith(f"{short}-")]
    with wakelog.open(machine.data / "store") as store:
        session = store.resume(name)
        assert session.verify().ok
        entries = list(session.log.entries())
        text = json.dumps([session.log.value(e, e.body) for e in entries], default=str)
        assert COMMAND in text
        assert DONE in text
        assert PROMPT in text
        assert "sk-mock-nothing" not in text
        changed = [e.body for e in entries if e.kind == "file.changed"]
        assert [(Path(b["path"]).name, b["change"]) for b in changed] == [("made.txt", "created")]
        assert [e.body.get("outcome", "completed") for e in entries if e.kind == "turn.ended"] == ["completed"]
    assert not (machine.project / ".wakelog").exists()
    return [e.kind for e in entries]


def test_claude_code_is_recorded(machine: Machine) -> None:
    claude = machine.set_up("claude")
    machine.run(*prompted("claude", claude, PROMPT))
    kinds = check(machine, "claude", {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"})
    assert kinds.count("turn.started") == 1
    assert "records.imported" in kinds
    assert kinds.index("file.changed") < kinds.index("turn.ended")
    assert kinds[-1] == "session.closed"
    machine.wakelog("disable", "--all", "--yes")
    assert not (machine.home / ".claude" / "settings.json").exists()


def test_codex_is_recorded(machine: Machine) -> None:
    codex = machine.set_up("codex")
    machine.run(*prompted("codex", codex, PROMPT))
    kinds = check(machine, "codex", {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"})
    assert kinds.count("turn.started") == 1
    assert "records.imported" in kinds
    assert kinds.index("file.changed") < kinds.index("turn.ended")


def test_gemini_is_recorded(machine: Machine) -> None:
    gemini = machine.set_up("gemini")
    machine.run(*prompted("gemini", gemini, PROMPT))
    kinds = check(machine, "gemini", {"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"})
    assert kinds.count("turn.started") == 1
    assert "records.imported" in kinds
    assert kinds[-2:] == ["turn.ended", "session.closed"]


@pytest.mark.parametrize("agent", ["opencode", "pi", "goose", "kimi"])
def test_what_an_agent_without_hooks_wrote_is_imported_and_grows(machine: Machine, agent: str) -> None:
    found = machine.set_up(agent)
    for count, prompt in enumerate((PROMPT, "now the second thing"), 1):
        machine.run(*prompted(agent, found, prompt))
        machine.wakelog("import", "--yes")
        [row] = json.loads(machine.wakelog("ls", "--json"))["data"]
        assert row["turns"] == count
    with wakelog.open(machine.data / "store") as store:
        session = store.resume(row["name"])
        assert session.verify().ok
        log = session.log
        told = [(e.kind, log.value(e, e.body)) for e in log.entries()]
    assert [body["input"].strip('"') for kind, body in told if kind == "turn.started"] == [
        PROMPT,
        "now the second thing",
    ]
    calls = [body for kind, body in told if kind == "action.recorded" and body.get("effect") != "model"]
    assert [(body["tool"], body["input"]["command"]) for body in calls] == [(SHELLS.get(agent, "bash"), COMMAND)]
    ends = [body.get("outcome", "completed") for kind, body in told if kind == "turn.ended"]
    assert ends == ["completed", "completed"]
