"""Budgets on the terminal and as JSON: what was spent, of what, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wakelog.cli.context import Context
from wakelog.cli.render.sessions import plain_budget
from wakelog.cli.render.table import Cell, Column, lay_out
from wakelog.model.values import Value
from wakelog.monitors.budgets import Use, show, uses

_COLORS = {1: "yellow", 2: "red"}
_COLUMNS = (
    Column("budget"),
    Column("spent", right=True),
    Column("limit", right=True),
    Column("left", right=True),
    Column("", right=True),
)


def budget_lines(ctx: Context, budget: Value) -> Iterator[str]:
    """A line for each unit, spent or limited."""
    told = [use for use in uses(budget) if use.limit is not None or use.spent]
    rows = [
        (
            use.unit,
            show(use.unit, use.spent),
            "none" if use.limit is None else show(use.unit, use.limit),
            "" if use.left is None else show(use.unit, use.left),
            Cell("" if use.percent is None else f"{use.percent} %", _style(use)),
        )
        for use in told
    ]
    if rows:
        yield from lay_out(ctx, _COLUMNS, rows)
    else:
        yield "nothing is limited, and nothing was spent"


def _style(use: Use) -> dict[str, Any]:
    return {"fg": _COLORS[use.level]} if use.level in _COLORS else {}


def plain_uses(budget: Value) -> dict[str, Any]:
    """As JSON: the budget, how much of each limit is spent, and which are reached."""
    found = uses(budget)
    return {
        "budget": plain_budget(budget),
        "percent": {use.unit: use.percent for use in found},
        "reached": [use.unit for use in found if use.is_reached],
    }
