"""`wakelog rollup`: totals of work, by turn, phase, session, project or day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import all_projects_option, limit_option
from wakelog.cli.render.money import group_namer, plain_money, say_sums
from wakelog.cli.render.results import plain, shape
from wakelog.cli.selectors import find_time
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import count, duration, money
from wakelog.index.rollups import LEVELS, MEASURES, Rollup, RollupRow

MAX_ROWS = 50
shape(
    RollupRow,
    "sessions turns phases events calls errors model_calls added removed tokens_in? tokens_out? duration_us?"
    " money unpriced_tokens? took",
    money=lambda row: plain_money(row.usd_micros),
)


@click.command("rollup")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, shell_complete=complete_session)
@click.option("--by", type=click.Choice(LEVELS), default="session", show_default=True, help="Group by this.")
@click.option("--since", metavar="T", help="Count turns that started since then: 7d, today, 2026-11-15.")
@click.option("--until", metavar="T", help="Count turns that started before then.")
@click.option(
    "--svg",
    "measure",
    type=click.Choice([*MEASURES, "took"]),
    metavar="MEASURE",
    help=f"Write a picture instead, with one bar for each group: {', '.join(MEASURES)}, or took (how long calls took).",
)
@limit_option(MAX_ROWS, "Show at most N rows; 0 shows all.")
@all_projects_option
@common
def rollup_command(
    ctx: CommandContext,
    sessions: tuple[str, ...],
    by: str,
    since: str | None,
    until: str | None,
    measure: str | None,
    limit: int,
    everything: bool,
) -> None:
    """Sum up the work done: turns, calls, errors, time in calls, tokens and money.

    Without sessions: those of this folder's repository, or of all projects with -A. Each session counts its own work,
    rewound work too. A phase is a run of calls that explore, change files, check, or run something else; a user's
    message ends it. The phases of named sessions are shown turn by turn. Pruning a session changes no number here.
    Deleted sessions count when their totals were kept, and at least five were.

    Examples:
      wakelog rollup --by day --since 7d
      wakelog rollup fix-bug --by phase
      wakelog rollup -A --by project --svg calls > calls.svg
    """
    project = None if everything or sessions else ctx.store.known.here()[1]
    rollup = ctx.store.rollup(
        by,
        sessions=[ctx.session(session).id for session in sessions] or None,
        project=project,
        since=find_time(ctx, since) or None,
        until=find_time(ctx, until) or None,
        utc=ctx.utc,
    )
    ctx.warn_unread(rollup.as_of.damaged)
    name = group_namer(ctx, by)
    data: dict[str, Any] = {
        "by": rollup.by,
        "rows": [{"key": row.key or None, "name": name(row.key), **plain(row)} for row in rollup.rows],
        "total": rollup.total,
        "deleted": rollup.deleted,
    }
    if measure:
        ctx.answer("rollup", data, rollup.svg(measure).splitlines())
        return
    ctx.answer("rollup", data, lambda: _show(ctx, rollup, name, limit), records=data["rows"])


def _show(ctx: CommandContext, rollup: Rollup, name: Callable[[str], str], limit: int) -> None:
    if not rollup.rows:
        ctx.say("nothing was done")
        return
    columns = (
        f"{rollup.by} 14 | > sessions -3 | > turns -2 | > phases -5 | > calls | > errors | > lines -4 | > tokens -1"
        " | > time | > money"
    )
    say_sums(ctx, columns, rollup, lambda row: (name(row.key), *_cells(row)), limit)


def _cells(row: RollupRow) -> tuple[str, ...]:
    tokens = row.tokens_in + row.tokens_out
    return (
        f"{row.sessions:,}" if row.sessions else "",
        f"{row.turns:,}" if row.turns else "",
        f"{row.phases:,}" if row.phases else "",
        f"{row.calls or row.model_calls:,}" if row.calls or row.model_calls else "",
        f"{row.errors:,}" if row.errors else "",
        f"+{row.added:,} -{row.removed:,}" if row.added or row.removed else "",
        count(tokens) if tokens else "",
        duration(row.duration_us) if row.duration_us else "",
        money(row.usd_micros) if row.usd_micros else "",
    )
