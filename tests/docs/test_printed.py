"""What the pages say that their code prints is what it prints: a `text` block right after a `python` block."""

import contextlib
import io
import sys
import types
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, read_blocks

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def _shown(page: Path) -> list[tuple[Block, str | None]]:
    """The python blocks of a page, each with what the page says it prints."""
    blocks = [block for block in read_blocks(page.read_text(encoding="utf-8")) if not block.no_run]
    found: list[tuple[Block, str | None]] = []
    for i, block in enumerate(blocks):
        if block.language == "python":
            # Two fences and a blank line lie between the last line of one and the first line of the other.
            place = block.line + block.text.count("\n") + 3
            shown = [each.text for each in blocks[i + 1 : i + 2] if each.language == "text" and each.line == place]
            found.append((block, shown[0] if shown else None))
    return found


WITH_OUTPUT = [page for page in PAGES if any(text is not None for _, text in _shown(page))]


@pytest.mark.parametrize("page", WITH_OUTPUT, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block, text in _shown(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True), module.__dict__)
        if text is not None:
            assert out.getvalue() == text, f"{page.name}:{block.line}"


def test_there_are_pages_with_output() -> None:
    assert WITH_OUTPUT
