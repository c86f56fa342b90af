"""`wakelog budget`: what a session may spend, and what is left of it."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.budgets import budget_lines, plain_uses
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.shell_completion import complete_session
from wakelog.monitors.budgets import reached


@click.command("budget")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("--usd", "usd", metavar="N", help="A limit in dollars: 10, 2.50.")
@click.option("--tokens", "tokens", metavar="N", help="A limit in tokens, in and out together.")
@click.option("--seconds", "seconds", metavar="N", help="A limit in seconds that calls take.")
@click.option("--lift", "lift", is_flag=True, help="No limits any more; with the options above, none but those.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def budget_command(
    ctx: Context, session: str, usd: str | None, tokens: str | None, seconds: str | None, lift: bool, why: str
) -> None:
    """Shows a session's limits, what was spent and what is left; or sets limits. What was spent stays spent: it is
    the sum of what was recorded, and no rewind or resume makes it less. A session that reached a limit is paused; raise
    the limit, then resume it.

    \b
    Examples:
      wakelog budget fix-bug
      wakelog budget fix-bug --usd 10 -m "it is worth it"
      wakelog budget fix-bug --lift
    """
    found = ctx.session(session)
    given: dict[str, Any] = {"usd": usd, "tokens": tokens, "seconds": seconds}
    limits = {unit: value for unit, value in given.items() if value is not None or lift}
    seq = found.budget.set(why=why, **limits) if limits else None
    budget = found.log.part("budget")
    data = {"session": found.id, "name": found.name or None, "status": found.status, "seq": seq}

    def human() -> None:
        ctx.say(f"{title(ctx, found)}  {'limits are set' if seq else found.status}")
        for line in budget_lines(ctx, budget):
            ctx.say(f"  {line}")

    ctx.answer("budget", {**data, **plain_uses(budget)}, human)
    name = handle(found)
    if seq and found.status == "paused":
        ctx.suggest(f"wakelog resume {name}")
    elif reached(budget):
        ctx.suggest(f"wakelog budget {name} --usd N", f"wakelog cost {name}")
    else:
        ctx.suggest(f"wakelog cost {name}")
