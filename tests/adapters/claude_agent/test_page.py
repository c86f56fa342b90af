"""The code of the how-to page runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.claude_agent.test_real_cli import project as project
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_two_turns(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    names: dict[str, Any] = run_first_block("claude-agent-sdk.md")
    store = names["sessions"].store
    [head] = list(store.sessions())
    assert head.name.endswith(names["first"])
    assert head.turn == 2
    names["sessions"].close()
