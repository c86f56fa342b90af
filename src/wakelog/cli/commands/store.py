"""`wakelog store`: what is in this store, where it is, whether it can be used, and its version.

Its other commands are beside this one: scrub.py, and store_copy.py for copy, backup and restore."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from wakelog.cli.commands.scrub import scrub
from wakelog.cli.commands.store_copy import backup, copy, restore
from wakelog.cli.context import Context, common, hide_password
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.progress import Progress
from wakelog.cli.render.checks import say_checks
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.text import clock, iso, size
from wakelog.config import settings as config
from wakelog.engine import MigrationStep
from wakelog.maintenance.check import check_store, require_migrations
from wakelog.maintenance.info import StoreInfo, info

KINDS_SHOWN = 8
_DURABILITY = {
    "synced": "synced: an answered append survives a power cut",
    "written": "written: an answered append survives kill -9, not a power cut",
    "memory": "memory: gone with the process",
}


@click.group("store")
def store_command() -> None:
    """The store as a whole.

    \b
    Examples:
      wakelog store info
      wakelog store check
      wakelog store scrub --for 10m
      wakelog store backup /mnt/backup/wakelog.db
      du -sh "$(wakelog store path)"
    """


@store_command.command("path")
@common
def path(ctx: Context) -> None:
    """Prints where the store is, whether or not there is one yet.

    \b
    Example:
      wakelog store path
    """
    url = hide_password(ctx.url)
    ctx.answer("store-path", {"path": url}, lambda: ctx.say(url))


@store_command.command("info")
@click.option("--full", is_flag=True, help="Count bytes by kind over every event, also in a big store.")
@common
def store_info(ctx: Context, full: bool) -> None:
    """Sessions, events, bytes on disk and by kind of event, durability, and what will be kept.

    \b
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
    ctx.answer("store-info", data, lambda: _show(ctx, found))


@store_command.command("check")
@common
def check(ctx: Context) -> int:
    """Is this store usable? Its version, its file, every session's head, the newest commits, blobs, the index. Quick,
    and changes nothing; `wakelog store scrub` reads every byte. Exit code 4 when something fails.

    \b
    Example:
      wakelog store check
    """
    checks = list(check_store(ctx.store))
    is_ok = all(each.level != "fail" for each in checks)
    data = {"ok": is_ok, "checks": msgspec.to_builtins(checks)}
    ctx.answer("store-check", data, lambda: say_checks(ctx, checks))
    return 0 if is_ok else INTEGRITY


@store_command.command("migrate")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@common
def migrate(ctx: Context, dry_run: bool) -> None:
    """Brings the tables of this store forward to the version of this wakelog, in place, while it is in use.

    Steps only go forward. Cut off anywhere, it goes on when it is run again; several may run it at once.

    \b
    Examples:
      wakelog store migrate --dry-run
      wakelog store migrate
    """
    engine = require_migrations(ctx.store)
    before, waiting = engine.version(), engine.waiting()
    done = [] if dry_run else list(engine.migrate())
    data = {
        "before": before,
        "after": engine.version(),
        "dry_run": dry_run,
        "steps": [{**msgspec.to_builtins(step), "done": step in done} for step in waiting],
    }
    ctx.answer("store-migrate", data, lambda: _show_steps(ctx, before, waiting, dry_run))


def _show_steps(ctx: Context, before: int, waiting: Sequence[MigrationStep], dry_run: bool) -> None:
    if not waiting:
        ctx.say(f"{ctx.style('✔', fg='green')} version {before}: nothing waits")
        return
    for step in waiting:
        mark = ctx.style("·", dim=True) if dry_run else ctx.style("✔", fg="green")
        ctx.say(f"{mark} version {step.version}: {step.what}")
        if step.breaks:
            ctx.say("  an older wakelog can no longer open the store after this")
        for statement in step.statements if dry_run else ():
            ctx.say(f"  {ctx.style(' '.join(statement.split()), dim=True)}")
    if dry_run:
        ctx.say(f"Nothing was done: wakelog store migrate goes from version {before} to {waiting[-1].version}.")


def _show(ctx: Context, found: StoreInfo) -> None:
    def row(title: str, text: str) -> None:
        ctx.say(f"{ctx.style(f'{title:<12}', dim=True)}{text}")

    row("store", found.path or "in memory")
    version = f" (version {found.version})" if found.version is not None else ""
    row("engine", f"{found.engine}{version}, {_DURABILITY.get(found.durability, found.durability)}")
    if found.waiting:
        steps = f"{found.waiting} {'step waits' if found.waiting == 1 else 'steps wait'}"
        row("migration", ctx.style(f"{steps} (wakelog store migrate); it can be used meanwhile", fg="yellow"))
    if found.blobs:
        row("blobs", hide_password(found.blobs))
    statuses = ", ".join(f"{count} {status}" for status, count in found.by_status.items())
    forks = f"; {found.forks} {'fork' if found.forks == 1 else 'forks'} among them" if found.forks else ""
    row("sessions", f"{found.sessions}  ({statuses}{forks})" if found.sessions else "none yet")
    row("events", f"{found.events:,}")
    if found.files:
        names = {"log": "log", "wal": "write-ahead log", "index": "index", "index_wal": "index's write-ahead log"}
        is_remote = "log" not in found.files
        big = sorted(found.files.items(), key=lambda each: -each[1])[:3] if is_remote else found.files.items()
        parts = [f"{names.get(name, name)} {size(count)}" for name, count in big if count]
        where = "all namespaces, on the server: " if is_remote else ""
        row("on disk", f"{size(sum(found.files.values()))}  ({where}{', '.join(parts)})")
    if found.oldest is not None and found.newest is not None:
        row("from", clock(found.oldest, utc=ctx.utc, long=True))
        row("to", clock(found.newest, utc=ctx.utc, long=True))
    row("retention", found.retention)
    row(
        "secrets",
        "are taken out before storing"
        if found.redacts
        else ctx.style("are stored (redact.enabled is false)", fg="yellow"),
    )
    if found.scrubbed is not None and found.scrubbed.ended is not None:
        damage = f", {found.scrubbed.damage} damaged" if found.scrubbed.damage else ", nothing was damaged"
        row("scrubbed", f"{clock(found.scrubbed.ended, utc=ctx.utc, long=True)}{damage}")
    if found.held is None:
        row("held", "not counted (--full counts)")
    elif found.held:
        row("held", f"{found.held} {'session' if found.held == 1 else 'sessions'} (wakelog hold ls)")
    if found.unreadable:
        row("damaged", ctx.style(f"{found.unreadable} (wakelog store scrub)", fg="red"))
    if found.by_kind:
        ctx.say("")
        estimate = ", estimated (--full counts)" if found.is_sampled else ""
        ctx.say(ctx.style(f"bytes by kind, before compression{estimate}", dim=True))
        rows = [(k.kind, f"{k.events:,}", size(k.bytes)) for k in found.by_kind[:KINDS_SHOWN]]
        rest = found.by_kind[KINDS_SHOWN:]
        if rest:
            others = f"{len(rest)} other kinds"
            rows.append((others, f"{sum(k.events for k in rest):,}", size(sum(k.bytes for k in rest))))
        columns = [Column("kind", 12), Column("events", right=True), Column("bytes", right=True)]
        say_table(ctx, columns, rows, titles=False)


for _each in (scrub, copy, backup, restore):
    store_command.add_command(_each)
