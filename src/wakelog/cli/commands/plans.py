"""`wakelog plans`: shows, endorses, runs and removes plans made from proven chains."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import click
import msgspec

from wakelog.cli.commands.patterns import WithList
from wakelog.cli.commands.replay import changes_of, say_plan
from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import why_option
from wakelog.cli.render.patterns import plan_lines
from wakelog.cli.render.results import SessionResult, shape
from wakelog.cli.render.sessions import handle
from wakelog.cli.text import fit, glyph, inert_line
from wakelog.model.values import Value
from wakelog.replay.plan_run import PlanCall, PlanProgress
from wakelog.store.plans import PromotedPlan

shape(PlanProgress, "plan ok total done stopped?")
shape(PlanCall, "number tool call status seq note?")
_name = click.argument("name", metavar="NAME")
_by = click.option("--by", default="", metavar="WHO", help="Say who does this.")


@click.group("plans", cls=WithList)
def plans_command() -> None:
    """List plans made from proven chains, and how their runs ended. Without a command, `list`.

    `wakelog patterns promote` makes one.

    Examples:
      wakelog plans
      wakelog plans endorse refund --by ann
      wakelog plans run refund --set order=order-5000 --tools shop.tools
    """


@plans_command.command("list")
@click.option("--endorsed", is_flag=True, help="List only plans that agents are offered.")
@common
def list_plans(ctx: CommandContext, endorsed: bool) -> int:
    """List the plans with their runs so far. The exit code is 1 when there is none.

    Examples:
      wakelog plans list --endorsed
    """
    plans = list(ctx.store.plans.all(endorsed=endorsed))
    lines = chain.from_iterable(plan_lines(ctx, plan) for plan in plans)
    code = ctx.answer_found("plans", plans, plans, lambda: lines, "there are no plans")
    if not plans:
        ctx.suggest("wakelog patterns --kind chain")
    return code


@plans_command.command("show")
@_name
@common
def show_plan(ctx: CommandContext, name: str) -> None:
    """Show a plan in full: parameters, steps, where each value comes from, and its sources.

    Examples:
      wakelog plans show refund
    """
    plan = ctx.store.plans.get(name)

    def human() -> None:
        ctx.say_all(plan_lines(ctx, plan))
        say_plan(ctx, plan.plan)
        for source in plan.plan.sources:
            session, _, seq = source.rpartition("@")
            ctx.remark(f"  from {session}@e{seq}")

    ctx.answer("plan", plan, human)
    if not plan.endorsed:
        ctx.suggest(f"wakelog plans endorse {plan.name}")


@plans_command.command("endorse")
@_name
@_by
@why_option
@common
def endorse_plan(ctx: CommandContext, name: str, by: str, why: str) -> None:
    """Record that you have read a plan and approve it: agents are offered it from now on.

    Examples:
      wakelog plans endorse refund --by ann
    """
    plan = ctx.store.plans.endorse(name, by=by, why=why)
    ctx.answer("plan", plan, plan_lines(ctx, plan))


@plans_command.command("run")
@_name
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=TEXT", help="Set a parameter; KEY:=JSON for other values."
)
@click.option("--tools", multiple=True, metavar="MODULE", help="Take tools from here (repeat); see above.")
@common
def run_plan(ctx: CommandContext, name: str, changes: tuple[str, ...], tools: tuple[str, ...]) -> int:
    """Run an endorsed plan on new inputs, with real tools, recorded in a session.

    A plan knows the names of its tools, but not their code. --tools MODULE takes the functions of those names from a
    module that can be imported from this folder; --tools TOOL=MODULE:FUNCTION takes one. When a tool is missing,
    nothing runs, and the program that would run the plan is printed.

    The run is a turn of the session NAME-run, or of the one that -s names. It stops at the first call that fails. The
    exit code is 1 when the plan was not completed.

    Examples:
      wakelog plans run refund --set order=order-5000 --tools shop.tools
      wakelog plans run refund --set order=order-5000 --tools shop.tools -s march
    """
    from wakelog.replay.agent_run import load_tools

    plan, inputs = ctx.store.plans.endorsed(name), dict(_inputs(changes))
    wanted = list(dict.fromkeys(step.tool for step in plan.plan.steps))
    # What the tools print is not part of the answer.
    with contextlib.redirect_stdout(sys.stderr):
        loaded = load_tools(tools, wanted)
    if missing := [tool for tool in wanted if tool not in loaded]:
        return _offer_program(ctx, plan, inputs, wanted, missing)
    if unset := [p.name for p in plan.plan.parameters if p.known == "unknown" and p.name not in inputs]:
        raise click.UsageError(f"the plan needs {', '.join(unset)}: give it with --set {unset[0]}=TEXT")
    with contextlib.redirect_stdout(sys.stderr):
        session = ctx.session() if ctx.names_session else ctx.store.session(f"{plan.name}-run", goal=plan.name)
        progress = ctx.store.plans.run(plan.name, session, inputs, tools=loaded)
    ctx.answer("plan-run", SessionResult(session, progress), _progress_lines(ctx, progress))
    ctx.suggest(f"wakelog show {handle(session)}@{session.head.turn}")
    return 0 if progress.ok else NO


def _inputs(changes: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    for key, text in changes_of(changes):
        if not key.endswith(":"):
            yield key, text
            continue
        try:
            yield key[:-1], msgspec.json.decode(text)
        except msgspec.DecodeError as exc:
            raise click.UsageError(f"--set {key[:-1]}: {text[:60]!r} is not JSON; KEY=TEXT gives a text") from exc


def _progress_lines(ctx: CommandContext, progress: PlanProgress) -> Iterator[str]:
    """The calls that were made, and the result."""
    for call in progress.done:
        mark = glyph("done") if call.status == "succeeded" else glyph("failed")
        yield fit(f"  {mark} {call.number}  {inert_line(call.call)}", ctx.columns)
    yield inert_line(str(progress))


def _offer_program(
    ctx: CommandContext, plan: PromotedPlan, inputs: Mapping[str, Value], tools: Sequence[str], missing: list[str]
) -> int:
    """Answers with a program that runs a plan, to paste; unknown values are `...`."""
    values = ", ".join(
        f"{p.name!r}: {repr(inputs[p.name]) if p.name in inputs else '...'}" for p in plan.plan.parameters
    )
    program = [
        "import wakelog",
        "",
        "store = wakelog.open()",
        f"session = store.session({f'{plan.name}-run'!r})",
        f"tools = {{{', '.join(f'{tool!r}: ...' for tool in tools)}}}  # the functions",
        f"print(store.plans.run({plan.name!r}, session, {{{values}}}, tools=tools))",
    ]
    data = {"name": plan.name, "missing": missing, "program": program}
    problem = f"nothing was run: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given"
    ctx.answer("plan-tools", data, [f"{problem}. Name their module with --tools, or run:", "", *program])
    return NO


@plans_command.command("rm")
@_name
@_by
@why_option
@common
def remove_plan(ctx: CommandContext, name: str, by: str, why: str) -> None:
    """Remove a plan from the list. Its runs stay recorded.

    Examples:
      wakelog plans rm refund -m "the shop has a new API"
    """
    ctx.store.plans.remove(name, by=by, why=why)
    ctx.answer("plan-removed", {"name": name}, f"the plan {name} is removed")
