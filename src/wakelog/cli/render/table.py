"""Tables whose rows never wrap: columns shrink, then are dropped, until a row fits the terminal.

Columns are written as the heading of their table, `"session 16 | > age | > turns -3 | about 12 -1"`: `>` aligns a
column to the right, 16 is its minimum width (without one it is never cut; `24~` cuts in the middle, for paths, whose
end says most), and columns with -1, -2, -3 can be dropped, the highest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.text import fit, inert_line, pad, width

GAP = 2
PIPED_MAX = 60
"""How wide a column gets in a pipe; longer cells stick out."""


class Column(msgspec.Struct, frozen=True):
    """One column. `least` is its minimum width (0: never cut); `drop` ranks the columns that can be dropped."""

    title: str = ""
    least: int = 0
    drop: int = 0
    right: bool = False
    cut: Literal["end", "middle"] = "end"


_COLUMN = re.compile(r"(?P<right>>)? ?(?P<title>.*?) ?(?:(?P<least>\d+)(?P<middle>~)?)? ?(?:-(?P<drop>\d+))?")


def columns_of(heading: str) -> tuple[Column, ...]:
    """The columns of a heading, as the docstring of this file says."""
    results = [_COLUMN.fullmatch(part.strip()) for part in heading.split("|")]
    return tuple(
        Column(
            m["title"], int(m["least"] or 0), int(m["drop"] or 0), bool(m["right"]), "middle" if m["middle"] else "end"
        )
        for m in results
        if m is not None
    )


class Cell(msgspec.Struct, frozen=True):
    """A text with a style. It is made inert when it is shown."""

    text: str
    style: dict[str, Any] = {}


Row = Sequence[Cell | str]


def say_table(
    ctx: CommandContext, heading: str | Sequence[Column], rows: Sequence[Row], *, titles: bool = True, none: str = ""
) -> None:
    """Prints the table; the sentence `none` if there is no row."""
    ctx.say_all([none] if none and not rows else lay_out(ctx, heading, rows, titles=titles))


def lay_out(
    ctx: CommandContext, heading: str | Sequence[Column], rows: Sequence[Row], *, titles: bool = True, limit: int = 0
) -> Iterator[str]:
    """The lines of a table, cut to the terminal. In a pipe nothing is cut or dropped."""
    columns = columns_of(heading) if isinstance(heading, str) else heading
    cells = [[Cell(c) if isinstance(c, str) else c for c in row] for row in rows]
    natural = [max((width(inert_line(row[i].text)) for row in cells), default=0) for i in range(len(columns))]
    shown = [i for i in range(len(columns)) if natural[i]]
    if titles:
        natural = [max(n, len(c.title)) for n, c in zip(natural, columns, strict=True)]
    if ctx.is_piped:
        cells = [[Cell(inert_line(cell.text), cell.style) for cell in row] for row in cells]
        widths = {i: min(natural[i], PIPED_MAX) for i in shown}
    else:
        widths = _fit_widths(columns, natural, shown, limit or ctx.columns)
    if titles:
        names = (_align(Cell(columns[i].title, {"dim": True}), columns[i], widths[i], ctx) for i in widths)
        yield (" " * GAP).join(names).rstrip()
    for row in cells:
        yield (" " * GAP).join(_align(row[i], columns[i], widths[i], ctx) for i in widths).rstrip()


def _fit_widths(columns: Sequence[Column], natural: list[int], shown: list[int], limit: int) -> dict[int, int]:
    """Column → width. Shrinks the widest columns to their minimum, then drops columns, then cuts the widest anyway."""
    widths = {i: natural[i] for i in shown}
    while True:
        over = sum(widths.values()) + GAP * (len(widths) - 1) - limit
        if over <= 0:
            return widths
        soft = [i for i in widths if columns[i].least and widths[i] > columns[i].least]
        if soft:
            widths[max(soft, key=lambda i: widths[i])] -= 1
            continue
        droppable = [i for i in widths if columns[i].drop]
        if droppable:
            del widths[max(droppable, key=lambda i: columns[i].drop)]
            # There is room again, so start over from the natural widths.
            widths = {i: natural[i] for i in widths}
            continue
        widest = max(widths, key=lambda i: widths[i])
        widths[widest] = max(1, widths[widest] - over)
        if widths[widest] == 1:
            return widths


def _align(cell: Cell, column: Column, columns: int, ctx: CommandContext) -> str:
    if ctx.is_piped and width(cell.text) > columns:
        text = cell.text
    elif not column.right:
        text = pad(cell.text, columns, middle=column.cut == "middle")
    else:
        cut = fit(cell.text, columns)
        text = " " * (columns - width(cut)) + cut
    if not cell.style or not text.strip():
        return text
    bare = text.strip(" ")
    return text.replace(bare, ctx.style(bare, **cell.style), 1)
