"""The pages are true: their code runs, prints what they show, and their links lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, broken_links, run_page

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "changes" / "README.md"]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_code_of_the_page_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in run_page(page, tmp_path, monkeypatch):
        where = f"{page.name}:{each.line}, to write it anew: python -m tests.docs.pages {_name(page)}"
        assert each.is_true, f"{where}\n{each.printed}"


@pytest.mark.parametrize("page", LINKED, ids=_name)
def test_links_of_the_page_resolve(page: Path) -> None:
    assert broken_links(page) == []
