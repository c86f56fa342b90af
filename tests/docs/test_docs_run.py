"""The pages are true: their code runs, prints what they show, and their links lead somewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.command_server import commands
from tests.docs.pages import ROOT, SCRIPTS, broken_links, has_code, has_commands, run_page
from tests.every import every

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INSTALLED = {ROOT / "README.md", *(ROOT / "docs" / "tutorial").glob("*.md")}
"""Pages whose commands are the installed script, started afresh each time: what a reader meets first."""
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "changes" / "README.md"]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with commands(tmp_path_factory.mktemp("commands")) as folder:
        yield folder


@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=_name)
def test_code_of_the_page_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    uses_loaded = page not in INSTALLED and has_commands(page)
    where_commands_are = request.getfixturevalue("loaded") if uses_loaded else SCRIPTS
    for each in run_page(page, tmp_path, monkeypatch, where_commands_are):
        where = f"{page.name}:{each.line}, to write it anew: python -m tests.docs.pages {_name(page)}"
        assert each.is_true, f"{where}\n{each.printed}"


@every("page", LINKED, ids=_name)
def test_links_of_the_page_resolve(page: Path) -> None:
    assert broken_links(page) == []
