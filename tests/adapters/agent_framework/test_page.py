"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.agent_framework.test_history import ScriptedClient
from tests.adapters.command_line import command
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_turns_and_a_workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_first_block("agent-framework.md", client=ScriptedClient(["It is sunny."]))
    names["history"].store.close()
    assert "What is the weather?" in command("log", "agent-framework/s1", "--store", "agents")
    assert "superstep 1" in command("show", "agent-framework-workflow/orders", "--store", "agents")
