"""`wakelog query`: read-only SQL over the documented views."""

from __future__ import annotations

import sys
from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.table import GAP, Cell, Column, say_table
from wakelog.cli.render.values import plain_value, scalar, text_of
from wakelog.cli.text import fit, pad
from wakelog.index.results import Table
from wakelog.index.sql import ROWS_MAX, VIEWS

_NARROW = 8
"""With less room than this for each column, a table tells nothing."""


@click.command("query")
@click.argument("sql", required=False, default="")
@click.option("--views", "views", is_flag=True, help="The views there are, and their columns.")
@click.option("-n", "limit", type=click.IntRange(1, ROWS_MAX), default=1000, show_default=True, help="Rows at most.")
@click.option(
    "--timeout", "timeout_s", type=float, default=2.0, show_default=True, metavar="S", help="Seconds at most."
)
@common
def query_command(ctx: Context, sql: str, views: bool, limit: int, timeout_s: float) -> None:
    """Runs one SELECT over the views (`wakelog query --views`); `-` reads it from stdin.

    Sessions, turns, events, files, decisions, facts, tools, errors and messages, of the whole store. It can read
    nothing else and change nothing.

    \b
    Examples:
      wakelog query "select kind, count(*) from events group by kind"
    """
    if views:
        _answer_views(ctx)
        return
    if sql == "-":
        sql = sys.stdin.read()
    if not sql:
        raise click.UsageError('query needs a statement, as in: wakelog query "select name, turns from sessions"')
    table = ctx.store.index.query_sql(sql, max_rows=limit, timeout_s=timeout_s)
    if table.truncated:
        ctx.warn(f"only the first {len(table.rows):,} rows are shown; -n allows more, up to {ROWS_MAX:,}")
    if ctx.ndjson:
        for row in table.rows:
            ctx.record("query", {"row": dict(zip(table.columns, map(plain_value, row), strict=True))})
        return
    data = {
        "columns": list(table.columns),
        "rows": [[plain_value(v) for v in row] for row in table.rows],
        "truncated": table.truncated,
    }
    ctx.answer("query", data, lambda: _show(ctx, table))


def _show(ctx: Context, table: Table) -> None:
    if not table.rows:
        ctx.say("no rows")
        return
    if len(table.columns) * (_NARROW + GAP) > ctx.columns:
        _show_upright(ctx, table)
        return
    columns = [
        Column(fit(name, 40), least=min(6, len(name)), right=_is_numeric(table, i))
        for i, name in enumerate(table.columns)
    ]
    say_table(ctx, columns, [[Cell(_text(value)) for value in row] for row in table.rows])


def _show_upright(ctx: Context, table: Table) -> None:
    """Too many columns for a line: a block for each row, a line for each column that holds something."""
    names = [pad(name, 16) for name in table.columns]
    for number, row in enumerate(table.rows, 1):
        ctx.say(ctx.style(f"row {number}", bold=True))
        for name, value in zip(names, row, strict=True):
            if value is not None and value != "":
                ctx.say(f"  {ctx.style(name, dim=True)}  {fit(_text(value), ctx.columns - 20)}")


def _is_numeric(table: Table, column: int) -> bool:
    return all(isinstance(row[column], int | float | None) for row in table.rows)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return text_of(value)[:2000] if isinstance(value, str | bytes) else scalar(value, 60)


def _answer_views(ctx: Context) -> None:
    columns = {view: list(ctx.store.index.query_sql(f"select * from {view} limit 0").columns) for view in VIEWS}
    data = [{"view": view, "columns": names} for view, names in columns.items()]

    def human() -> None:
        for view, names in columns.items():
            ctx.say(ctx.style(view, bold=True))
            line = "   "
            for name in names:
                if len(line) + len(name) + 2 > ctx.columns:
                    ctx.say(line)
                    line = "   "
                line += f" {name}"
            ctx.say(line)

    ctx.answer("query", data, human)
