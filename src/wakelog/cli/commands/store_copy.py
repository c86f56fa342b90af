"""`wakelog store copy`, `backup` and `restore`: copy sessions between stores, backups and archives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import INTEGRITY, PARTIAL
from wakelog.cli.output import Progress, is_url
from wakelog.cli.text import inert_line
from wakelog.model.short_text import pluralize
from wakelog.store import Store
from wakelog.store import open as open_store

if TYPE_CHECKING:
    from wakelog.maintenance.archive import ArchiveResult


@click.command("copy")
@click.argument("target", metavar="STORE")
@click.option("--only", multiple=True, metavar="SESSION", help="Copy only this session, with its ancestors (repeat).")
@click.option("--no-verify", is_flag=True, help="Do not verify what was copied.")
@click.option("--decrypt", is_flag=True, help="Make a copy of an encrypted store that is not encrypted.")
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
            result = archiving.backup(here, target, progress)
        return show_archive(ctx, result, target, "archived")
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
      wakelog store restore --from s3://bucket/archive postgresql://me@db/wakelog
    """
    if origin is None and source is None:
        raise click.UsageError("name what to restore from: wakelog store restore FILE.db|URL")
    if origin is None or source is None:
        return _restore(ctx, origin or source or "", name, ctx.new_store, ctx.url)
    with contextlib.ExitStack() as stack:
        return _restore(ctx, origin, name, lambda: stack.enter_context(open_store(source)), source)


def _restore(ctx: CommandContext, source: str, name: str, target: Callable[[], Store], where: str) -> int:
    """Restores. The target is opened last, so that none is created if there is nothing to restore."""
    if not name and _is_parquet(source):
        from wakelog.maintenance.parquet_restore import restore_parquet

        here = target()
        with Progress(ctx, "restored events") as progress:
            result = restore_parquet(here, source, progress)
        return show_archive(ctx, result, source, "restored")
    if is_url(source) and not source.startswith("sqlite://"):
        from wakelog.maintenance import archive as archiving

        name, archive = archiving.read_list(source, name)
        here = target()
        with Progress(ctx, "restored events", sum(session.seq for session in archive.sessions)) as progress:
            result = archiving.restore(here, source, name, progress)
        return show_archive(ctx, result, source, "restored")
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
        result = copy_store(source, target, chosen, progress=progress, decrypt=decrypt)
    bad = []
    heads = list(target.sessions()) if verify else []
    with Progress(ctx, "verified events", sum(h.seq for h in heads)) as progress:
        for head in heads:
            bad += [] if target.resume(head.session).verify().ok else [head.session]
            progress(head.seq)
    data = {**msgspec.to_builtins(result), "target": hide_password(where), "verified": verify, "damaged": bad}

    def human() -> None:
        there = _were_there(result.unchanged)
        copied = f"{pluralize(result.sessions, 'session')}, {pluralize(result.events, 'event')}"
        ctx.say(f"{copied} → {inert_line(hide_password(where))}  ({there})")
        for session in result.diverged:
            name = inert_line(str(source.engine.head(session)))
            ctx.say(f"{ctx.style('✗', fg='yellow')} {name} has a different history there, and was not copied")
        for session in bad:
            ctx.say(f"{ctx.mark(False)} {inert_line(str(target.engine.head(session)))} does not verify there")
        if verify and not bad:
            ctx.say(f"{ctx.mark(True)} {pluralize(len(heads), 'session')} checked there, all sound")

    ctx.answer("store-copy", data, human)
    return INTEGRITY if bad else PARTIAL if result.diverged else 0


def _were_there(unchanged: int) -> str:
    return f"{unchanged:,} {'was' if unchanged == 1 else 'were'} there already" if unchanged else "all of them new"


def show_archive(ctx: CommandContext, result: ArchiveResult, place: str, word: str) -> int:
    data = {**msgspec.to_builtins(result), "place": hide_password(place)}

    def human() -> None:
        there = _were_there(result.unchanged)
        ctx.say(f"{pluralize(result.sessions, 'session')} {word}  ({there})  {inert_line(hide_password(place))}")
        for session, problem in result.problems.items():
            ctx.say(f"{ctx.mark(False)} {inert_line(ctx.name_of(session))}: {inert_line(problem)}")
        for damage in result.damaged_files:
            ctx.say(f"{ctx.style('✗', fg='yellow')} {inert_line(damage)}: what it held was taken from bundles")
        ctx.say(f"  as of {result.list}")

    ctx.answer("store-archive", data, human)
    return INTEGRITY if result.is_damaged else PARTIAL if result.problems else 0
