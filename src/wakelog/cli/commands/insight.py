"""`wakelog insight` and `accept`: show what can be derived from the agent's words, and record it as a decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import place_argument
from wakelog.cli.render.insight import footer_lines, insight_lines
from wakelog.cli.render.results import SessionResult, plain, shows
from wakelog.cli.render.sessions import handle, label, title
from wakelog.cli.text import inert_line
from wakelog.insight.items import Insight
from wakelog.session import Session
from wakelog.session.insights import ACCEPTED


@click.command("insight")
@place_argument("where", "[SEL|RANGE]")
@click.option("--all", "everything", is_flag=True, help="Show minor items too.")
@common
def insight_command(ctx: CommandContext, where: str, everything: bool) -> None:
    """Show what the agent decided, changed and gave up, derived from its own words and calls; by default in the last
    turn.

    Each line quotes the log and is marked ~: rules found it, the agent did not record it. What the agent recorded
    itself is not repeated. The event at the end of a line is what `wakelog accept` takes.

    Examples:
      wakelog insight fix-auth@2
      wakelog insight fix-auth@1..@5 --all
    """
    place = ctx.place(where)
    session = place.session
    insight = session.insight(place.text or None, all=everything)
    records = ({"session": session.id, **plain(item)} for item in insight.items)
    ctx.answer("insight", SessionResult(session, insight), records=records)
    first = next((item for item in insight.items if item.kind in ACCEPTED and item.kind != "goal"), None)
    if first is not None:
        ctx.suggest(f"wakelog accept {first.id} -s {handle(session)}", f"wakelog show -s {handle(session)} {first.id}")


@shows(Insight)
def _turn_lines(ctx: CommandContext, session: Session[Any], insight: Insight) -> Iterator[str]:
    """What was derived, turn by turn."""
    turns = list(dict.fromkeys(item.turn for item in insight.items))
    yield f"{title(ctx, session)}{f'  @{turns[0]}' if len(turns) == 1 else ''}"
    if not insight.items and not insight.notes:
        yield "  nothing was derived"
    if len(turns) < 2:
        yield from insight_lines(ctx, insight)
        return
    for turn in turns:
        yield ctx.style(f"@{turn}", bold=True)
        items = tuple(item for item in insight.items if item.turn == turn)
        yield from insight_lines(ctx, Insight(items, 0, (), insight.rules), footer=False)
    yield from (f"  {inert_line(note)}" for note in insight.notes)
    yield from footer_lines(ctx, insight)


@click.command("accept")
@click.argument("item", metavar="EVENT")
@click.option("--kind", type=click.Choice(ACCEPTED), default=None, help="Choose the kind, if the event has several.")
@common
def accept_command(ctx: CommandContext, item: str, kind: str | None) -> None:
    """Record a derived item as a real decision, dead end or goal, with the events it was derived from as evidence.

    EVENT is what `wakelog insight` and `show` print at the end of the item's line.

    Examples:
      wakelog accept e17 -s fix-auth
      wakelog accept e17 --kind dead_end -s fix-auth
    """
    session = ctx.session()
    seq = session.accept(item, kind=kind or "")
    entry = session.log.entry(seq)
    line = f"Recorded {inert_line(item)} of {label(session)} as {entry.kind}, e{seq}"
    ctx.done("accept", session, line, item=item, seq=seq, kind=entry.kind)
