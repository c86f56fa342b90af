"""`wakelog plans`: plans made from proven chains; endorse, look at and remove them."""

from __future__ import annotations

import click

from wakelog.cli.commands.patterns import WithList
from wakelog.cli.commands.replay import say_plan
from wakelog.cli.context import CommandContext, common, why_option
from wakelog.cli.errors import NO
from wakelog.cli.render.patterns import plan_lines

_name = click.argument("name", metavar="NAME")
_by = click.option("--by", "by", default="", metavar="WHO", help="Who does this.")


@click.group("plans", cls=WithList)
def plans_command() -> None:
    """List plans made from proven chains, and how their runs ended. Without a command, `list`.

    `wakelog patterns promote` makes one. A program runs it with `store.plans.run(NAME, session, inputs, tools=…)`.

    \b
    Examples:
      wakelog plans
      wakelog plans endorse refund --by ann
    """


@plans_command.command("list")
@click.option("--endorsed", "endorsed", is_flag=True, help="Only those that agents may be offered.")
@common
def list_plans(ctx: CommandContext, endorsed: bool) -> int:
    """List the plans with their runs so far. The exit code is 1 when there is none.

    \b
    Examples:
      wakelog plans list --endorsed
    """
    found = ctx.store.plans.all(endorsed=endorsed)

    def human() -> None:
        for each in found:
            ctx.say_all(plan_lines(ctx, each))
        if not found:
            ctx.say("there are no plans")

    ctx.answer("plans", list(found), human, records=list(found))
    if not found:
        ctx.suggest("wakelog patterns --kind chain")
    return 0 if found else NO


@plans_command.command("show")
@_name
@common
def show_plan(ctx: CommandContext, name: str) -> None:
    """Show a plan in full: parameters, steps, where each value comes from, and its sources.

    \b
    Examples:
      wakelog plans show refund
    """
    found = ctx.store.plans.get(name)

    def human() -> None:
        ctx.say_all(plan_lines(ctx, found))
        say_plan(ctx, found.plan)
        for source in found.plan.sources:
            session, _, seq = source.rpartition("@")
            ctx.say(ctx.style(f"  from {session}@e{seq}", dim=True))

    ctx.answer("plan", found, human)
    if not found.endorsed:
        ctx.suggest(f"wakelog plans endorse {found.name}")


@plans_command.command("endorse")
@_name
@_by
@why_option
@common
def endorse_plan(ctx: CommandContext, name: str, by: str, why: str) -> None:
    """Record that you have read a plan and stand for it: agents are offered it from now on.

    \b
    Examples:
      wakelog plans endorse refund --by ann
    """
    found = ctx.store.plans.endorse(name, by=by, why=why)
    ctx.answer("plan", found, plan_lines(ctx, found))


@plans_command.command("rm")
@_name
@_by
@why_option
@common
def remove_plan(ctx: CommandContext, name: str, by: str, why: str) -> None:
    """Take a plan off the list. Its runs stay recorded.

    \b
    Examples:
      wakelog plans rm refund -m "the shop has a new API"
    """
    ctx.store.plans.remove(name, by=by, why=why)
    ctx.answer("plan-removed", {"name": name}, f"the plan {name} is removed")
