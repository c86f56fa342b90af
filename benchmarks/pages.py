"""Puts a run's tables into the page that explains them, between two markers; the text around them stays."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "performance.md"
BEGIN = "<!-- generated: bench -->"
END = "<!-- end -->"


def write(text: str, page: Path = PAGE) -> None:
    """Replaces what stands between the markers."""
    old = page.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page.name} has no generated section: it needs {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
