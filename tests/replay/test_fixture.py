"""A session as a pytest fixture: run by pytest without network, and failing when the agent does something else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli, cli, plain_terminal

__all__ = ["cli", "plain_terminal"]

# The project whose agent is recorded. Its tools reach for the network, which the tests below do not have.
AGENT = """
import socket
import wakelog

def fetch_page(url):
    socket.create_connection(("198.51.100.7", 80), timeout=0.1)

@wakelog.tool(effect="read")
def fetch(url: str) -> str:
    try:
        fetch_page(url)
    except OSError:
        pass
    return f"page of {url}"

@wakelog.tool
def send(to: str, body: str) -> str:
    fetch_page("smtp")
    return "sent"

def model(messages, model="opus"):
    raise RuntimeError("no network")

def run(session, text):
    with session.turn(user=text) as turn:
        page = fetch("https://example.org/" + text)
        turn.data["last"] = page
        session.fact("page", page)
        return page
"""
# Loaded by pytest in the child: any attempt to connect fails the run, whoever swallows the error.
GUARD = """
import socket
import pytest

reached = []

def refuse(*args, **kwargs):
    reached.append(args)
    raise OSError("no network here")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if reached:
        session.exitstatus = 99
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent that was recorded in two turns."""
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "guard.py").write_text(GUARD)
    (folder / "record.py").write_text(
        "import wakelog, agent\n"
        "agent.fetch_page = lambda url: None\n"
        "with wakelog.open('store') as store:\n"
        "    session = store.session('fix auth', data={'last': ''})\n"
        "    [agent.run(session, text) for text in ('one', 'two', 'three')]\n"
    )
    subprocess.run([sys.executable, "record.py"], cwd=folder, check=True, timeout=180, env=_env(folder))
    monkeypatch.chdir(folder)
    return folder


def _env(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WAKELOG_", "PYTEST_"))}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return {**kept, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]), "HOME": str(folder)}


def _pytest(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "guard",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            *args,
        ],
        cwd=folder,
        env=_env(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_exported_test_passes_without_store_and_network(cli: Cli, project: Path) -> None:
    done = cli(
        *("--store", "store", "export", "fix auth@2..@3", "--format", "pytest"),
        *("--agent", "agent:run", "-o", "tests/test_fix_auth.py"),
    )
    assert done.code == 0, done.err
    assert done.lines[0] == "Wrote a test of fix auth@2..@3 to tests/test_fix_auth.py  (2 steps)"
    test = (project / "tests/test_fix_auth.py").read_text()
    assert len(test.splitlines()) < 30
    assert "from agent import run" in test
    assert "#   @2 'two': fetch" in test
    assert "wakelog export 'fix auth@2..@3' --format pytest --agent agent:run -o tests/test_fix_auth.py --force" in test
    (project / "store").rename(project / "elsewhere")
    ran = _pytest(project, "tests/test_fix_auth.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    assert not (project / "store").exists()


def test_the_guard_of_these_tests_does_catch_a_connection(project: Path) -> None:
    (project / "tests/test_live.py").write_text("import agent\ndef test_it():\n    agent.fetch('x')\n")
    assert _pytest(project, "tests/test_live.py").returncode == 99


# What is changed in the agent, and what the test then says.
CHANGES = (
    ('"https://example.org/" + text', '"https://example.com/" + text', "The argument url differs."),
    ("        return page\n", "        send('ada', page)\n", "but the recording has nothing more in this turn."),
    ("page = fetch(", "page = str(", "did not call fetch(url='https://example.org/two')"),
    ('session.fact("page", page)', 'session.fact("page", page + "!")', "/facts/page"),
    ('turn.data["last"] = page', "pass", "/data/last"),
)


def test_it_fails_when_the_agent_does_something_else(cli: Cli, project: Path) -> None:
    for number, (old, new, _) in enumerate(CHANGES):
        assert AGENT.count(old) == 1
        (project / f"agent{number}.py").write_text(AGENT.replace(old, new))
        agent = ("--agent", f"agent{number}:run", "-o", f"tests/test_agent{number}.py")
        assert cli("--store", "store", "export", "fix auth@2..@3", "--format", "pytest", *agent).code == 0
    ran = _pytest(project, "tests")
    assert ran.returncode == 1, ran.stdout
    assert f"{len(CHANGES)} failed" in ran.stdout
    parts = re.split(r"^_+ test_fix_auth_does_what_it_did _+$", ran.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == len(CHANGES)
    for (_, _, told), part in zip(CHANGES, parts, strict=True):
        assert told in part


def test_without_an_agent_it_says_where_to_fill_it_in(cli: Cli, project: Path) -> None:
    assert cli("--store", "store", "export", "fix auth@1", "-f", "pytest", "-o", "tests/test_it.py").code == 0
    ran = _pytest(project, "tests/test_it.py")
    assert ran.returncode == 1
    assert "there is no module:function" in ran.stdout
    test = project / "tests/test_it.py"
    test.write_text(test.read_text().replace('"module:function"', '"agent:run"'))
    assert _pytest(project, "tests/test_it.py").returncode == 0


def test_neither_file_is_replaced_unasked(cli: Cli, project: Path) -> None:
    arguments = ("--store", "store", "export", "fix auth@1", "-f", "pytest", "-o", "tests/test_it.py")
    assert cli(*arguments).code == 0
    again = cli(*arguments)
    assert (again.code, "file-exists" in again.err) == (6, True)
    assert cli(*arguments, "--force").code == 0
    for wrong in (("-o", "tests/it.txt"), (), ("-o", "t.py", "--agent", "os.system('x'):y")):
        assert cli("--store", "store", "export", "fix auth@1", "-f", "pytest", *wrong).code == 2


def test_the_bundle_ends_where_the_test_does_and_holds_no_secret(cli: Cli, project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with wakelog.open("store") as store:
        session = store.resume("fix auth")
        session.fact("token", secret)
        with session.turn(user="four"):
            session.fact("after", "the end")
    arguments = ("-f", "pytest", "-o", "tests/test_it.py")
    done = cli("--store", "store", "export", "fix auth@1", *arguments, "--json")
    assert done.data["bundle"] == "tests/test_it.wakelog"
    assert b"the end" not in Path("tests/test_it.wakelog").read_bytes()
    assert cli("--store", "store", "export", "fix auth@4", *arguments, "--force").code == 0
    whole = Path("tests/test_it.wakelog").read_bytes()
    assert b"the end" in whole
    assert secret.encode() not in whole
    session = wakelog.recorded("tests/test_it.wakelog")
    assert session.verify().ok
    assert session.name == "fix auth"


def test_a_fork_is_exported_with_what_it_inherited(cli: Cli, project: Path) -> None:
    with wakelog.open("store") as store:
        child = store.resume("fix auth").fork("@2", name="child")
        child.fact("more", 1)
    for turn in ("@1", "@2"):
        target = f"tests/test_child{turn[1:]}.py"
        asked = ("export", f"child{turn}", "-f", "pytest", "--agent", "agent:run", "-o", target)
        assert cli("--store", "store", *asked).code == 0
        assert _pytest(project, target).returncode == 0


def test_a_missing_recording_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(wakelog.NotFoundError) as caught:
        wakelog.recorded(tmp_path / "no.wakelog")
    assert caught.value.kind == "recording-not-found"
