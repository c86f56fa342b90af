"""Puts a run's tables and plots into the page that explains them, between two markers; the text around them stays."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "performance.md"
PLOTS = PAGE.with_name("performance")
BEGIN = "<!-- generated: bench -->"
END = "<!-- end -->"


def with_plots(text: str, plots: dict[str, str]) -> str:
    """The plots by file name and title, above the first table that is drawn in them."""
    if not plots:
        return text
    shown = "\n\n".join(f"![{title}]({PLOTS.name}/{name})" for name, title in plots.items())
    before, mark, after = text.partition("### Appending")
    return f"{before}### Growth\n\n{shown}\n\n{mark}{after}" if mark else f"{text}\n\n{shown}"


def write(text: str, page: Path = PAGE) -> None:
    """Replaces what stands between the markers."""
    old = page.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page.name} has no generated section: it needs {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
