"""`wakelog record`: a command runs as it would, and its model calls are in the store."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.instruments.apis import ANSWER, APIS, QUESTION
from tests.runtime.providers import Provider, provider
from wakelog.cli.commands.record import program_of

# What most clients do, without one: a base URL out of the environment, and a request to it.
ASK = """
import json, os, sys, urllib.request
base = os.environ["OPENAI_BASE_URL"]
body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "What is the weather in Bern?"}]}
request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer key"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""


@pytest.fixture
def remote() -> Iterator[Provider]:
    with provider() as told:
        yield told


class Shell:
    """Runs `wakelog record` as a person would."""

    def __init__(self, folder: Path, remote: Provider) -> None:
        self.store = folder / "store"
        self.env = {**os.environ, "OPENAI_BASE_URL": f"{remote.url}/v1", "ANTHROPIC_BASE_URL": remote.url}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "wakelog", "--store", str(self.store), "record", *args]

    def record(self, *args: str, **how: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*args), env=self.env, capture_output=True, text=True, timeout=120, check=False, **how
        )


@pytest.fixture
def shell(tmp_path: Path, remote: Provider) -> Shell:
    return Shell(tmp_path, remote)


def test_a_command_runs_as_it_would_and_its_calls_are_recorded(shell: Shell, remote: Provider, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(ASK + "print(sys.stdin.read(), end=''); sys.exit(3)\n")
    remote.plays.append(APIS["chat"].says(ANSWER))
    ran = shell.record("--", sys.executable, str(script), input="from stdin\n")
    assert ran.returncode == 3
    assert ran.stdout == f"{ANSWER}\nfrom stdin\n"
    with wakelog.open(shell.store) as store:
        (head,) = store.sessions()
        session = store.resume(head.session)
        assert head.name.startswith("agent-")
        assert [(m.role, m.text) for m in session.messages()] == [("user", QUESTION), ("assistant", ANSWER)]
        assert session.status == "closed"
        assert not any("Bearer key" in repr(entry.body) for entry in session.events())
    (line,) = ran.stderr.splitlines()
    assert line.endswith(f"look at it with: wakelog --store {shell.store} log {head.name}")


def test_the_real_clients_find_the_recorder_by_themselves(shell: Shell, remote: Provider) -> None:
    script = """
import anthropic, openai
ask = [{"role": "user", "content": "What is the weather in Bern?"}]
given = {"messages": ask, "stream": True}
for part in openai.OpenAI(api_key="none").chat.completions.create(model="gpt-4.1", **given): pass
with anthropic.Anthropic(api_key="none").messages.stream(model="claude-test", max_tokens=9, messages=ask) as stream:
    print(stream.get_final_text())
"""
    remote.plays += [APIS["chat"].streams(ANSWER), APIS["messages"].streams(ANSWER)]
    ran = shell.record("-q", "--name", "both", "--", sys.executable, "-c", script)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{ANSWER}\n", "")
    with wakelog.open(shell.store) as store:
        (head,) = store.sessions()
        called = [e.body["tool"] for e in store.resume(head.session).events(kind="action.requested")]
    assert called == ["gpt-4.1", "claude-test"]


def test_a_command_without_model_calls_leaves_no_store(shell: Shell) -> None:
    ran = shell.record("--", sys.executable, "-c", "import os; print(os.environ['WAKELOG_INSTRUMENT'])")
    assert (ran.returncode, ran.stdout) == (0, "0\n")
    assert "no model call was seen" in ran.stderr
    assert not shell.store.exists()


def test_calls_are_recorded_into_a_session_that_stays_open(shell: Shell, remote: Provider) -> None:
    with wakelog.open(shell.store) as store:
        store.session("mine")
    remote.plays += [APIS["chat"].says("1"), APIS["chat"].says("2")]
    for _ in range(2):
        assert shell.record("--into", "mine", "--", sys.executable, "-c", ASK).returncode == 0
    with wakelog.open(shell.store) as store:
        session = store.resume("mine")
        assert session.status == "active"
        assert [m.text for m in session.messages()] == [QUESTION, "1", QUESTION, "2"]
        assert len(list(session.events(kind="turn.ended"))) == 2


def test_files_that_the_command_changes_are_recorded_on_request(shell: Shell, remote: Provider, tmp_path: Path) -> None:
    chat = APIS["chat"]
    remote.plays += [chat.says(call=True), chat.says(ANSWER)]
    script = """
import json, os, pathlib, urllib.request
def ask(*messages):
    body = json.dumps({"model": "gpt-4.1", "messages": messages}).encode()
    return json.load(urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body))
question = {"role": "user", "content": "write it down"}
call = ask(question)["choices"][0]["message"]
pathlib.Path("weather.txt").write_text("12 degrees")
ask(question, call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "done"})
"""
    project = tmp_path / "project"
    project.mkdir()
    ran = shell.record("-q", "--files", "--", sys.executable, "-c", script, cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "")
    with wakelog.open(shell.store) as store:
        (head,) = store.sessions()
        (file,) = store.resume(head.session).files.modified().files
    assert file.path == "weather.txt"


def test_signals_go_to_the_command_and_its_end_is_ours(shell: Shell) -> None:
    waits = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('on', flush=True); input()"
    )
    for script, code in ((waits, 7), ("print('on', flush=True); input()", -signal.SIGTERM)):
        process = subprocess.Popen(
            shell.command("-q", "--", sys.executable, "-c", script),
            env=shell.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == code
        process.communicate()


def test_a_command_that_is_not_there_is_named(shell: Shell) -> None:
    ran = shell.record("--", "no-such-command-anywhere")
    assert ran.returncode != 0
    assert "no-such-command-anywhere cannot be started" in ran.stderr
    assert shell.record("--env", "GROQ_BASE_URL", "--", "true").returncode != 0


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "agent.py"], "agent"),
        (["/usr/bin/python3.12", "-X", "dev", "tools/run me.py", "x"], "run-me"),
        (["uv", "run", "agent.py"], "agent"),
        (["env", "A=1", "npx", "-y", "@scope/cli"], "cli"),
        (["claude"], "claude"),
        (["python", "-"], "python"),
        (["python", "agent.py", "-c", "config"], "agent"),
        (["sh", "-c", "curl -H 'x-api-key: not-for-a-name' $URL"], "sh"),
        (["env", "A=1", "node", "-e", "fetch(address)"], "node"),
    ],
)
def test_a_session_is_named_after_what_people_think_of(command: list[str], name: str) -> None:
    assert program_of(command) == name
