"""`wakelog store scrub`: every byte of the store against what covers it."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.progress import Progress
from wakelog.cli.text import inert, iso
from wakelog.config.amounts import parse_age
from wakelog.engine import StoreFinding
from wakelog.log.damage import every_id
from wakelog.maintenance.scrub import Pass, Scrubbed, open_pass
from wakelog.maintenance.scrub import scrub as scrub_store


@click.command("scrub")
@click.option("--for", "for_", metavar="TIME", help="Stop after this long (10m, 2h); the next run goes on there.")
@click.option("--rate", type=click.IntRange(1), metavar="N", help="Read at most N events a second.")
@click.option("--repair", is_flag=True, help="Mend what is derived or belongs to nobody; nothing can be lost.")
@click.option("--anew", is_flag=True, help="Begin at the first session, not where the last run stopped.")
@common
def scrub(ctx: Context, for_: str | None, rate: int | None, repair: bool, anew: bool) -> int:
    """Reads every session and holds every byte against what covers it: chain, bodies, payloads and blobs, snapshots,
    heads; and looks for what belongs to nobody. Exit code 4 when something is damaged.

    \b
    Examples:
      wakelog store scrub
      wakelog store scrub --for 10m --rate 5000
      wakelog store scrub --repair
    """
    for_us = parse_age(for_) if for_ is not None else None
    known = None if anew else open_pass(ctx.store)
    total = _events_of(ctx)
    with Progress(ctx, "verified events", total) as progress:
        progress(known.events if known else 0)
        done = scrub_store(
            ctx.store,
            for_s=for_us / 1e6 if for_us is not None else None,
            rate=rate,
            repair=repair,
            anew=anew,
            progress=progress,
        )
    ctx.answer("store-scrub", _plain(ctx, done), lambda: _show(ctx, done))
    return INTEGRITY if done.damage else 0


def _events_of(ctx: Context) -> int:
    """How many events there are to read; of damaged sessions it is not known."""
    engine = ctx.store.engine
    heads = (engine.head(session) for session, problem in every_id(engine) if problem is None)
    return sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)


def _plain(ctx: Context, done: Scrubbed) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(done)
    for name in ("began", "ended"):
        at = data["of_pass"][name]
        data["of_pass"][name] = iso(at) if at is not None else None
    for finding in data["findings"]:
        finding["name"] = _name(ctx, finding["session"])
    return {**data, "is_whole": done.is_whole, "damage": done.damage, "ok": not done.damage}


def _name(ctx: Context, session: str) -> str:
    """What a finding's session is called; a damaged one may not tell."""
    from wakelog.errors import WakelogError
    from wakelog.model.ids import SessionId

    try:
        return ctx.name_of(SessionId(session)) if session else ""
    except WakelogError:
        return session


def _show(ctx: Context, done: Scrubbed) -> None:
    for finding in sorted(done.findings, key=lambda f: not f.is_damage):
        _say(ctx, finding)
    if done.repaired:
        ctx.say(f"{ctx.style('✔', fg='green')} {done.repaired} mended")
    mark = ctx.style("✗", fg="red", bold=True) if done.damage else ctx.style("✔", fg="green")
    verdict = f"{done.damage} damaged" if done.damage else "every byte agrees"
    ctx.say(f"{mark} {done.sessions} sessions, {done.events:,} events: {verdict}")
    _say_place(ctx, done, done.of_pass)


def _say(ctx: Context, finding: StoreFinding) -> None:
    mark = ctx.style("✗", fg="red", bold=True) if finding.is_damage else ctx.style("·", fg="yellow")
    where = _name(ctx, finding.session)
    place = f"{inert(where, lines=False)}  " if where else ""
    at = f"e{finding.seq}: " if finding.seq else ""
    ctx.say(f"{mark} {place}{at}{inert(finding.what, lines=False)}")
    if finding.fix:
        ctx.say(f"  {ctx.style('fix:', dim=True)} {inert(finding.fix, lines=False)}")


def _say_place(ctx: Context, done: Scrubbed, at: Pass) -> None:
    if not done.is_whole:
        ctx.say(f"  time is up after {at.sessions} sessions of this pass; the next scrub goes on there")
    elif done.is_resumed:
        found = f"{at.damage} damaged" if at.damage else "nothing damaged"
        ctx.say(f"  this pass is whole: {at.sessions} sessions, {at.events:,} events, {found}")
    if not done.keeps_mark:
        ctx.say("  this store cannot keep how far a scrub has come, so each begins anew (wakelog store migrate)")
    elif not done.damage and done.is_whole:
        ctx.say("  without anchors kept elsewhere, a cut-off end would not be seen (wakelog anchor)")
