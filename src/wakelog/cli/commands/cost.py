"""`wakelog cost`: what sessions cost, each amount counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.budgets import budget_lines, plain_uses
from wakelog.cli.render.cost import plain_money
from wakelog.cli.render.prices import plain_prices, price_lines
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import count, duration, money
from wakelog.errors import InvalidInputError
from wakelog.index.costs import BY, LABEL
from wakelog.index.results import CostRow, Costs
from wakelog.session import Session
from wakelog.timeline.selectors import parse_time, resolve_range

LIMIT = 50
_NOBODY = {"tool": "(no tool)", "model": "(no model)", "agent": "(no agent)"}


@click.command("cost")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("--by", "by", metavar="WHAT", help=f"{', '.join(BY)} or {LABEL}NAME.")
@click.option("--since", "since", metavar="T", help="What was spent since: 7d, today, 2026-11-15.")
@click.option("--budget", "with_budget", is_flag=True, help="The session's limits as well.")
@click.option(
    "--prices", "prices", is_flag=True, help="The prices of models that money is reckoned by, and where from."
)
@click.option("-n", "limit", type=click.IntRange(0), default=LIMIT, show_default=True, help="How many rows; 0: all.")
@common
def cost_command(
    ctx: Context, selector: str, by: str | None, since: str | None, with_budget: bool, prices: bool, limit: int
) -> None:
    """What was spent: tokens in and out, time in calls, money. Of all sessions, or of one with its sub-agents.

    Everything is counted once: a fork counts what it did itself, a sub-agent counts by its own session, a result that
    was used again costs nothing, and a call imported twice is one call. Rewound work was paid for and counts. Money
    is what was reported, or what the reported tokens come to by the price table, not what was billed; where there is no
    price, it is unknown.

    \b
    Examples:
      wakelog cost --since 7d --by day
      wakelog cost fix-bug --by tool
      wakelog cost fix-bug@3..@7
      wakelog cost --prices
    """
    if prices:
        _answer_prices(ctx)
        return
    session, turns = _chosen(ctx, selector)
    if with_budget and session is None:
        raise click.UsageError("--budget needs a session")
    costs = ctx.store.cost(
        None if session is None else session.id,
        by=by or ("session" if session is None else "turn"),
        turns=turns,
        since=parse_time(since, ctx.store.clock()) if since else None,
        utc=ctx.utc,
    )
    name = _namer(ctx, costs.by)
    inherited = _inherited(session) if session is not None and turns is None else 0
    data: dict[str, Any] = {
        "by": costs.by,
        "rows": [{"key": row.key or None, "name": name(row.key), **_plain(row)} for row in costs.rows],
        "total": _plain(costs.total),
        "inherited": plain_money(inherited),
    }
    if session is not None and with_budget:
        data |= plain_uses(session.log.part("budget"))

    def human() -> None:
        _show(ctx, costs, name, limit)
        if inherited:
            ctx.say(ctx.style(f"besides, {money(inherited)} was spent before it was forked: its parent's", dim=True))
        if session is not None and with_budget:
            for line in budget_lines(ctx, session.log.part("budget")):
                ctx.say(line)

    if ctx.ndjson:
        for row in data["rows"]:
            ctx.record("cost", {"by": costs.by, **row})
        return
    ctx.answer("cost", data, human)


def _chosen(ctx: Context, selector: str) -> tuple[Session[Any] | None, tuple[int, int] | None]:
    """The session asked about, if any, and which of its turns."""
    if not selector and not ctx.names_session:
        return None, None
    session, place = ctx.select(selector)
    if not place.first:
        return session, None
    found = resolve_range(session.log, f"{place.first}..{place.last}" if place.last else place.first)
    low, high = (session.log.entry(max(1, seq)).header.turn for seq in (found.first, found.last))
    if not low or not high:
        raise InvalidInputError(
            f"{selector!r} does not name turns", kind="bad-selector", hint="costs are told by turn: fix-bug@3..@7"
        )
    return session, (low, high)


def _inherited(session: Session[Any]) -> int:
    fork = session.head.fork
    return session.log.state(fork.at)["budget"]["spent"].get("usd_micros", 0) if fork else 0


def _namer(ctx: Context, by: str) -> Callable[[str], str]:
    """How a group is called: sessions by their names."""
    names = (
        {head.session: head.name or head.session for head in ctx.store.sessions()} if by in ("session", "turn") else {}
    )

    def name(key: str) -> str:
        if by == "turn":
            session, _, turn = key.rpartition("@")
            return f"{names.get(session, session)}{f'@{turn}' if turn != '0' else ' (between turns)'}"  # type: ignore[call-overload]
        return names.get(key, key) or _NOBODY.get(by, "(none)")  # type: ignore[call-overload]

    return name


def _plain(row: CostRow) -> dict[str, Any]:
    return {
        "tokens_in": row.tokens_in or None,
        "tokens_out": row.tokens_out or None,
        "duration_us": row.duration_us or None,
        "money": plain_money(row.usd_micros),
        "unpriced_tokens": row.unpriced_tokens or None,
    }


def _answer_prices(ctx: Context) -> None:
    from wakelog.config.settings import user_file
    from wakelog.monitors.prices import FILE, load

    table = load(user_file().parent / FILE)  # of the user, whatever store is meant

    def human() -> None:
        for line in price_lines(ctx, table):
            ctx.say(line)

    ctx.answer("prices", plain_prices(table), human)


def _show(ctx: Context, costs: Costs, name: Callable[[str], str], limit: int) -> None:
    if not costs.rows:
        ctx.say("nothing was spent")
        return
    shown = costs.rows[-limit:] if costs.by == "day" and limit else costs.rows[:limit] if limit else costs.rows
    columns = (
        Column(costs.by.removeprefix(LABEL), least=14),
        Column("in", right=True),
        Column("out", right=True),
        Column("time", right=True, drop=1),
        Column("money", right=True),
    )
    rows = [_cells(name(row.key), row) for row in shown]
    if len(costs.rows) > 1:
        rows.append(_cells("all", costs.total, bold=True))
    say_table(ctx, columns, rows)
    if costs.total.unpriced_tokens:
        tokens = count(costs.total.unpriced_tokens)
        ctx.say(
            ctx.style(f"  {tokens} tokens have no known price; wakelog cost --prices says how to add one", dim=True)
        )
    if len(shown) < len(costs.rows):
        ctx.say(ctx.style(f"  {len(costs.rows) - len(shown)} more are in the sum; -n 0 shows all", dim=True))


def _money(row: CostRow) -> str:
    known = money(row.usd_micros) if row.usd_micros else ""
    if not row.unpriced_tokens:
        return known
    return f"{known} + unknown" if known else "unknown"


def _cells(title: str, row: CostRow, *, bold: bool = False) -> Row:
    style = {"bold": True} if bold else {}
    texts = (
        title,
        count(row.tokens_in) if row.tokens_in else "",
        count(row.tokens_out) if row.tokens_out else "",
        duration(row.duration_us) if row.duration_us else "",
        _money(row),
    )
    return tuple(Cell(text, style) for text in texts)
