"""The code of the how-to page runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors
from agents.models.multi_provider import MultiProvider

from tests.adapters.openai_agents.fake_model import ScriptedModel, asks, says
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = ScriptedModel([asks("weather", city="Paris")], [says("It is sunny.")])
    monkeypatch.setattr(MultiProvider, "get_model", lambda self, name: model)
    set_trace_processors([])
    names: dict[str, Any] = run_first_block("openai-agents.md")
    set_trace_processors([])
    assert names["result"].final_output == "It is sunny."
    session = names["session"].session
    assert [e.body["effect"] for e in session.log.entries() if e.kind == "action.requested"] == ["read"]
    assert session.log.part("turn")["status"] == "completed"
    names["session"].close()
