"""`enable`, `disable`, `hook` and what `doctor` says of them, as a person runs them."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.hooks.conversation import CLAUDE, claude, spooled
from wakelog.cli.background_intake import background_intake
from wakelog.hooks import agents
from wakelog.hooks.spool import is_waiting

NAME = "claude-0a1b2c3d"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    """A machine of its own: home, data folder, and a project to stand in."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WAKELOG_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setattr(agents, "own_command", lambda: ("wakelog",))
    monkeypatch.setattr("wakelog.hooks.mcp_entries.own_command", lambda: ("wakelog",))
    monkeypatch.setattr("wakelog.cli.commands.enable.own_command", lambda: ("wakelog",))
    for agent in agents.AGENTS.values():
        monkeypatch.delenv(agent.home_variable, raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


def test_enable_shows_the_change_and_writes_it(cli: Cli, home: Path) -> None:
    done = cli("enable", "claude-code", "--yes")
    assert done.code == 0
    file = home / ".claude" / "settings.json"
    assert f"+++ {file}" in done.out
    assert '+    "SessionEnd": [{"hooks": [{"type": "command", "command": "wakelog hook claude-code"' in done.out
    assert json.loads(file.read_text())["hooks"].keys() == {*agents.AGENTS["claude-code"].events}
    assert cli("enable", "claude-code", "--yes").out == "Claude Code: already enabled.\n"
    done = cli("disable", "--all", "--yes")
    assert done.code == 0
    assert not list(home.iterdir())
    assert cli("disable", "claude-code", "--yes").code == 1


def test_nothing_is_written_without_consent(cli: Cli, home: Path) -> None:
    for how in ([], ["--json"], ["--no-input"]):
        refused = cli("enable", "claude-code", *how)
        assert refused.code == 2
        assert "--yes" in refused.err
    assert cli("enable", "claude-code", "--dry-run").out.endswith("Nothing was written.\n")
    assert not list(home.iterdir())


def test_programs_read_the_documented_fields(cli: Cli, home: Path) -> None:
    fields = {"agents", "files", "done", "next"}
    for command in (["enable", "codex", "--yes"], ["disable", "codex", "--yes"], ["enable", "codex", "--dry-run"]):
        done = cli(*command, "--json")
        assert done.json["schema"] == f"wakelog.{command[0]}/1"
        assert done.data.keys() == fields
        assert done.data["done"] is (command[-1] == "--yes")
        assert {key for file in done.data["files"] for key in file} == {"agent", "file", "diff"}
    spooled(claude()[:3])
    fields = {"records", "sessions", "waiting", "broken", "deleted", "troubles"}
    assert cli("hook", "--drain", "--json").data.keys() == fields


def test_codex_ends_with_the_advice_to_trust(cli: Cli, home: Path) -> None:
    done = cli("enable", "codex", "--mcp", "--yes")
    assert "/hooks" in done.lines[-1]
    assert "[mcp_servers.wakelog]" in (home / ".codex" / "config.toml").read_text()
    assert "--brief" not in (home / ".codex" / "hooks.json").read_text()


def test_an_unknown_agent_is_told_which_there_are(cli: Cli, home: Path) -> None:
    refused = cli("enable", "cursor")
    assert refused.code == 2
    assert "claude-code, codex, gemini" in refused.err


def test_project_settings_are_in_the_repository(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Path.cwd()
    (project / "below").mkdir()
    monkeypatch.chdir("below")
    assert cli("enable", "gemini", "--project", "--yes").code == 0
    assert (project / ".gemini" / "settings.json").is_file()
    assert not list(home.iterdir())


def test_the_next_command_takes_in_what_hooks_wrote(cli: Cli, home: Path) -> None:
    assert cli("ls").code == 3  # there is no store
    spooled(claude(cwd=os.getcwd()))
    assert NAME in cli("ls", "-A").out
    assert "fix the build" in cli("log", NAME).out
    assert not (Path.cwd() / ".wakelog").exists()
    assert (home.parent / "data" / "store" / "log.db").is_file()


def test_drain_says_what_became_of_the_spool(cli: Cli, home: Path) -> None:
    spooled(claude()[:3])
    done = cli("--store", "here", "hook", "--drain")
    assert done.out == f"3 records imported: {NAME}\n"
    assert cli("--store", "here", "show", NAME, "--json").code == 0
    assert cli("hook").code == 2


def test_a_long_command_takes_in_what_hooks_write_meanwhile(cli: Cli, home: Path) -> None:
    with background_intake(every_s=0.01):
        spooled(claude())
        end = time.monotonic() + 60
        while is_waiting() and time.monotonic() < end:
            time.sleep(0.01)
    assert not is_waiting()
    assert NAME in cli("ls", "-A").out


def test_a_store_that_cannot_be_opened_does_not_stop_a_command(cli: Cli, home: Path) -> None:
    spooled(claude()[:3])
    (home.parent / "data" / "store").write_text("in the way")
    cli("demo", "--store", "mine")
    done = cli("ls", "--store", "mine")
    assert done.code == 0
    assert "could not be imported yet" in done.err


def test_doctor_tells_how_each_agent_is_recorded(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)

    def said() -> dict[str, tuple[str, str]]:
        return {c["what"]: (c["level"], c["found"]) for c in cli("doctor", "--json").data}

    assert not {*agents.AGENTS, "spool", "gaps"} & said().keys()
    transcript = home / ".claude" / "projects" / "-w" / f"{CLAUDE}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}")
    assert said()["claude-code"] == ("ok", "not recorded by hooks; 1 transcript on this machine")
    cli("enable", "claude-code", "--yes")
    level, found = said()["claude-code"]
    assert level == "fail"  # no wakelog on the PATH
    program = home / "wakelog"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = {"PATH": str(home)}
    level, found = {c["what"]: (c["level"], c["found"]) for c in cli("doctor", "--json", env=path).data}["claude-code"]
    assert level == "warn"
    assert "never heard from" in found
    spooled(claude()[:2])
    level, found = {c["what"]: (c["level"], c["found"]) for c in cli("doctor", "--json", env=path).data}["claude-code"]
    assert level == "ok"
    assert "last heard" in found


def test_doctor_has_no_fix_for_what_is_in_order(cli: Cli, home: Path) -> None:
    transcript = home / ".claude" / "projects" / "-w" / f"{CLAUDE}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}")
    lines = cli("doctor").out.splitlines()
    [at] = [n for n, line in enumerate(lines) if line.startswith("ok    claude-code")]
    assert lines[at + 1].split() == ["next:", "wakelog", "enable", "claude-code"]


def test_doctor_without_a_store_names_the_one_that_hooks_make(cli: Cli, home: Path) -> None:
    own = str(home.parent / "data" / "store")
    [found] = [c for c in cli("doctor", "--json").data if c["what"] == "store"]
    assert (found["level"], own in found["found"]) == ("warn", True)
    [named] = [c for c in cli("doctor", "--store", "mine", "--json").data if c["what"] == "store"]
    assert "there is no store at mine" in named["found"]


def test_doctor_sees_hooks_that_are_switched_off(cli: Cli, home: Path) -> None:
    cli("enable", "claude-code", "--yes")
    local = Path.cwd() / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text('{"disableAllHooks": true}')
    [found] = [c for c in cli("doctor", "--json").data if c["what"] == "claude-code"]
    assert found["level"] == "warn"
    assert f"{local} switches all hooks off" in found["found"]


def test_doctor_tells_gaps(cli: Cli, home: Path) -> None:
    from wakelog.hooks import spool

    (home.parent / "data").mkdir()
    spool.prepare_gaps()
    spool.note_gap("codex", OSError(28, "full"))
    [gap] = [c for c in cli("doctor", "--json").data if c["what"] == "gaps"]
    assert gap["level"] == "warn"
    assert "1 record of hooks was lost" in gap["found"]
    assert "No space left" in gap["found"]
