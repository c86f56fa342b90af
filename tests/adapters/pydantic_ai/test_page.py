"""The code of the how-to page runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.pages import run_first_block

pytest.importorskip("pydantic_ai.conversation_store", reason="Pydantic AI has conversation stores since 2.66")


def test_the_page_runs_and_leaves_two_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = run_first_block("pydantic-ai.md")
    assert "success" in capsys.readouterr().out
    assert names["conversations"].session("user-123").head.turn == 2
    names["conversations"].close()
