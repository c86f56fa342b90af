"""`wakelog store`: inspects, checks and migrates the store. Scrubbing, copying and other parts are in store_*.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click
import msgspec

from wakelog.cli.commands.doctor import say_checks
from wakelog.cli.commands.store_copy import backup, copy, restore
from wakelog.cli.commands.store_keys import keys_command
from wakelog.cli.commands.store_scrub import scrub
from wakelog.cli.commands.store_shards import create, placement_lines, shards_command
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.output import Progress
from wakelog.cli.render.table import say_table
from wakelog.cli.text import clock, iso, size
from wakelog.config import settings as config
from wakelog.engine import MigrationStep
from wakelog.maintenance.check import check_store, require_migrations
from wakelog.maintenance.info import StoreInfo, info
from wakelog.model.short_text import pluralize

MAX_KINDS = 8
_DURABILITY = {
    "synced": "synced: an answered append survives a power cut",
    "written": "written: an answered append survives kill -9, not a power cut",
    "memory": "memory: gone with the process",
}


@click.group("store")
def store_command() -> None:
    """Create, inspect, check, migrate, copy and back up the store.

    Examples:
      wakelog store info
      wakelog store check
      wakelog store scrub --for 10m
      wakelog store backup /mnt/backup/wakelog.db
      du -sh "$(wakelog store path)"
    """


@store_command.command("path")
@common
def path(ctx: CommandContext) -> None:
    """Print where the store is, or would be created.

    Example:
      wakelog store path
    """
    url = hide_password(ctx.url)
    ctx.answer("store-path", {"path": url}, url)


@store_command.command("info")
@click.option("--full", is_flag=True, help="Count every event, also in a big store.")
@common
def store_info(ctx: CommandContext, full: bool) -> None:
    """Show sessions, events, bytes on disk and by kind of event, durability and retention.

    Example:
      wakelog store info --json
    """
    policy = config.policy(config.load())
    with Progress(ctx, "counted events") as progress:
        found = info(ctx.store, policy, full=full, progress=progress)
    data = msgspec.to_builtins(found)
    for part, name in ((data, "oldest"), (data, "newest"), (data["scrubbed"], "began"), (data["scrubbed"], "ended")):
        if part is not None:
            part[name] = iso(part[name]) if part[name] is not None else None
    ctx.answer("store-info", data, lambda: _show_store(ctx, found))


@store_command.command("check")
@common
def check(ctx: CommandContext) -> int:
    """Check that the store can be used: its version, its file, the head of every session, the newest commits, blobs and
    the index. This is quick and changes nothing; `wakelog store scrub` reads every byte. The exit code is 4 when
    something fails.

    Example:
      wakelog store check
    """
    checks = list(check_store(ctx.store))
    is_ok = all(found.level != "fail" for found in checks)
    data = {"ok": is_ok, "checks": msgspec.to_builtins(checks)}
    ctx.answer("store-check", data, lambda: say_checks(ctx, checks))
    return 0 if is_ok else INTEGRITY


@store_command.command("migrate")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and stop.")
@common
def migrate(ctx: CommandContext, dry_run: bool) -> None:
    """Upgrade the tables of this store to the version of this wakelog, in place, while the store is in use.

    Steps only go forward. If it is interrupted, run it again; several may run at once.

    Examples:
      wakelog store migrate --dry-run
      wakelog store migrate
    """
    engine = require_migrations(ctx.store)
    before, waiting = engine.version(), engine.waiting()
    steps = [] if dry_run else list(engine.migrate())
    data = {
        "before": before,
        "after": engine.version(),
        "dry_run": dry_run,
        "steps": [{**msgspec.to_builtins(step), "done": step in steps} for step in waiting],
    }
    ctx.answer("store-migrate", data, lambda: _show_steps(ctx, before, waiting, dry_run))


def _show_steps(ctx: CommandContext, before: int, waiting: Sequence[MigrationStep], dry_run: bool) -> None:
    if not waiting:
        ctx.say(f"{ctx.mark(True)} version {before}: nothing to migrate")
        return
    for step in waiting:
        mark = ctx.style("·", dim=True) if dry_run else ctx.mark(True)
        ctx.say(f"{mark} version {step.version}: {step.what}")
        if step.breaks:
            ctx.say("  an older wakelog can no longer open the store after this")
        for statement in step.statements if dry_run else ():
            ctx.say(f"  {ctx.style(' '.join(statement.split()), dim=True)}")
    if dry_run:
        ctx.say(f"Nothing was done: wakelog store migrate goes from version {before} to {waiting[-1].version}.")


def _show_store(ctx: CommandContext, found: StoreInfo) -> None:
    for title, text in _facts(ctx, found):
        ctx.say(f"{ctx.style(f'{title:<12}', dim=True)}{text}")
    if found.shards:
        ctx.say("")
        ctx.say_all(placement_lines(ctx, found.shards))
    if found.by_kind:
        ctx.say("")
        estimate = ", estimated (--full counts)" if found.is_sampled else ""
        ctx.remark(f"bytes by kind, before compression{estimate}")
        rows = [(k.kind, f"{k.events:,}", size(k.bytes)) for k in found.by_kind[:MAX_KINDS]]
        if rest := found.by_kind[MAX_KINDS:]:
            others = f"{len(rest)} other kinds"
            rows.append((others, f"{sum(k.events for k in rest):,}", size(sum(k.bytes for k in rest))))
        say_table(ctx, "kind 12 | > events | > bytes", rows, titles=False)


def _facts(ctx: CommandContext, found: StoreInfo) -> Iterator[tuple[str, str]]:
    yield "store", found.path or "in memory"
    version = f" (version {found.version})" if found.version is not None else ""
    yield "engine", f"{found.engine}{version}, {_DURABILITY.get(found.durability, found.durability)}"
    if found.workers:
        yield "workers", ", ".join(f"{name} ({pluralize(parts, 'part')})" for name, parts in found.workers.items())
    if found.waiting:
        steps = f"{found.waiting} {'step waits' if found.waiting == 1 else 'steps wait'}"
        yield "migration", ctx.style(f"{steps} (wakelog store migrate); it can be used meanwhile", fg="yellow")
    if found.blobs:
        yield "blobs", hide_password(found.blobs)
    if found.encryption:
        ring = f"AES-256-GCM, key ring {found.encryption}"
        no_key = ctx.style(f"{ring}; opened without the key", fg="yellow")
        yield "encryption", f"{ring}; the index is in memory only" if found.has_key else no_key
    statuses = ", ".join(f"{count} {status}" for status, count in found.by_status.items())
    forks = f"; {pluralize(found.forks, 'fork')} among them" if found.forks else ""
    yield "sessions", f"{found.sessions}  ({statuses}{forks})" if found.sessions else "none yet"
    yield "events", f"{found.events:,}"
    if found.files:
        yield "on disk", _disk_text(found.files)
    if found.oldest is not None and found.newest is not None:
        yield "from", clock(found.oldest, utc=ctx.utc, long=True)
        yield "to", clock(found.newest, utc=ctx.utc, long=True)
    yield "retention", found.retention
    are_stored = ctx.style("are stored (redact.enabled is false)", fg="yellow")
    yield "secrets", "are removed before storing" if found.redacts else are_stored
    if found.scrubbed is not None and found.scrubbed.ended is not None:
        damage = f"{found.scrubbed.damage} damaged" if found.scrubbed.damage else "nothing was damaged"
        yield "scrubbed", f"{clock(found.scrubbed.ended, utc=ctx.utc, long=True)}, {damage}"
    if found.held is None:
        is_readable = found.has_key or not found.encryption
        yield "held", "not counted (--full counts)" if is_readable else "not known: encrypted"
    elif found.held:
        yield "held", f"{pluralize(found.held, 'session')} (wakelog hold ls)"
    if found.unreadable:
        yield "damaged", ctx.style(f"{found.unreadable} (wakelog store scrub)", fg="red")


def _disk_text(files: Mapping[str, int]) -> str:
    """The total, and its parts; for a server, the biggest ones."""
    names = {"log": "log", "wal": "write-ahead log", "index": "index", "index_wal": "index's write-ahead log"}
    is_remote = "log" not in files
    shown = sorted(files.items(), key=lambda item: -item[1])[:3] if is_remote else files.items()
    parts = [f"{names.get(name, name)} {size(count)}" for name, count in shown if count]
    where = "all namespaces, on the server: " if is_remote else ""
    return f"{size(sum(files.values()))}  ({where}{', '.join(parts)})"


for _command in (create, keys_command, shards_command, scrub, copy, backup, restore):
    store_command.add_command(_command)
