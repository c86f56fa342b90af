"""The parts of the pages that follow from the code are what the code says now."""

import functools
from pathlib import Path

import pytest

from docs.generate import DOCS, outputs, rows_without_sentence, written

made = functools.cache(outputs)


@pytest.mark.parametrize("path", written(), ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_generated_parts_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == made()[path], "run: .venv/bin/python docs/generate.py"


@pytest.mark.parametrize("path", written(), ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_every_row_has_its_sentence(path: Path) -> None:
    missing = rows_without_sentence(made()[path])
    assert not missing, f"write what these mean in the last column of their row: {missing}"


def test_every_file_that_is_made_is_compared() -> None:
    assert [*made()] == written()
