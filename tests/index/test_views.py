"""The page about the views is true: every view and column is on it, in order, and its statements run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import read_blocks
from wakelog.engines.memory import MemoryEngine
from wakelog.index import Index, facets, sql

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "views.md").read_text(encoding="utf-8")


@pytest.fixture
def index() -> Index:
    return Index(MemoryEngine(), None)


def described() -> dict[str, list[str]]:
    """The columns that the page has for each view."""
    sections = re.split(r"^## `(\w+)`$", PAGE, flags=re.MULTILINE)[1:]
    return {
        view: re.findall(r"^\| `(\w+)` \| \S.* \|$", text, flags=re.MULTILINE)
        for view, text in zip(sections[::2], sections[1::2], strict=True)
    }


def test_every_view_and_column_is_described(index: Index) -> None:
    stored = {view: list(index.query_sql(f"select * from {view}").columns) for view in sql.VIEWS}
    assert described() == stored


def test_there_is_no_view_that_cannot_be_asked(index: Index) -> None:
    with index._database.reading() as db:
        named = db.execute("select name from sqlite_schema where type = 'view'").fetchall()
    assert {name for (name,) in named} == set(sql.VIEWS)


def test_the_statements_on_the_page_run(index: Index) -> None:
    blocks = [block for block in read_blocks(PAGE) if block.language == "sql"]
    assert len(blocks) >= 3
    for block in blocks:
        index.query_sql(block.text)


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    page = " ".join(PAGE.split())  # wherever its lines end
    assert f"{sql.ROWS_MAX:,} rows" in page
    assert f"{sql.VALUE_MAX >> 10} KB" in page
    assert f"{sql.RESULT_MAX >> 20} MB of rows" in page
    assert f"{sql.MEMORY_MAX >> 20} MB of memory" in page
    assert f"{facets.TEXT_MAX:,} characters" in page
    assert f"up to {facets.SUMMARY_MAX}" in page
    assert f"{facets.VALUE_MAX:,} bytes" in page
