"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.command_line import command
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_the_state_of_the_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_first_block("crewai.md")
    name = f"crewai/{names['flow'].flow_id}"
    assert name[:20] in command("ls", "--store", "agents")
    assert "/data/rows" in command("diff", f"{name}@1", "--store", "agents")
