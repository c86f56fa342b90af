"""Whole programs: the example, one that ends by itself, and one that forks."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from wakelog.store import Store

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "instrumented.py"


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "WAKELOG_"))}
    env |= {"WAKELOG_STORE": str(folder / "store"), "PYTHONPATH": str(EXAMPLE.parent)}
    return subprocess.run(
        [sys.executable, *command], env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=True
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as opened:
        yield opened


def test_the_example_is_recorded_and_its_session_ends_with_it(tmp_path: Path, store: Store) -> None:
    ran = run(tmp_path, str(EXAMPLE))
    assert (ran.stdout, ran.stderr) == ("Yes, it rains.\n", "")
    (head,) = store.sessions()
    session = store.resume(head.session)
    assert session.name.startswith("instrumented-")
    assert session.status == "closed"
    assert [m.role for m in session.messages()] == ["system", "user", "assistant", "assistant"]
    assert sorted(session.state().tools_used) == ["get_weather", "gpt-4.1-mini"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_was_forked_has_a_session_of_its_own(tmp_path: Path, store: Store) -> None:
    script = """
import os, sys
import openai, wakelog, instrumented
wakelog.instrument("openai")
with instrumented.stand_in() as url:
    client = openai.OpenAI(api_key="none", base_url=url)
    def ask(question): client.chat.completions.create(
        model="gpt-4.1", messages=[{"role": "user", "content": question}, {"role": "tool", "content": ""}])
    ask("before")
    child = os.fork()
    if child == 0:
        ask("in the child")
        wakelog.uninstrument()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    ask("in the parent")
"""
    run(tmp_path, "-W", "ignore", "-c", script)
    said = [store.resume(head.session).messages() for head in store.sessions()]
    asked = sorted([m.text for m in messages if m.role == "user"] for messages in said)
    assert asked == [["before", "in the parent"], ["in the child"]]
