"""The real agents, killed in the middle of a call: what is known of the call is in the log, and the agent goes on."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.hooks.mock_models import DONE, MockModel, mock_models
from tests.hooks.real_agents import PROMPT, TIMEOUT_S, Machine, prompted, resumed

pytestmark = pytest.mark.slow
GATED = "if [ -e killed.txt ]; then echo again > made.txt; else echo x > started.txt; cat gate; fi"
"""Waits at a gate until the agent was killed; after that it does its work."""
AGENTS = ("claude", "codex", "gemini")


@pytest.fixture
def model() -> Iterator[MockModel]:
    with mock_models(GATED) as model:
        yield model


@pytest.fixture
def machine(tmp_path: Path, model: MockModel) -> Machine:
    machine = Machine(tmp_path, model.url)
    os.mkfifo(machine.project / "gate")
    return machine


def kill_in_call(machine: Machine, command: list[str]) -> None:
    """Starts an agent, waits until its call runs, kills it, and lets the call's own process end."""
    started = machine.project / "started.txt"
    with (machine.project.parent / "said.txt").open("w") as said:
        agent = subprocess.Popen(
            command,
            cwd=machine.project,
            env=machine.env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    end = time.monotonic() + TIMEOUT_S
    while not started.exists():
        assert agent.poll() is None, (machine.project.parent / "said.txt").read_text()[-3000:]
        assert time.monotonic() < end
        time.sleep(0.05)
    os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()
    (machine.project / "killed.txt").touch()
    gate = os.open(machine.project / "gate", os.O_RDWR)
    os.close(gate)


def take_in(machine: Machine) -> str:
    """Imports what is there; the one session's name."""
    machine.wakelog("import", "--yes")
    [row] = json.loads(machine.wakelog("ls", "--json"))["data"]
    return str(row["name"])


def events(machine: Machine, name: str) -> list[tuple[str, dict[str, Any]]]:
    with wakelog.open(machine.data / "store") as store:
        log = store.resume(name).log
        return [(e.kind, log.value(e, e.body)) for e in log.entries()]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_was_killed_in_a_call_goes_on_with_its_session(agent: str, machine: Machine) -> None:
    program = machine.set_up(agent)
    kill_in_call(machine, prompted(agent, program, PROMPT))
    name = take_in(machine)
    assert "completed" not in machine.wakelog("show", name).splitlines()[1]
    line = machine.wakelog("resume", name, "--print")
    folder, _, command = line.partition(" && ")
    assert folder == f"cd {machine.project}"
    said = machine.run(*resumed(agent, program, shlex.split(command), "go on"))
    assert DONE in said
    assert take_in(machine) == name
    log = events(machine, name)
    assert [body["input"].strip() for kind, body in log if kind == "turn.started"] == [PROMPT, "go on"]
    ends = [body.get("outcome", "completed") for kind, body in log if kind == "turn.ended"]
    assert ends == ["interrupted", "completed"]
    cut = [kind for kind, _ in log if kind in ("action.abandoned", "action.uncertain", "action.failed")]
    assert len(cut) == 1, [kind for kind, _ in log]
    machine.wakelog("verify", name)


def test_an_exported_file_goes_on_in_claude_code(machine: Machine, model: MockModel) -> None:
    program = machine.set_up("claude")
    (machine.project / "killed.txt").touch()  # the call does its work at once
    machine.run(*prompted("claude", program, PROMPT))
    name = take_in(machine)
    out = machine.project.parent / "exported.jsonl"
    machine.wakelog("export", name, "--format", "claude-code", "-o", str(out))
    id = json.loads(out.read_text().splitlines()[1])["sessionId"]
    [original] = (machine.home / ".claude" / "projects").glob("*/*.jsonl")
    assert id != original.stem
    out.rename(original.with_name(f"{id}.jsonl"))
    original.unlink()
    model.asked.clear()
    assert DONE in machine.run(program, "--resume", id, "-p", "go on", "--model", "claude-sonnet-4-5")
    sent = json.dumps([asked.get("messages") for asked in model.asked])
    assert PROMPT in sent
    assert "killed.txt" in sent  # the call
    assert "go on" in sent
