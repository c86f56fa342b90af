"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.types.a2a_pb2 import AgentCard

from tests.adapters.pages import run_first_block
from wakelog.adapters.a2a import WakelogTaskStore


class Silent(AgentExecutor):  # type: ignore[misc]  # Any where it is not installed
    """An agent that is never asked."""

    async def execute(self, *args: object) -> None: ...

    async def cancel(self, *args: object) -> None: ...


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_first_block("a2a.md", executor=Silent(), card=AgentCard(name="clerk"))
    assert isinstance(names["handler"].task_store, WakelogTaskStore)
    names["tasks"].store.close()
