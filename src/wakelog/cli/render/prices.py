"""The price table on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.cli.context import Context
from wakelog.cli.render.table import Cell, Column, lay_out
from wakelog.monitors.prices import AMOUNTS, Price, Prices

_COLUMNS = (
    Column("provider"),
    Column("model", least=12),
    Column("in", right=True),
    Column("out", right=True),
    Column("cache read", right=True, drop=3),
    Column("cache write", right=True, drop=4),
    Column("for 1 h", right=True, drop=6),
    Column("reasoning", right=True, drop=5),
    Column("holds", drop=2),
    Column("from", drop=1),
)


def price_lines(ctx: Context, table: Prices) -> Iterator[str]:
    """The table, and how to add to it."""
    yield f"built-in prices are as of {table.as_of}: {table.source}; check them and put your own into prices.toml"
    yield "dollars for a million tokens:"
    yield from lay_out(ctx, _COLUMNS, [_cells(price) for price in table.rows])
    yield ctx.style("where cache or reasoning have no price, they cost what input and output do", dim=True)
    yield f"a model that is not listed has no known price; to add or change one, edit {table.file}:"
    for line in ("[[price]]", 'provider = "openai"', 'models = ["…"]', 'input = "…"', 'output = "…"'):
        yield f"  {line}"
    yield ctx.style(
        '  also cache_read, cache_write, cache_write_1h, reasoning; from and until = "2026-11-15"', dim=True
    )


def _cells(price: Price) -> tuple[Cell | str, ...]:
    amounts = (_amount(price, kind) for kind in ("input", "output", "cache_read", "cache_write", "cache_write_1h"))
    origin = price.origin if price.origin == "built-in" else Path(price.origin).name
    return (
        price.provider,
        Cell(price.model, {"fg": "cyan"}),
        *amounts,
        _amount(price, "reasoning"),
        _holds(price),
        origin,
    )


def _amount(price: Price, kind: str) -> str:
    return f"{price.amounts[kind]:f}" if kind in price.amounts else ""


def _holds(price: Price) -> str:
    return " ".join(filter(None, (price.since and f"from {price.since}", price.until and f"until {price.until}")))


def plain_prices(table: Prices) -> dict[str, Any]:
    """As JSON; amounts are texts, so that they stay exact."""
    return {
        "as_of": table.as_of,
        "source": table.source,
        "file": table.file,
        "prices": [
            {
                "provider": price.provider,
                "model": price.model,
                **{kind: _amount(price, kind) or None for kind in AMOUNTS},
                "from": price.since or None,
                "until": price.until or None,
                "origin": price.origin,
            }
            for price in table.rows
        ],
    }
