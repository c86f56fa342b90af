"""`wakelog gc`: applies retention. Shows what would be removed; does it with --yes."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.output import Progress
from wakelog.cli.render.table import say_table
from wakelog.cli.text import age, inert_line, iso, size
from wakelog.config import settings as config
from wakelog.config.amounts import parse_age, parse_size
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.maintenance.retention import Applied, Planned, apply, plan
from wakelog.model.short_text import pluralize

MAX_SKIPPED = 10


@click.command("gc")
@click.option("--older-than", metavar="AGE", help="Select sessions without an event for this long: 90d, 12w, 1y.")
@click.option("--max-size", metavar="SIZE", help="Select the oldest sessions until the rest fits: 500MB, 20GB.")
@click.option("--keep-last", type=click.IntRange(0), metavar="N", help="Never select the newest N sessions.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(["open", "active", "paused", "closed", "archived"]),
    help="Select sessions with this status (default: closed and archived).",
)
@click.option("--action", type=click.Choice(["archive", "prune", "delete"]), help="Do this with them (default: prune).")
@click.option(
    "--archive-to", metavar="URL", help="Archive each session first, as a bundle in s3://bucket/prefix or a folder."
)
@click.option("--archived-in", metavar="PLACE", help="Leave alone what this archive in Parquet does not have yet.")
@click.option("--keep-totals", is_flag=True, help="Keep the totals of deleted sessions, as numbers only.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; this is the default.")
@click.option("-y", "--yes", is_flag=True, help="Do it.")
@common
def gc_command(
    ctx: CommandContext,
    archive_to: str | None,
    archived_in: str | None,
    keep_totals: bool,
    dry_run: bool,
    yes: bool,
    **rules: Any,
) -> int:
    """Apply retention: show which sessions would be archived, pruned or deleted, and do it with --yes. By default
    everything is kept. Sessions on hold, and sessions with live forks, are left alone.

    Prune drops the content and keeps headers, hashes, the last state and the totals for `rollup`, so that the session
    still verifies. With --archive-to, a session is removed only after its archive is complete and verified; an existing
    archive is never replaced. With --archived-in, a session is left alone until the archive has all of it.

    Examples:
      wakelog gc --older-than 90d
      wakelog gc --max-size 20GB --keep-last 50 --action delete --yes
      wakelog gc --older-than 1y --action delete --archive-to s3://archive --yes
      wakelog gc --older-than 30d --archived-in s3://bucket/archive --yes
    """
    policy = _policy(rules)
    archived = None
    if archived_in:
        from wakelog.maintenance.parquet_runs import archived_heads

        archived = archived_heads(archived_in)
    planned = plan(ctx.store, policy, ctx.store.clock(), archived)
    doing = [p for p in planned if p.action != "skip"]
    is_done = yes and not dry_run and bool(doing)
    if ctx.is_for_people:
        _show_plan(ctx, policy, planned)
    applied: list[Applied] = []
    if is_done:
        with Progress(ctx, f"{policy.action}d sessions", len(doing)) as progress:
            for result in apply(ctx.store, doing, archive_to=archive_to, keep_totals=keep_totals):
                applied.append(result)
                progress()
    data = {
        "policy": str(policy),
        "dry_run": not is_done,
        "planned": [{**msgspec.to_builtins(p), "at": iso(p.at)} for p in planned],
        "applied": [{"session": a.planned.session, "done": a.done, "problem": a.problem or None} for a in applied],
        "bytes": sum(a.planned.bytes for a in applied if a.done) if is_done else sum(p.bytes for p in doing),
    }
    ctx.answer("gc", data, lambda: _show_end(ctx, policy, doing, applied, is_done))
    return PARTIAL if any(not a.done for a in applied) else 0


def _policy(rules: dict[str, Any]) -> RetentionPolicy:
    """The policy of the settings, overridden by the options."""
    changes = {
        "keep_us": rules["older_than"] and parse_age(rules["older_than"]),
        "max_bytes": rules["max_size"] and parse_size(rules["max_size"]),
        "keep_last": rules["keep_last"],
        "statuses": rules["statuses"] or None,
        "action": rules["action"],
    }
    chosen = {name: value for name, value in changes.items() if value is not None}
    return msgspec.structs.replace(config.policy(config.load()), **chosen)


def _show_plan(ctx: CommandContext, policy: RetentionPolicy, planned: list[Planned]) -> None:
    ctx.say(f"{ctx.style('Retention', bold=True)}  {policy}")
    now = ctx.store.clock()
    doing = [p for p in planned if p.action != "skip"]
    skipped = [p for p in planned if p.action == "skip"]
    shown = [*doing, *skipped[:MAX_SKIPPED]]
    if shown:
        rows = [(p.action, p.name or p.session, age(p.at, now), size(p.bytes), p.reason) for p in shown]
        say_table(ctx, " | session 12 | last event | > size | why 20", rows, titles=False)
    if len(skipped) > MAX_SKIPPED:
        ctx.say(f"and {len(skipped) - MAX_SKIPPED} more that are left alone (--json lists them)")


def _show_end(
    ctx: CommandContext, policy: RetentionPolicy, doing: list[Planned], applied: list[Applied], is_done: bool
) -> None:
    if policy.keeps_everything:
        ctx.say(
            "Nothing to do. To plan something: wakelog gc --older-than 90d, or wakelog config set retention.keep 90d"
        )
    elif not doing:
        ctx.say("Nothing to do.")
    elif not is_done:
        total = "" if policy.action == "archive" else f", up to {size(sum(p.bytes for p in doing))}"
        ctx.say(f"{pluralize(len(doing), 'session')}{total}. Nothing was done: --yes does it.")
    else:
        for result in applied:
            if not result.done:
                name = inert_line(result.planned.name or result.planned.session)
                ctx.say(f"{ctx.mark(False)} {name}: {inert_line(result.problem)}")
        done = sum(result.done for result in applied)
        word = {"archive": "Archived", "prune": "Pruned", "delete": "Deleted"}[policy.action]
        ctx.say(f"{word} {done} of {pluralize(len(doing), 'session')}.")
