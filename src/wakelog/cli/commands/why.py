"""`wakelog why`: from something back to where it came from."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.provenance import as_of, plain_steps, plain_why, say_wrapped, subject, why_lines
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import fit, glyph
from wakelog.provenance.why import DEPTH, STEPS, Why
from wakelog.session import Session


@click.command("why")
@click.argument("what", metavar="EVENT|TURN|KEY|FILE[:LINE]", shell_complete=complete_selector)
@click.option("--at", "at", default="", metavar="SEL", help="As it was at that point.")
@click.option("--depth", type=click.IntRange(0), default=DEPTH, show_default=True, help="Levels laid out; 0: all.")
@click.option("-n", "steps", type=click.IntRange(0), default=STEPS, show_default=True, help="Events laid out; 0: all.")
@click.option("--wide", is_flag=True, help="Unrecorded windows hold the earlier turns too.")
@common
def why_command(ctx: Context, what: str, at: str, depth: int, steps: int, wide: bool) -> int:
    """Walks back from an event, what a turn did, a key of the state, a file or a line of it, to its origins.

    Each edge says how it is known: recorded; matched, the same text stands in both; derived, it was in the same turn's
    window; or unknown. Exits with 1 when nothing is known.

    \b
    Examples:
      wakelog why injection@e14
      wakelog why -s fix-bug src/auth/session.py:4
      wakelog why -s fix-bug /data/plan/1/status
    """
    session, what = subject(ctx, what)
    point = as_of(ctx, session, at)
    found = session.why(what, at=point, depth=depth, steps=steps, wide=wide)
    if ctx.ndjson:
        for record in plain_steps(session, found):
            ctx.record("why", record)
    else:
        ctx.answer("why", plain_why(session, found), lambda: _say(ctx, session, found))
    if found.steps:
        name, worst = handle(session), next((o for o in found.origins if o.trust != "trusted"), None)
        more = [f"wakelog taint -s {name} e{worst.seqs[0]}"] if worst else []
        ctx.suggest(f"wakelog show -s {name} e{found.steps[0].seq}", *more)
    return 0 if found else NO


def _say(ctx: Context, session: Session[Any], found: Why) -> None:
    target, exposure = found.target, found.exposure
    ctx.say(f"{title(ctx, session)}  why {fit(target.what, ctx.columns // 2)}")
    way = {"lines": "found by following its lines back", "newest change": "found as the newest change of the file"}
    told = ": ".join(part for part in (way.get(target.way, ""), target.note) if part)
    if told:
        say_wrapped(ctx, f"  {told}", dim=True)
    if exposure is not None and exposure.trust != "trusted":
        worst = _seqs(exposure.worst, 4)
        say_wrapped(ctx, f"  {glyph('warn')} exposure: {exposure.trust} ({exposure.known}), by {worst}", fg="yellow")
    for line in why_lines(ctx, session, found):
        ctx.say(line)
    if found.unknown:
        say_wrapped(ctx, f"unknown: nothing tells where {_seqs(found.unknown, 8)} came from")
    for limit in found.limits:
        say_wrapped(ctx, f"{limit} (--depth 0 -n 0 for all)" if "laid out" in limit else limit, dim=True)


def _seqs(seqs: tuple[int, ...], most: int) -> str:
    return " ".join(f"e{seq}" for seq in seqs[:most]) + (f" {glyph('more')}" if len(seqs) > most else "")
