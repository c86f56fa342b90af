"""The real agents, offline: each makes a turn with a call against a model on loopback, and is found in the log.

They are not part of what is installed for tests. `WAKELOG_CLAUDE`, `WAKELOG_CODEX` and `WAKELOG_GEMINI` name the
programs; without one its test is skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.hooks.mock_models import COMMAND, DONE, mock_models
from wakelog.hooks.intake import take_in

pytestmark = pytest.mark.slow
TIMEOUT_S = 180
PROMPT = "please make the file"


def program(name: str) -> str:
    found = os.environ.get(f"WAKELOG_{name.upper()}", "")
    if not found:
        pytest.skip(f"WAKELOG_{name.upper()} does not name the real program")
    return found


class Machine:
    """A home of its own, where an agent is enabled and runs."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.project, self.data = folder / "home", folder / "project", folder / "data"
        self.url = url
        self.home.mkdir()
        self.project.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "WAKELOG_DATA": str(self.data),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-mock-nothing",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_API_KEY": "mock-nothing",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def wakelog(self, *args: str) -> str:
        return self.run(sys.executable, "-m", "wakelog", *args)

    def spooled(self) -> list[dict[str, Any]]:
        lines = [line for path in (self.data / "spool").glob("*.log") for line in path.read_text().splitlines()]
        return [json.loads(line.split(" ", 6)[6]) for line in lines if line]


@pytest.fixture
def machine(tmp_path: Path):
    with mock_models() as url:
        yield Machine(tmp_path, url)


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
    assert not (machine.project / ".wakelog").exists()
    return [e.kind for e in entries]


def test_claude_code_is_recorded(machine: Machine) -> None:
    claude = program("claude")
    machine.wakelog("enable", "claude-code", "--yes")
    machine.run(claude, "-p", PROMPT, "--allowedTools", "Bash", "--model", "claude-sonnet-4-5")
    kinds = check(machine, "claude", {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"})
    assert kinds.count("turn.started") == 1
    assert "records.imported" in kinds
    assert kinds.index("file.changed") < kinds.index("turn.ended")
    assert kinds[-1] == "session.closed"
    machine.wakelog("disable", "--all", "--yes")
    assert not (machine.home / ".claude" / "settings.json").exists()


def test_codex_is_recorded(machine: Machine) -> None:
    codex = program("codex")
    (machine.home / ".codex").mkdir()
    config = machine.home / ".codex" / "config.toml"
    config.write_text(
        'model = "mock"\nmodel_provider = "mock"\n\n[model_providers.mock]\nname = "mock"\n'
        f'base_url = "{machine.url}/v1"\nwire_api = "responses"\n'
    )
    machine.wakelog("enable", "codex", "--yes")
    machine.run(
        codex,
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        PROMPT,
    )
    kinds = check(machine, "codex", {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"})
    assert kinds.count("turn.started") == 1


def test_gemini_is_recorded(machine: Machine) -> None:
    gemini = program("gemini")
    folder = machine.home / ".gemini"
    folder.mkdir()
    (folder / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    machine.wakelog("enable", "gemini", "--yes")
    machine.run(gemini, "--yolo", "-p", PROMPT)
    kinds = check(machine, "gemini", {"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"})
    assert kinds.count("turn.started") == 1
