"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.adk.fake_model import ScriptedLlm, says
from tests.adapters.command_line import command
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fake = ScriptedLlm.of(says("It left on Monday."))
    names = run_first_block("google-adk.md", instead={'"gemini-2.5-flash"': "fake"}, fake=fake)
    names["sessions"].store.close()
    assert "Where is my order?" in command("log", "adk/shop/ann/s1", "--store", "agents")
    assert "1.1k tokens" in command("diff", "adk/shop/ann/s1@1", "--store", "agents")
