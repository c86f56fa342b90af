"""Patterns, plans and comparisons of cohorts."""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.cli.context import CommandContext
from wakelog.cli.render.known import place_of
from wakelog.cli.render.results import shape
from wakelog.cli.text import age, fit, glyph, inert_line
from wakelog.model.short_text import pluralize
from wakelog.patterns.cohorts import CohortComparison, CohortDifference
from wakelog.patterns.findings import FoundPatterns, PatternPlace, WorkPattern
from wakelog.patterns.follows_map import FollowsMap
from wakelog.store.plans import PromotedPlan

shape(FoundPatterns, "patterns sessions roots hidden notes")
shape(WorkPattern, "id kind text roots times trust steps verdict? odds chance seen")
shape(PatternPlace, "session name? seq turn? timestamp=at:iso note?")
shape(FollowsMap, "steps arrows turns")
shape(CohortComparison, "a b tasks compared differences notes")

_TITLES = {
    "chain": "steps that follow each other",
    "recipe": "errors, and what came before they ended",
    "dead_end": "given up more than once",
    "loop": "loops",
    "flaky": "flaky",
    "together": "files that change together",
    "slow": "far slower than usual",
}


def pattern_lines(ctx: CommandContext, patterns: FoundPatterns) -> Iterator[str]:
    """The patterns, grouped by kind."""
    kind = ""
    for pattern in patterns.patterns:
        if pattern.kind != kind:
            kind = pattern.kind
            yield ctx.style(_TITLES[kind], bold=True)
        count = pluralize(pattern.roots, "session")
        mark = f"  {glyph('warn')} untrusted" if pattern.trust == "untrusted" else ""
        yield f"  {ctx.style(pattern.id, fg='cyan')}  {ctx.style(count, dim=True)}{mark}"
        for part in inert_line(pattern.text).split("; "):
            yield "    " + fit(part, ctx.columns - 4)


def place_lines(ctx: CommandContext, pattern: WorkPattern) -> Iterator[str]:
    now = ctx.store.clock()
    for place in pattern.seen:
        where = place_of(place.session, place.name, place.turn, place.seq)
        note = f"  {inert_line(place.note)}" if place.note else ""
        yield "  " + fit(f"{where}  {age(place.at, now)}{note}", ctx.columns - 2)


def difference_line(difference: CohortDifference) -> str:
    """`success  62% → 81%  +19 points (+4 to +33)`, or `calls  median 57 → 12 calls  -43 on average (-75 to -12)`."""
    if difference.unit == "share":
        sizes = f"{difference.a:.0%} {glyph('arrow')} {difference.b:.0%}"
        by = f"{100 * difference.difference:+.0f} points ({100 * difference.low:+.0f} to {100 * difference.high:+.0f})"
    else:
        sizes = f"median {_number(difference.a)} {glyph('arrow')} {_number(difference.b)} {difference.unit}"
        low, high = _number(difference.low, "+"), _number(difference.high, "+")
        by = f"{_number(difference.difference, '+')} on average ({low} to {high})"
    return f"{inert_line(difference.name)}  {sizes}  {by}"


shape(
    PromotedPlan,
    "name id pattern? endorsed by? sources_left runs succeeded failed at_least last? seq plan",
    id=lambda found: found.plan.id,
)


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign},.0f}" if abs(value) >= 100 or value == int(value) else f"{value:{sign}.2g}"


def plan_lines(ctx: CommandContext, plan: PromotedPlan) -> Iterator[str]:
    """A plan: its calls, its parameters, and how often it succeeded."""
    state = "endorsed" + (f" by {inert_line(plan.by)}" if plan.by else "") if plan.endorsed else "not endorsed"
    yield f"{ctx.style(inert_line(plan.name), bold=True)}  {ctx.style(plan.plan.id, fg='cyan')}  {state}"
    calls = f" {glyph('arrow')} ".join(
        inert_line(step.tool) + (" (for each)" if step.over is not None else "") for step in plan.plan.steps
    )
    yield "  " + fit(calls, ctx.columns - 2)
    names = ", ".join(inert_line(p.name) for p in plan.plan.parameters)
    yield "  " + fit(f"needs {names}" if names else "needs nothing", ctx.columns - 2)
    gone = "" if plan.sources_left == len(plan.plan.sources) else f", {plan.sources_left} still there"
    yield "  " + ctx.style(f"from {len(plan.plan.sources)} sessions{gone}; {_rate(plan)}", dim=True)


def _rate(plan: PromotedPlan) -> str:
    if not plan.runs:
        return "never run"
    ended = plan.succeeded + plan.failed
    bound = f" (at least {plan.at_least:.0%})" if ended else ""
    return f"succeeded {plan.succeeded} of {ended} times{bound}"
