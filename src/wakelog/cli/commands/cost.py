"""`wakelog cost` and `budget`: what was spent, each amount counted once, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import limit_option, place_argument, session_argument, why_option
from wakelog.cli.render.money import group_namer, plain_money, say_sums
from wakelog.cli.render.results import plain, shape, shows
from wakelog.cli.render.sessions import handle, identity, plain_budget, title
from wakelog.cli.render.table import Cell, Column, columns_of, lay_out
from wakelog.cli.selectors import find_time
from wakelog.cli.text import count, duration, inert_line, money
from wakelog.errors import InvalidInputError
from wakelog.index.costs import BY, LABEL
from wakelog.index.results import CostRow, Costs
from wakelog.monitors.prices import AMOUNTS, Price, Prices
from wakelog.session import Session

_COLORS = {1: "yellow", 2: "red"}
_COLUMNS = "budget | > spent | > limit | > left | >"
_COLUMNS_PRICES = (
    "provider | model 12 | > in | > out | > cache read -3 | > cache write -4"
    " | > for 1 h -6 | > reasoning -5 | holds -2 | from -1"
)
MAX_ROWS = 50


def budget_lines(ctx: CommandContext, session: Session[Any]) -> Iterator[str]:
    """A row for each unit that is spent or limited."""
    uses = [use for use in session.budget.spent() if use.limit is not None or use.spent]
    rows = [
        (
            use.unit,
            use.show(use.spent),
            "none" if use.limit is None else use.show(use.limit),
            "" if use.left is None else use.show(use.left),
            Cell(
                "" if use.percent is None else f"{use.percent} %",
                {"fg": _COLORS[use.level]} if use.level in _COLORS else {},
            ),
        )
        for use in uses
    ]
    if rows:
        yield from lay_out(ctx, _COLUMNS, rows)
    else:
        yield "nothing is limited, and nothing was spent"


def plain_uses(session: Session[Any]) -> dict[str, Any]:
    """The budget as JSON: amounts, percentages, and the limits that are reached."""
    uses = session.budget.spent()
    return {
        "budget": plain_budget(session.log.part("budget")),
        "percent": {use.unit: use.percent for use in uses},
        "reached": [use.unit for use in uses if use.is_reached],
    }


@shows(Prices)
def price_lines(ctx: CommandContext, table: Prices) -> Iterator[str]:
    """The price table, and how to add to it."""
    yield f"built-in prices are as of {table.as_of}: {table.source}; check them and put your own into prices.toml"
    yield "dollars for a million tokens:"
    yield from lay_out(ctx, _COLUMNS_PRICES, [_cells(price) for price in table.rows])
    yield ctx.style(
        "list: a page of the provider; second-hand: another page that repeats it (--json tells which)", dim=True
    )
    yield ctx.style("where cache or reasoning have no price, they cost what input and output do", dim=True)
    yield f"a model that is not listed has no known price; to add or change one, edit {table.file}:"
    for line in ("[[price]]", 'provider = "openai"', 'models = ["…"]', 'input = "…"', 'output = "…"'):
        yield f"  {line}"
    yield ctx.style(
        '  also cache_read, cache_write, cache_write_1h, reasoning; from and until = "2026-11-15"', dim=True
    )


def _cells(price: Price) -> tuple[Cell | str, ...]:
    amounts = (_amount(price, kind) for kind in ("input", "output", "cache_read", "cache_write", "cache_write_1h"))
    looked_up = price.source.partition(":")[0] or "built-in"
    origin = looked_up if price.origin == "built-in" else Path(price.origin).name
    return (
        price.provider,
        Cell(price.model, {"fg": "cyan"}),
        *amounts,
        _amount(price, "reasoning"),
        " ".join(filter(None, (price.since and f"from {price.since}", price.until and f"until {price.until}"))),
        origin,
    )


def _amount(price: Price, kind: str) -> str:
    return f"{price.amounts[kind]:f}" if kind in price.amounts else ""


shape(Prices, "as_of source file prices=rows")
shape(
    Price,
    f"provider model {' '.join(f'{kind}?' for kind in AMOUNTS)} from=since? until? origin source?",
    **{kind: partial(_amount, kind=kind) for kind in AMOUNTS},  # as text, so that they stay exact
)
shape(
    CostRow, "tokens_in? tokens_out? duration_us? money unpriced_tokens?", money=lambda row: plain_money(row.usd_micros)
)


@click.command("cost")
@place_argument()
@click.option("-A", "--all", "everything", is_flag=True, help="Count all sessions, also when -s names one.")
@click.option("--by", metavar="WHAT", help=f"Group by {', '.join(BY)} or {LABEL}NAME.")
@click.option("--since", metavar="T", help="Count from this time on: 7d, today, 2026-11-15.")
@click.option("--budget", "with_budget", is_flag=True, help="Show the limits of the session too.")
@click.option("--prices", is_flag=True, help="List the model prices that are used, and their source.")
@limit_option(MAX_ROWS, "Show at most N rows; 0 shows all.")
@common
def cost_command(
    ctx: CommandContext,
    selector: str,
    everything: bool,
    by: str | None,
    since: str | None,
    with_budget: bool,
    prices: bool,
    limit: int,
) -> None:
    """Show what was spent: tokens in and out, time in calls, money. For all sessions, or for one with its sub-agents.

    Everything is counted once: a fork counts only its own work, a sub-agent counts in its own session, a reused result
    costs nothing, and a call that was imported twice is one call. Rewound work was paid for and counts. Money is what
    was reported, or the reported tokens times the price table; it is not the bill. Without a price, it is unknown.

    Examples:
      wakelog cost --since 7d --by day
      wakelog cost fix-bug --by tool
      wakelog cost fix-bug@3..@7
      wakelog cost --prices
    """
    if prices:
        from wakelog.config.settings import user_prices

        ctx.answer("prices", user_prices())  # the user's prices, for any store
        return
    if everything and selector:
        raise click.UsageError(f"--all counts all sessions, and {selector!r} names one")
    session, turns = (None, None) if everything else _find_turns(ctx, selector)
    if with_budget and session is None:
        raise click.UsageError("--budget needs a session")
    costs = ctx.store.cost(
        None if session is None else session.id,
        by=by or ("session" if session is None else "turn"),
        turns=turns,
        since=find_time(ctx, since) or None,
        utc=ctx.utc,
    )
    ctx.warn_unread(costs.as_of.damaged)
    name = group_namer(ctx, costs.by)
    inherited = _inherited(session) if session is not None and turns is None else 0
    data: dict[str, Any] = {
        "by": costs.by,
        "rows": [{"key": row.key or None, "name": name(row.key), **plain(row)} for row in costs.rows],
        "total": costs.total,
        "inherited": plain_money(inherited),
    }
    limited = session if with_budget else None
    if limited is not None:
        data |= plain_uses(limited)
    none = f"nothing was spent since {inert_line(since)}" if since else "nothing was spent"
    records = ({"by": costs.by, **row} for row in data["rows"])
    ctx.answer("cost", data, lambda: _show(ctx, costs, name, limit, inherited, limited, none), records=records)


def _find_turns(ctx: CommandContext, selector: str) -> tuple[Session[Any] | None, tuple[int, int] | None]:
    """The session that the selector names, if any, and its range of turns, if any."""
    if not selector and not ctx.names_session:
        return None, None
    where = ctx.place(selector)
    session = where.session
    if not where.text:
        return session, None
    extent = where.span
    low, high = (session.log.entry(max(1, seq)).header.turn for seq in (extent.first, extent.last))
    if not low or not high:
        raise InvalidInputError(
            f"{selector!r} does not name turns", kind="bad-selector", hint="costs are counted by turn: fix-bug@3..@7"
        )
    return session, (low, high)


def _inherited(session: Session[Any]) -> int:
    """What the parent had spent when the session was forked."""
    fork = session.head.fork
    return session.log.state(session.seq(fork.at))["budget"]["spent"].get("usd_micros", 0) if fork else 0


def _show(
    ctx: CommandContext,
    costs: Costs,
    name: Callable[[str], str],
    limit: int,
    inherited: int,
    limited: Session[Any] | None,
    none: str,
) -> None:
    """The table of costs, what a parent spent, and the limits of a session."""
    columns = (
        Column(costs.by.removeprefix(LABEL), least=14, cut="middle"),
        *columns_of("> in | > out | > time -1 | > money"),
    )
    unknown = count(costs.total.unpriced_tokens) if costs.total.unpriced_tokens else ""
    note = f"{unknown} tokens have no known price; wakelog cost --prices says how to add one" if unknown else ""
    if costs.rows:
        say_sums(ctx, columns, costs, lambda row: (name(row.key), *_cost_cells(row)), limit, note)
    else:
        ctx.say(none)
    if inherited:
        ctx.remark(f"besides, its parent spent {money(inherited)} before the fork")
    if limited is not None:
        ctx.say_all(budget_lines(ctx, limited))


def _money(row: CostRow) -> str:
    known = money(row.usd_micros) if row.usd_micros else ""
    if not row.unpriced_tokens:
        return known
    return f"{known} + unknown" if known else "unknown"


def _cost_cells(row: CostRow) -> tuple[str, ...]:
    return (
        count(row.tokens_in) if row.tokens_in else "",
        count(row.tokens_out) if row.tokens_out else "",
        duration(row.duration_us) if row.duration_us else "",
        _money(row),
    )


@click.command("budget")
@session_argument
@click.option("--usd", metavar="N", help="Set a limit in dollars: 10, 2.50.")
@click.option("--tokens", metavar="N", help="Set a limit in tokens, in and out together.")
@click.option("--seconds", metavar="N", help="Set a limit in seconds spent in calls.")
@click.option("--lift", is_flag=True, help="Remove all limits, except those given with it.")
@why_option
@common
def budget_command(
    ctx: CommandContext, session: str, usd: str | None, tokens: str | None, seconds: str | None, lift: bool, why: str
) -> None:
    """Show or set what a session may spend. Rewinding or resuming does not lower what was spent. A session that reaches
    a limit is paused: raise the limit, then resume it.

    Examples:
      wakelog budget fix-bug
      wakelog budget fix-bug --usd 10 -m "it is worth it"
      wakelog budget fix-bug --lift
    """
    found = ctx.session(session)
    values: dict[str, Any] = {"usd": usd, "tokens": tokens, "seconds": seconds}
    limits = {unit: value for unit, value in values.items() if value is not None or lift}
    seq = found.budget.set(why=why, **limits) if limits else None
    data = {**identity(found), "status": found.status, "seq": seq}

    def human() -> None:
        ctx.say(f"{title(ctx, found)}  {'limits are set' if seq else found.status}")
        ctx.say_all(f"  {line}" for line in budget_lines(ctx, found))

    ctx.answer("budget", {**data, **plain_uses(found)}, human)
    name = handle(found)
    if seq and found.status == "paused":
        ctx.suggest(f"wakelog resume {name}")
    elif any(use.is_reached for use in found.budget.spent()):
        ctx.suggest(f"wakelog budget {name} --usd N", f"wakelog cost {name}")
    else:
        ctx.suggest(f"wakelog cost {name}")
