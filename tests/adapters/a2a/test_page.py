"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

import wakelog
from tests.adapters.pages import run_first_block


def test_the_page_runs_and_leaves_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_first_block("a2a.md")["tasks"].store.close()
    with wakelog.open("agents") as store:
        [head] = store.sessions()
        assert head.name.startswith("a2a/")
        assert [message.text for message in store.resume(head.session).messages()] == ["What is the weather?"]
