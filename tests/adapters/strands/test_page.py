"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.command_line import command
from tests.adapters.pages import run_first_block
from tests.adapters.strands.test_repository import ScriptedModel


def test_the_page_runs_and_leaves_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_first_block("strands.md", model=ScriptedModel("It is sunny."))
    assert "What is the weather?" in command("log", "strands/s1/clerk", "--store", "agents")
    assert "100" in command("cost", "strands/s1", "--store", "agents")
