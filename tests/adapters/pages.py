"""Runs the code of a framework's how-to page, which the tests of the docs cannot: there the framework is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, read_blocks


def run_first_block(page: str) -> dict[str, Any]:
    """The names that the first Python block of a page leaves."""
    markdown = Path(ROOT / "docs" / "how-to" / page).read_text("utf-8")
    block = next(block for block in read_blocks(markdown) if block.language == "python")
    names: dict[str, Any] = {}
    exec(compile(block.text, page, "exec"), names)
    return names
