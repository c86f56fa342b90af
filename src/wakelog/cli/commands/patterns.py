"""`wakelog patterns` and `compare-cohorts`: what sessions repeat, and how two sets of sessions differ."""

from __future__ import annotations

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import all_projects_option, limit_option, why_option
from wakelog.cli.render.patterns import difference_line, pattern_lines, place_lines, plan_lines
from wakelog.cli.selectors import find_time
from wakelog.cli.text import fit, glyph, inert_line
from wakelog.model.short_text import pluralize
from wakelog.patterns.cohorts import Cohort
from wakelog.patterns.findings import KINDS, PER_KIND


def _project(ctx: CommandContext, everything: bool) -> str | None:
    return None if everything else ctx.store.known.here()[1]


class WithList(click.Group):
    """A group that runs `list` if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group("patterns", cls=WithList)
def patterns_command() -> None:
    """Show what sessions do again and again, and where. Without a command, `list`.

    Examples:
      wakelog patterns
      wakelog patterns show r27f36828
      wakelog patterns map --format svg > steps.svg
    """


@patterns_command.command("list")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Show only this kind (repeat).")
@click.option("--since", metavar="T", help="Use sessions active since then: 2h, 60d, today, 2026-11-15.")
@click.option("--least", type=click.IntRange(0), default=0, metavar="N", help="Show patterns of at least N sessions.")
@limit_option(PER_KIND, "Show at most N of each kind.", least=1, most=1000)
@all_projects_option
@common
def list_patterns(
    ctx: CommandContext, kinds: tuple[str, ...], since: str | None, least: int, limit: int, everything: bool
) -> int:
    """List chains of steps, recipes after errors, repeated dead ends, loops, flaky tools, files that change together
    and slow calls.

    Forks of one session count once. A chain is said to go with success only if enough runs of the same task show it.
    The exit code is 1 when nothing repeats.

    Examples:
      wakelog patterns list
      wakelog patterns list -A --kind recipe --kind flaky
    """
    patterns = ctx.store.patterns.find(
        project=_project(ctx, everything), kinds=kinds, since=find_time(ctx, since) or None, least=least, limit=limit
    )

    def human() -> None:
        ctx.say_all(pattern_lines(ctx, patterns))
        for note in patterns.notes:
            ctx.remark(note)
        rest = f" {glyph('dot')} {patterns.hidden} more; -n shows more of each kind" if patterns.hidden else ""
        ctx.remark(pluralize(patterns.sessions, "session") + rest)

    ctx.answer("patterns", patterns, human, records=list(patterns.patterns))
    if patterns.patterns:
        ctx.suggest(f"wakelog patterns show {patterns.patterns[0].id}{' -A' if everything else ''}")
    return 0 if patterns.patterns else NO


@patterns_command.command("show")
@click.argument("id")
@all_projects_option
@common
def show_pattern(ctx: CommandContext, id: str, everything: bool) -> None:
    """Show one pattern, and the places where it was seen.

    Examples:
      wakelog patterns show r27f36828 -A
    """
    pattern = ctx.store.patterns.show(id, project=_project(ctx, everything))

    def human() -> None:
        ctx.say(fit(inert_line(pattern.text), ctx.columns))
        ctx.say_all(place_lines(ctx, pattern))

    ctx.answer("pattern", pattern, human)


@patterns_command.command("map")
@click.option(
    "--format", "form", type=click.Choice(["dot", "svg"]), default="dot", show_default=True, help="Write this format."
)
@click.option("--since", metavar="T", help="Use sessions active since then.")
@all_projects_option
@common
def map_patterns(ctx: CommandContext, form: str, since: str | None, everything: bool) -> None:
    """Write which step follows which as a graph, for Graphviz or as a picture.

    Examples:
      wakelog patterns map | dot -Tpng > steps.png
    """
    found = ctx.store.patterns.map(project=_project(ctx, everything), since=find_time(ctx, since) or None)
    ctx.answer("map", found, (found.svg() if form == "svg" else found.dot()).splitlines())


@patterns_command.command("promote")
@click.argument("id")
@click.option("--name", required=True, metavar="NAME", help="Name the plan.")
@why_option
@all_projects_option
@common
def promote_pattern(ctx: CommandContext, id: str, name: str, why: str, everything: bool) -> None:
    """Make a plan from a chain that at least three independent sessions completed.

    A value that is the same in all sessions stays. A value that varies becomes a parameter if it came from the input;
    if its origin is unknown, the chain is refused. Calls over a list become one step over a list. Agents are offered
    the plan once a person has endorsed it.

    Examples:
      wakelog patterns promote c764836e8 --name refund
    """
    plan = ctx.store.plans.promote(id, name, project=_project(ctx, everything), why=why)
    ctx.answer("plan", plan, plan_lines(ctx, plan))
    ctx.suggest(f"wakelog plans show {name}", f"wakelog plans endorse {name}")


@click.command("compare-cohorts")
@click.argument("a")
@click.argument("b")
@click.option("--all-rows", "rows", is_flag=True, help="Also show what does not differ.")
@all_projects_option
@common
def compare_cohorts_command(ctx: CommandContext, a: str, b: str, rows: bool, everything: bool) -> None:
    """Show what differs between two sets of sessions: outcomes, cost, time, errors, steps.

    A set is name=value pairs with commas: labels, agent, model or outcome, and since=T and until=T. If both sets have
    sessions of the same task, these are compared with each other. A difference is reported only if it is significant
    after correction for many comparisons; with too few sessions, the answer is "too few".

    Examples:
      wakelog compare-cohorts agent_version=2.1 agent_version=2.2
      wakelog compare-cohorts until=2026-11-01 since=2026-11-01 -A
    """
    comparison = ctx.store.patterns.compare(_cohort(ctx, a), _cohort(ctx, b), project=_project(ctx, everything))

    def human() -> None:
        within = f"within {comparison.tasks} tasks" if comparison.tasks else "without common tasks"
        ctx.say(f"{comparison.a} and {comparison.b} sessions, {comparison.compared} compared {within}")
        clear = [d for d in comparison.differences if d.verdict in ("more", "less")]
        ctx.say_all("  " + fit(difference_line(difference), ctx.columns - 2) for difference in clear)
        if not clear:
            is_few = any(d.verdict == "too few" for d in comparison.differences) or not comparison.differences
            ctx.say("  too few sessions to say what differs" if is_few else "  no difference was found")
        rest = [d for d in comparison.differences if d not in clear]
        if rows and rest:
            ctx.remark("no clear difference")
            ctx.say_all("  " + fit(difference_line(difference), ctx.columns - 2) for difference in rest)
        for note in comparison.notes:
            ctx.remark(note)

    ctx.answer("cohorts", comparison, human, records=list(comparison.differences))


def _cohort(ctx: CommandContext, text: str) -> Cohort:
    where: dict[str, str] = {}
    times: dict[str, int] = {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign or not name:
            raise click.UsageError(f"{part!r} is not written as name=value, such as agent_version=2.1,model=x")
        if name in ("since", "until"):
            times[name] = find_time(ctx, value)
        else:
            where[name] = value
    return Cohort(where, times.get("since"), times.get("until"))
