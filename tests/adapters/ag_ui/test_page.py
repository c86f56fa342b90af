"""The code of the how-to page runs, and leaves what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.pages import run_first_block


def test_the_page_runs_and_records_what_it_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_first_block("ag-ui.md")
    assert "RUN_FINISHED" in capsys.readouterr().out
    said = [message.text for message in names["store"].resume("ag-ui-fix-auth").messages()]
    assert said == ["users are logged out", "It was the timeout."]
    names["store"].close()
