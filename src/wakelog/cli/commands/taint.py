"""`wakelog taint`: from a source forward to everything that rests on it."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.provenance import as_of, plain_touched, say_wrapped, subject, touched_lines
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import fit, glyph
from wakelog.provenance.taint import ITEMS, Part, Taint
from wakelog.session import Session


@click.command("taint")
@click.argument("source", metavar="[SOURCE|EVENT|TURN|KEY|FILE]", default="", shell_complete=complete_selector)
@click.option("--trust", type=click.Choice(["unverified", "untrusted"]), default="unverified", show_default=True,
              help="Without a source: what rests on input that is no more than this.")  # fmt: skip
@click.option("--sinks", is_flag=True, help="Only calls with effects.")
@click.option("--decisions", is_flag=True, help="Only decisions.")
@click.option("--at", "at", default="", metavar="SEL", help="As it was at that point.")
@click.option("-n", "items", type=click.IntRange(0), default=ITEMS, show_default=True, help="How many; 0: all.")
@click.option("--wide", is_flag=True, help="Unrecorded windows hold the earlier turns too.")
@common
def taint_command(
    ctx: Context, source: str, trust: Any, sinks: bool, decisions: bool, at: str, items: int, wide: bool
) -> int:
    """What rests on a source: decisions, facts, data, files, and calls with effects, each with the way to it.

    SOURCE is a pattern over recorded sources, such as 'web:*'; where none is recorded, user and tool:NAME are sources.
    Without one: what rests on unverified or untrusted input. Exits with 1 when nothing does.

    \b
    Examples:
      wakelog taint 'web:*' --sinks -s injection
      wakelog taint --decisions -s injection
      wakelog taint injection@e9
    """
    session, source = subject(ctx, source) if source else (ctx.session(), "")
    point = as_of(ctx, session, at)
    parts: list[Part] | None = None
    if sinks or decisions:
        parts = [*(["effect"] if sinks else []), *(["decision"] if decisions else [])]  # type: ignore[list-item]
    if source:
        found = session.trust.taint(source, at=point, parts=parts, items=items, wide=wide)
    else:
        found = session.trust.resting_on(trust, at=point, parts=parts, items=items, wide=wide)
    if ctx.ndjson:
        for item in found.items:
            ctx.record("taint", plain_touched(item))
    else:
        ctx.answer("taint", _plain(session, found), lambda: _say(ctx, session, found, source))
    if found.items:
        ctx.suggest(f"wakelog why -s {handle(session)} e{found.items[-1].seq}")
    return 0 if found else NO


def _plain(session: Session[Any], found: Taint) -> dict[str, Any]:
    return {
        "session": session.id,
        "name": session.name or None,
        "at": found.at,
        "of": found.target.what,
        "kind": found.target.kind,
        "roots": list(found.roots),
        "root_count": found.root_count,
        "sources": list(found.sources),
        "items": [plain_touched(item) for item in found.items],
        "counts": found.counts,
        "reached": found.reached,
        "beyond": found.beyond,
        "limits": list(found.limits),
    }


def _say(ctx: Context, session: Session[Any], found: Taint, source: str) -> None:
    what = f"taint {source}" if source else f"what rests on {found.target.what} input"
    ctx.say(f"{title(ctx, session)}  {fit(what, ctx.columns // 2)}")
    if not found.root_count:
        ctx.say("nothing came in from there" if source else f"nothing that came in is {found.target.what} or worse")
        return
    roots = " ".join(f"e{seq}" for seq in found.roots[:6]) + (
        f" +{found.root_count - 6}" if found.root_count > 6 else ""
    )
    named = ", ".join(found.sources[:4]) + (f" +{len(found.sources) - 4}" if len(found.sources) > 4 else "")
    ctx.say(ctx.style(fit(f"  from {named or 'it'}: {roots}", ctx.columns), dim=True))
    for line in touched_lines(ctx, found.items):
        ctx.say(line)
    counts = ", ".join(f"{n} {part}{'s' if n > 1 and part != 'data' else ''}" for part, n in found.counts.items())
    say_wrapped(ctx, f"resting on it: {counts or 'nothing of that kind'} {glyph('dot')} {found.reached} events in all")
    if found.beyond:
        say_wrapped(ctx, f"{found.beyond} more may, as it could still have been in later windows (--wide shows them)")
    for limit in found.limits:
        say_wrapped(ctx, f"{limit} (-n 0 for all)", dim=True)
