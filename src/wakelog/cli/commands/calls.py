"""`wakelog calls`: the commit log of an agent, one row a call."""

from __future__ import annotations

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import limit_option, place_argument
from wakelog.cli.render.sessions import label
from wakelog.cli.render.table import Cell, say_table
from wakelog.cli.text import clock, count, duration, money, place_of_turn
from wakelog.model.calls import FAILURES
from wakelog.timeline.call_table import CallRow

MAX_ROWS = 100
_STYLES = {"succeeded": {}, "failed": {"fg": "red"}, "timed_out": {"fg": "red"}, "uncertain": {"fg": "yellow"}}
_WITH_EFFECTS = ("write", "external")


@click.command("calls")
@place_argument("where", "[SEL|RANGE]")
@click.option("--tool", "tools", multiple=True, metavar="T", help="List only calls of this tool (repeat).")
@click.option("--failed", is_flag=True, help="List only calls that failed or timed out.")
@click.option("--effects", is_flag=True, help="List only calls with effects outside the session.")
@click.option("--reverse", is_flag=True, help="Show the oldest first.")
@limit_option(MAX_ROWS)
@common
def calls_command(
    ctx: CommandContext, where: str, tools: tuple[str, ...], failed: bool, effects: bool, reverse: bool, limit: int
) -> None:
    """List the calls of a session, one row each, newest first: when, which tool, the hash of its input, its outcome,
    how long it took, what it cost, and which keys of the state it changed.

    Examples:
      wakelog calls fix-bug
      wakelog calls fix-bug@3..@5 --failed
      wakelog calls fix-bug --json
    """
    place = ctx.place(where)
    rows = [
        row
        for row in place.session.calls.table(place.text or None)
        if (not tools or row.tool in tools)
        and (not failed or row.outcome in FAILURES)
        and (not effects or row.effect in _WITH_EFFECTS)
    ]
    left = 0
    if limit and len(rows) > limit:
        left = len(rows) - limit
        rows = rows[:limit] if reverse else rows[-limit:]
    if not reverse:
        rows.reverse()
    none = f"{label(place.session)} has no{' such' if tools or failed or effects else ''} calls"
    ctx.answer("calls", rows, lambda: _show(ctx, rows, left, none))
    if rows:
        ctx.suggest(f"wakelog show {place.session.name or place.session.id}@e{rows[0].seq}")


def _show(ctx: CommandContext, rows: list[CallRow], left: int, none: str) -> None:
    say_table(ctx, _COLUMNS, [_cells(ctx, row) for row in rows], none=none)
    if left:
        ctx.say(f"… {left:,} more (-n 0 shows all)")


_COLUMNS = "event | time -2 | turn | tool 8 | about 12 -6 | input -4 | outcome | > took -3 | > cost -5 | delta 8 -1"


def _cells(ctx: CommandContext, row: CallRow) -> list[Cell | str]:
    dim = {} if row.in_view else {"dim": True}
    again = f" ×{row.tries}" if row.tries > 1 else ""
    return [
        Cell(f"e{row.seq}", dim),
        Cell(clock(row.at, utc=ctx.utc), dim),
        Cell(place_of_turn(row.turn, row.attempt), dim),
        Cell(row.tool or "?", dim),
        Cell(f"({row.gone})" if row.gone else row.about, dim),
        Cell(row.input_hash[:8], {"dim": True}),
        Cell(row.outcome + again, _STYLES.get(row.outcome, dim)),
        Cell(duration(row.duration_us) if row.duration_us else "", dim),
        Cell(_cost(row), dim),
        Cell(_delta(row), dim),
    ]


def _cost(row: CallRow) -> str:
    if row.usd_micros:
        return money(row.usd_micros)
    return f"{count(row.tokens)} tok" if row.tokens else ""


def _delta(row: CallRow) -> str:
    """The first key that the call changed, and how many more."""
    if not row.delta:
        return ""
    first = row.delta[0]
    sign = {"add": "+", "remove": "−", "replace": "~"}.get(first.op, "~")
    more = len(row.delta) - 1
    return f"{sign} {first.path}" + (f" and {more} more" if more else "")
