"""`wakelog store scrub`: checks every stored byte against its hash."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import INTEGRITY, PARTIAL
from wakelog.cli.output import Progress
from wakelog.cli.text import inert_line, iso
from wakelog.config.amounts import parse_interval
from wakelog.engine import StoreFinding
from wakelog.maintenance.scrub import Pass, Scrubbed, open_pass
from wakelog.maintenance.scrub import scrub as scrub_store
from wakelog.model.ids import SessionId
from wakelog.model.short_text import pluralize


@click.command("scrub")
@click.option(
    "--for", "for_", metavar="TIME", help="Stop after this long (30s, 10m, 2h); the next run continues there."
)
@click.option("--rate", type=click.IntRange(1), metavar="N", help="Read at most N events a second.")
@click.option("--repair", is_flag=True, help="Rebuild caches and delete orphans; no event is lost.")
@click.option("--anew", is_flag=True, help="Start at the first session, not where the last run stopped.")
@click.option("--all-replicas", is_flag=True, help="On NATS: also compare the copies of all servers.")
@common
def scrub(ctx: CommandContext, for_: str | None, rate: int | None, repair: bool, anew: bool, all_replicas: bool) -> int:
    """Check every stored byte against its hash (chain, bodies, payloads, blobs, snapshots, heads) and look for orphans.
    The exit code is 4 when something is damaged, and 7 when a replica could not be read. With --repair, rebuild caches
    and delete orphans.

    Examples:
      wakelog store scrub
      wakelog store scrub --for 10m --rate 5000
      wakelog store scrub --repair
      wakelog store scrub --all-replicas
    """
    for_s = parse_interval(for_) if for_ is not None else None
    known = None if anew else open_pass(ctx.store)
    total = _events_of(ctx)
    with Progress(ctx, "verified events", total) as progress:
        progress(known.events if known else 0)
        result = scrub_store(
            ctx.store, for_s=for_s, rate=rate, repair=repair, anew=anew, all_replicas=all_replicas, progress=progress
        )
    ctx.answer("store-scrub", _plain(ctx, result), lambda: _show(ctx, result))
    return INTEGRITY if result.damage else PARTIAL if result.unread else 0


def _events_of(ctx: CommandContext) -> int:
    """How many events there are to read, without those of damaged sessions."""
    engine = ctx.store.engine
    heads = (engine.head(session) for session, problem in ctx.store.session_ids() if problem is None)
    return sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)


def _plain(ctx: CommandContext, result: Scrubbed) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(result)
    for name in ("began", "ended"):
        at = data["of_pass"][name]
        data["of_pass"][name] = iso(at) if at is not None else None
    for finding in data["findings"]:
        finding["name"] = _name(ctx, finding["session"])
    return {**data, "is_whole": result.is_whole, "damage": result.damage, "ok": not result.damage and not result.unread}


def _name(ctx: CommandContext, session: str) -> str:
    return ctx.name_of(SessionId(session)) if session else ""


def _show(ctx: CommandContext, result: Scrubbed) -> None:
    for finding in sorted(result.findings, key=lambda f: not f.is_damage):
        _say(ctx, finding)
    if result.repaired:
        ctx.say(f"{ctx.mark(True)} {result.repaired} repaired")
    mark = ctx.mark(not result.damage and not result.unread)
    verdict = f"{result.damage} damaged" if result.damage else "every byte agrees"
    if result.unread:
        verdict += f", but {pluralize(result.unread, 'replica')} could not be read"
    ctx.say(f"{mark} {pluralize(result.sessions, 'session')}, {pluralize(result.events, 'event')}: {verdict}")
    if result.copies:
        ctx.say(
            f"  {pluralize(result.copies, 'replica')} compared; a server may still answer from memory, not from disk"
        )
    _say_progress(ctx, result, result.of_pass)


def _say(ctx: CommandContext, finding: StoreFinding) -> None:
    mark = ctx.mark(False) if finding.is_damage else ctx.style("·", fg="yellow")
    where = _name(ctx, finding.session)
    place = f"{inert_line(where)}  " if where else ""
    at = f"e{finding.seq}: " if finding.seq else ""
    ctx.say(f"{mark} {place}{at}{inert_line(finding.what)}")
    if finding.fix:
        ctx.say(f"  {ctx.style('fix:', dim=True)} {inert_line(finding.fix)}")


def _say_progress(ctx: CommandContext, result: Scrubbed, at: Pass) -> None:
    if not result.is_whole:
        ctx.say(f"  time is up after {pluralize(at.sessions, 'session')} of this pass; the next scrub continues there")
    elif result.is_resumed:
        found = f"{at.damage} damaged" if at.damage else "nothing damaged"
        ctx.say(
            f"  this pass is complete: {pluralize(at.sessions, 'session')}, {pluralize(at.events, 'event')}, {found}"
        )
    if not result.keeps_mark:
        ctx.say("  the progress cannot be kept in this store (wakelog store check), so the next scrub starts again")
    elif not result.damage and result.is_whole:
        ctx.say("  without anchors kept elsewhere, a cut-off end would not be seen (wakelog anchor)")
