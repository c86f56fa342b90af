"""`wakelog brief`: the handoff for the next run, machine or agent."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.places import point, select
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert
from wakelog.context.brief import DEFAULT_BUDGET


@click.command("brief")
@click.argument("where", metavar="[SESSION]", required=False, default="", shell_complete=complete_selector)
@click.option(
    "--budget", type=click.IntRange(1), default=DEFAULT_BUDGET, show_default=True, metavar="N", help="In N tokens."
)
@common
def brief_command(ctx: Context, where: str, budget: int) -> None:
    """What the next run must know: goal, pending calls and what to do about them, decisions, facts, dead ends, files.

    Markdown on stdout, to be given to a person or a model. What does not fit is counted, with the command that shows
    it. Text that is not trusted is fenced, with its source. Tokens are an estimate, four bytes each.

    \b
    Examples:
      wakelog brief fix-bug
      wakelog brief fix-bug --budget 300
      wakelog brief fix-bug@4
    """
    session, spot, _ = select(ctx, where)
    brief = session.brief(budget, at=point(ctx, session, spot) if spot else None)
    data = {**msgspec.to_builtins(brief), "name": brief.name or None, "estimate": True}

    def human() -> None:
        for line in inert(brief.text).splitlines():
            ctx.say(line)

    ctx.answer("brief", data, human)
