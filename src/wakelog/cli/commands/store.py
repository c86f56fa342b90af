"""`wakelog store`: inspects, checks and migrates the store. Scrubbing, copying and other parts are in store_*.py."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from wakelog.cli.commands.doctor import say_checks
from wakelog.cli.commands.store_keys import keys_command
from wakelog.cli.commands.store_shards import create, say_placement, shards_command
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import INTEGRITY, PARTIAL
from wakelog.cli.output import Progress, is_url
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.text import clock, counted, inert_line, iso, size
from wakelog.config import settings as config
from wakelog.config.amounts import parse_interval
from wakelog.engine import MigrationStep, StoreFinding
from wakelog.maintenance.check import check_store, require_migrations
from wakelog.maintenance.info import StoreInfo, info
from wakelog.maintenance.scrub import Pass, Scrubbed, open_pass
from wakelog.maintenance.scrub import scrub as scrub_store
from wakelog.store import Store
from wakelog.store import open as open_store

if TYPE_CHECKING:
    from wakelog.maintenance.archive import ArchiveResult

MAX_KINDS = 8
_DURABILITY = {
    "synced": "synced: an answered append survives a power cut",
    "written": "written: an answered append survives kill -9, not a power cut",
    "memory": "memory: gone with the process",
}


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
    The exit code is 4 when something is damaged. With --repair, rebuild caches and delete orphans.

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
        done = scrub_store(
            ctx.store,
            for_s=for_s,
            rate=rate,
            repair=repair,
            anew=anew,
            all_replicas=all_replicas,
            progress=progress,
        )
    ctx.answer("store-scrub", _plain(ctx, done), lambda: _show(ctx, done))
    return INTEGRITY if done.damage else 0


def _events_of(ctx: CommandContext) -> int:
    """How many events there are to read, without those of damaged sessions."""
    engine = ctx.store.engine
    heads = (engine.head(session) for session, problem in ctx.store.session_ids() if problem is None)
    return sum(h.seq - (h.fork.at if h.fork else 0) for h in heads)


def _plain(ctx: CommandContext, done: Scrubbed) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(done)
    for name in ("began", "ended"):
        at = data["of_pass"][name]
        data["of_pass"][name] = iso(at) if at is not None else None
    for finding in data["findings"]:
        finding["name"] = _name(ctx, finding["session"])
    return {**data, "is_whole": done.is_whole, "damage": done.damage, "ok": not done.damage}


def _name(ctx: CommandContext, session: str) -> str:
    """The name of a finding's session; its id if the session is too damaged to tell."""
    from wakelog.errors import WakelogError
    from wakelog.model.ids import SessionId

    try:
        return ctx.name_of(SessionId(session)) if session else ""
    except WakelogError:
        return session


def _show(ctx: CommandContext, done: Scrubbed) -> None:
    for finding in sorted(done.findings, key=lambda f: not f.is_damage):
        _say(ctx, finding)
    if done.repaired:
        ctx.say(f"{ctx.style('✔', fg='green')} {done.repaired} repaired")
    mark = ctx.style("✗", fg="red", bold=True) if done.damage else ctx.style("✔", fg="green")
    verdict = f"{done.damage} damaged" if done.damage else "every byte agrees"
    ctx.say(f"{mark} {counted(done.sessions, 'session')}, {counted(done.events, 'event')}: {verdict}")
    if done.copies:
        ctx.say(f"  {counted(done.copies, 'replica')} compared; a server may still answer from memory, not from disk")
    _say_progress(ctx, done, done.of_pass)


def _say(ctx: CommandContext, finding: StoreFinding) -> None:
    mark = ctx.style("✗", fg="red", bold=True) if finding.is_damage else ctx.style("·", fg="yellow")
    where = _name(ctx, finding.session)
    place = f"{inert_line(where)}  " if where else ""
    at = f"e{finding.seq}: " if finding.seq else ""
    ctx.say(f"{mark} {place}{at}{inert_line(finding.what)}")
    if finding.fix:
        ctx.say(f"  {ctx.style('fix:', dim=True)} {inert_line(finding.fix)}")


def _say_progress(ctx: CommandContext, done: Scrubbed, at: Pass) -> None:
    if not done.is_whole:
        ctx.say(f"  time is up after {counted(at.sessions, 'session')} of this pass; the next scrub continues there")
    elif done.is_resumed:
        found = f"{at.damage} damaged" if at.damage else "nothing damaged"
        ctx.say(f"  this pass is complete: {counted(at.sessions, 'session')}, {counted(at.events, 'event')}, {found}")
    if not done.keeps_mark:
        ctx.say("  this store cannot keep the progress of a scrub, so each one starts again (wakelog store migrate)")
    elif not done.damage and done.is_whole:
        ctx.say("  without anchors kept elsewhere, a cut-off end would not be seen (wakelog anchor)")


@click.command("copy")
@click.argument("target", metavar="STORE")
@click.option("--only", multiple=True, metavar="SESSION", help="Copy only this session, with its ancestors (repeat).")
@click.option("--no-verify", is_flag=True, help="Do not verify what was copied.")
@click.option("--decrypt", is_flag=True, help="From an encrypted store: make a copy that is not encrypted.")
@common
def copy(ctx: CommandContext, target: str, only: tuple[str, ...], no_verify: bool, decrypt: bool) -> int:
    """Copy all sessions to another store, of any engine, and verify them there. Every hash is kept.

    Repeat it to bring the copy up to date. A session that has changed in both stores is left alone and reported (exit
    code 7). The copy of an encrypted store is encrypted, and needs no key.

    Examples:
      wakelog store copy postgresql://wakelog@db.example/wakelog
      wakelog --store postgresql://wakelog@db.example/wakelog store copy ~/laptop
    """
    here = ctx.store  # opened first, so that no target is created if there is nothing to copy
    with open_store(target) as there:
        return _copy(ctx, here, there, target, only, not no_verify, decrypt=decrypt)


@click.command("backup")
@click.argument("target", metavar="FILE.db|URL")
@common
def backup(ctx: CommandContext, target: str) -> int:
    """Back up this store, while it is in use, into a file that is a store itself. Repeat it to add what is new.

    To a URL such as s3://bucket/prefix, each session is written as a bundle that is never replaced, with a list of what
    belonged to the store at that moment. A damaged session is left out and reported (exit code 4).

    Examples:
      wakelog store backup /mnt/backup/wakelog.db
      wakelog --store /mnt/backup/wakelog.db ls
      wakelog store backup s3://bucket/wakelog
    """
    here = ctx.store
    if is_url(target) and not target.startswith("sqlite://"):
        from wakelog.maintenance import archive as archiving

        with Progress(ctx, "archived events", sum(h.seq for h in here.sessions())) as progress:
            done = archiving.backup(here, target, progress)
        return show_archive(ctx, done, target, "archived")
    with open_store(target) as there:
        return _copy(ctx, here, there, target, (), True)


@click.command("restore")
@click.argument("source", metavar="FILE.db|URL", required=False)
@click.option("--list", "name", default="", metavar="NAME", help="From a URL: restore this list, not the newest one.")
@click.option(
    "--from", "origin", metavar="FILE.db|URL", help="Restore from here; the argument is then the store to fill."
)
@common
def restore(ctx: CommandContext, source: str | None, name: str, origin: str | None) -> int:
    """Restore from a backup, or an archive in Parquet, what this store lacks. Newer events here stay as they are.

    The store can be of any engine and is created if there is none. Every hash is kept. Where a file of an archive is
    damaged, its sessions come back from their bundles, if it has any.

    Examples:
      wakelog store restore /mnt/backup/wakelog.db
      wakelog store restore s3://bucket/wakelog
      wakelog store restore --from s3://bucket/archive postgresql://wakelog@db.example/wakelog
    """
    if origin is None:
        if source is None:
            raise click.UsageError("name what to restore from: wakelog store restore FILE.db|URL")
        return _restore(ctx, source, name, ctx.new_store, ctx.url)
    if source is None:
        return _restore(ctx, origin, name, ctx.new_store, ctx.url)
    with contextlib.ExitStack() as stack:
        return _restore(ctx, origin, name, lambda: stack.enter_context(open_store(source)), source)


def _restore(ctx: CommandContext, source: str, name: str, target: Callable[[], Store], where: str) -> int:
    """Restores. The target is opened last, so that none is created if there is nothing to restore."""
    if not name and _is_parquet(source):
        from wakelog.maintenance.parquet_restore import restore_parquet

        here = target()
        with Progress(ctx, "restored events") as progress:
            done = restore_parquet(here, source, progress)
        return show_archive(ctx, done, source, "restored")
    if is_url(source) and not source.startswith("sqlite://"):
        from wakelog.maintenance import archive as archiving

        name, found = archiving.read_list(source, name)
        here = target()
        with Progress(ctx, "restored events", sum(session.seq for session in found.sessions)) as progress:
            done = archiving.restore(here, source, name, progress)
        return show_archive(ctx, done, source, "restored")
    with open_store(source, create=False) as there:
        return _copy(ctx, there, target(), where, (), True)


def _is_parquet(source: str) -> bool:
    if source.startswith("sqlite://") or (not is_url(source) and not Path(source, "runs").is_dir()):
        return False
    from wakelog.maintenance.parquet_runs import is_parquet

    return is_parquet(source)


def _copy(
    ctx: CommandContext,
    source: Store,
    target: Store,
    where: str,
    only: tuple[str, ...],
    verify: bool,
    *,
    decrypt: bool = False,
) -> int:
    from wakelog.maintenance.copy import copy_store

    chosen = [source.find(name) for name in only] or None
    with Progress(ctx, "copied events") as progress:
        done = copy_store(source, target, chosen, progress=progress, decrypt=decrypt)
    bad = []
    heads = list(target.sessions()) if verify else []
    with Progress(ctx, "verified events", sum(h.seq for h in heads)) as progress:
        for head in heads:
            bad += [] if target.resume(head.session).verify().ok else [head.session]
            progress(head.seq)
    data = {**msgspec.to_builtins(done), "target": hide_password(where), "verified": verify, "damaged": bad}

    def human() -> None:
        there = f"{done.unchanged} were there already" if done.unchanged else "nothing was there before"
        copied = f"{counted(done.sessions, 'session')}, {counted(done.events, 'event')}"
        ctx.say(f"{copied} → {inert_line(hide_password(where))}  ({there})")
        for session in done.diverged:
            name = inert_line(source.engine.head(session).name or session)
            ctx.say(f"{ctx.style('✗', fg='yellow')} {name} has a different history there, and was not copied")
        for session in bad:
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {session} does not verify there")
        if verify and not bad:
            ctx.say(f"{ctx.style('✔', fg='green')} {counted(len(heads), 'session')} checked there, all sound")

    ctx.answer("store-copy", data, human)
    return INTEGRITY if bad else PARTIAL if done.diverged else 0


def show_archive(ctx: CommandContext, done: ArchiveResult, place: str, word: str) -> int:
    data = {**msgspec.to_builtins(done), "place": hide_password(place)}

    def human() -> None:
        there = f"{done.unchanged} were there already" if done.unchanged else "nothing was there before"
        ctx.say(f"{counted(done.sessions, 'session')} {word}  ({there})  {inert_line(hide_password(place))}")
        for session, problem in done.problems.items():
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {session}: {inert_line(problem)}")
        ctx.say(f"  as of {done.list}")

    ctx.answer("store-archive", data, human)
    return INTEGRITY if done.is_damaged else PARTIAL if done.problems else 0


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
    done = [] if dry_run else list(engine.migrate())
    data = {
        "before": before,
        "after": engine.version(),
        "dry_run": dry_run,
        "steps": [{**msgspec.to_builtins(step), "done": step in done} for step in waiting],
    }
    ctx.answer("store-migrate", data, lambda: _show_steps(ctx, before, waiting, dry_run))


def _show_steps(ctx: CommandContext, before: int, waiting: Sequence[MigrationStep], dry_run: bool) -> None:
    if not waiting:
        ctx.say(f"{ctx.style('✔', fg='green')} version {before}: nothing to migrate")
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


def _encryption(ctx: CommandContext, found: StoreInfo) -> str:
    if found.has_key:
        return f"AES-256-GCM, key ring {found.encryption}; the index is in memory only"
    return ctx.style(f"AES-256-GCM, key ring {found.encryption}; opened without the key", fg="yellow")


def _show_store(ctx: CommandContext, found: StoreInfo) -> None:
    def row(title: str, text: str) -> None:
        ctx.say(f"{ctx.style(f'{title:<12}', dim=True)}{text}")

    row("store", found.path or "in memory")
    version = f" (version {found.version})" if found.version is not None else ""
    row("engine", f"{found.engine}{version}, {_DURABILITY.get(found.durability, found.durability)}")
    if found.workers:
        row("workers", ", ".join(f"{name} ({counted(parts, 'part')})" for name, parts in found.workers.items()))
    if found.waiting:
        steps = f"{found.waiting} {'step waits' if found.waiting == 1 else 'steps wait'}"
        row("migration", ctx.style(f"{steps} (wakelog store migrate); it can be used meanwhile", fg="yellow"))
    if found.blobs:
        row("blobs", hide_password(found.blobs))
    if found.encryption:
        row("encryption", _encryption(ctx, found))
    statuses = ", ".join(f"{count} {status}" for status, count in found.by_status.items())
    forks = f"; {counted(found.forks, 'fork')} among them" if found.forks else ""
    row("sessions", f"{found.sessions}  ({statuses}{forks})" if found.sessions else "none yet")
    row("events", f"{found.events:,}")
    if found.files:
        names = {"log": "log", "wal": "write-ahead log", "index": "index", "index_wal": "index's write-ahead log"}
        is_remote = "log" not in found.files
        big = sorted(found.files.items(), key=lambda item: -item[1])[:3] if is_remote else found.files.items()
        parts = [f"{names.get(name, name)} {size(count)}" for name, count in big if count]
        where = "all namespaces, on the server: " if is_remote else ""
        row("on disk", f"{size(sum(found.files.values()))}  ({where}{', '.join(parts)})")
    if found.oldest is not None and found.newest is not None:
        row("from", clock(found.oldest, utc=ctx.utc, long=True))
        row("to", clock(found.newest, utc=ctx.utc, long=True))
    row("retention", found.retention)
    secrets = "are removed before storing"
    row("secrets", secrets if found.redacts else ctx.style("are stored (redact.enabled is false)", fg="yellow"))
    if found.scrubbed is not None and found.scrubbed.ended is not None:
        damage = f", {found.scrubbed.damage} damaged" if found.scrubbed.damage else ", nothing was damaged"
        row("scrubbed", f"{clock(found.scrubbed.ended, utc=ctx.utc, long=True)}{damage}")
    if found.held is None:
        row("held", "not counted (--full counts)" if found.has_key or not found.encryption else "not known: encrypted")
    elif found.held:
        row("held", f"{counted(found.held, 'session')} (wakelog hold ls)")
    if found.unreadable:
        row("damaged", ctx.style(f"{found.unreadable} (wakelog store scrub)", fg="red"))
    if found.shards:
        ctx.say("")
        say_placement(ctx, found.shards)
    if found.by_kind:
        ctx.say("")
        estimate = ", estimated (--full counts)" if found.is_sampled else ""
        ctx.remark(f"bytes by kind, before compression{estimate}")
        rows = [(k.kind, f"{k.events:,}", size(k.bytes)) for k in found.by_kind[:MAX_KINDS]]
        if rest := found.by_kind[MAX_KINDS:]:
            others = f"{len(rest)} other kinds"
            rows.append((others, f"{sum(k.events for k in rest):,}", size(sum(k.bytes for k in rest))))
        columns = [Column("kind", 12), Column("events", right=True), Column("bytes", right=True)]
        say_table(ctx, columns, rows, titles=False)


for _command in (create, keys_command, shards_command, scrub, copy, backup, restore):
    store_command.add_command(_command)
