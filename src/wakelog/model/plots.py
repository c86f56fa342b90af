"""Bar charts as SVG, without scripts. Labels are escaped."""

from __future__ import annotations

from collections.abc import Sequence

from wakelog.model.html import text

ROWS_MAX = 60
_BLUE = "#2b6cb0"


def bars(title: str, rows: Sequence[tuple[str, int]]) -> str:
    """Draws a bar for each row, from top to bottom: the first ROWS_MAX rows, and the number of others."""
    shown = rows[:ROWS_MAX]
    most = max((number for _, number in shown), default=0) or 1
    out = [_head(720, 22 * len(shown) + 40 + 20 * (len(rows) > len(shown)), title)]
    for at, (label, number) in enumerate(shown):
        y = 30 + 22 * at
        wide = 360 * number / most
        out.append(f'<text x="230" y="{y + 13}" text-anchor="end">{text(label, 34)}</text>')
        out.append(f'<rect x="240" y="{y}" width="{wide:.1f}" height="17" fill="{_BLUE}"/>')
        out.append(f'<text x="{246 + wide:.1f}" y="{y + 13}">{number:,}</text>')
    if len(rows) > len(shown):
        out.append(f'<text x="240" y="{44 + 22 * len(shown)}">and {len(rows) - len(shown):,} more</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def columns(title: str, rows: Sequence[tuple[str, int]]) -> str:
    """Draws a column for each row, from left to right, for histograms."""
    most = max((number for _, number in rows), default=0) or 1
    out = [_head(max(240, 44 * len(rows) + 30), 210, title)]
    for at, (label, number) in enumerate(rows):
        x, high = 20 + 44 * at, 130 * number / most
        out.append(f'<rect x="{x}" y="{170 - high:.1f}" width="36" height="{high:.1f}" fill="{_BLUE}"/>')
        out.append(f'<text x="{x + 18}" y="{165 - high:.1f}" text-anchor="middle">{number:,}</text>')
        out.append(f'<text x="{x + 18}" y="188" text-anchor="middle" font-size="10">{text(label, 12)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _head(width: int, height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"'
        f' font-size="12" role="img" aria-label="{text(title)}">\n'
        f'<text x="10" y="18" font-weight="bold">{text(title)}</text>'
    )
