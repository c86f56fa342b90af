"""Promoted plans, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.text import fit, glyph, inert_line
from wakelog.store.plans import PromotedPlan

shape(
    PromotedPlan,
    "name id pattern? endorsed by? sources_left runs succeeded failed at_least last? seq plan",
    id=lambda found: found.plan.id,
)


def plan_lines(ctx: CommandContext, found: PromotedPlan) -> Iterator[str]:
    """A plan in two or three lines: what it calls, what it needs, how it does."""
    state = "endorsed" + (f" by {inert_line(found.by)}" if found.by else "") if found.endorsed else "not endorsed"
    yield f"{ctx.style(inert_line(found.name), bold=True)}  {ctx.style(found.plan.id, fg='cyan')}  {state}"
    calls = f" {glyph('arrow')} ".join(
        inert_line(step.tool) + (" (for each)" if step.over is not None else "") for step in found.plan.steps
    )
    yield "  " + fit(calls, ctx.columns - 2)
    names = ", ".join(inert_line(p.name) for p in found.plan.parameters)
    yield "  " + fit(f"needs {names}" if names else "needs nothing", ctx.columns - 2)
    gone = "" if found.sources_left == len(found.plan.sources) else f", {found.sources_left} still there"
    yield "  " + ctx.style(f"from {len(found.plan.sources)} sessions{gone}; {_rate(found)}", dim=True)


def _rate(found: PromotedPlan) -> str:
    if not found.runs:
        return "never run"
    ended = found.succeeded + found.failed
    bound = f" (at least {found.at_least:.0%})" if ended else ""
    return f"succeeded {found.succeeded} of {ended} times{bound}"
