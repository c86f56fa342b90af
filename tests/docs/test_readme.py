"""The README is true: its code runs and its links lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, broken_links, run_page

README = ROOT / "README.md"


def test_readme_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(README, tmp_path, monkeypatch)


def test_readme_links_resolve() -> None:
    assert broken_links(README) == []
