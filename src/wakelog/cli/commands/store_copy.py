"""`wakelog store copy`, `backup` and `restore`: sessions to another store or an archive, and back, every hash kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from wakelog.cli.context import Context, common, hide_password
from wakelog.cli.errors import INTEGRITY, PARTIAL
from wakelog.cli.progress import Progress
from wakelog.cli.text import inert
from wakelog.engines.objects import is_url
from wakelog.store import Store
from wakelog.store import open as open_store

if TYPE_CHECKING:
    from wakelog.maintenance.archive import Done


@click.command("copy")
@click.argument("target", metavar="STORE")
@click.option("--only", "only", multiple=True, metavar="SESSION", help="Only this session, with its ancestors.")
@click.option("--no-verify", is_flag=True, help="Do not verify what was copied.")
@common
def copy(ctx: Context, target: str, only: tuple[str, ...], no_verify: bool) -> int:
    """Copies all sessions to another store, of any engine, and verifies them there. Every hash is kept.

    It can be repeated: what is there is brought up to date. A session that has gone its own way there is left
    alone and told (exit code 7).

    \b
    Examples:
      wakelog store copy postgresql://wakelog@db.example/wakelog
      wakelog --store postgresql://wakelog@db.example/wakelog store copy ~/laptop
    """
    here = ctx.store  # first: if there is nothing to copy, nothing is made
    with open_store(target) as there:
        return _copy(ctx, here, there, target, only, not no_verify)


@click.command("backup")
@click.argument("target", metavar="FILE.db|URL")
@common
def backup(ctx: Context, target: str) -> int:
    """Copies this store, while it is in use, into a file that is a store itself. Repeated, it adds what is new.

    To a URL such as s3://bucket/prefix, each session goes as a bundle that is never replaced: what was archived before
    stays, and a list says what belonged to the store at that moment. A damaged session is left out and told (exit code
    4).

    \b
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
        return _show_archive(ctx, here, done, target, "archived")
    with open_store(target) as there:
        return _copy(ctx, here, there, target, (), True)


@click.command("restore")
@click.argument("source", metavar="FILE.db|URL")
@click.option("--list", "name", default="", metavar="NAME", help="From a URL: as of this list, not the newest.")
@common
def restore(ctx: Context, source: str, name: str) -> int:
    """Brings back from a backup what this store lacks. What is here and newer stays as it is.

    \b
    Examples:
      wakelog store restore /mnt/backup/wakelog.db
      wakelog store restore s3://bucket/wakelog
    """
    if is_url(source) and not source.startswith("sqlite://"):
        from wakelog.maintenance import archive as archiving

        name, found = archiving.read_list(source, name)  # first: if there is nothing to bring back, nothing is made
        here = ctx.new_store()
        with Progress(ctx, "restored events", sum(each.seq for each in found.sessions)) as progress:
            done = archiving.restore(here, source, name, progress)
        return _show_archive(ctx, here, done, source, "brought back")
    with open_store(source, create=False) as there:
        return _copy(ctx, there, ctx.new_store(), ctx.url, (), True)


def _copy(ctx: Context, source: Store, target: Store, where: str, only: tuple[str, ...], verify: bool) -> int:
    from wakelog.maintenance.copy import copy_sessions

    chosen = [source.find(name) for name in only] or None
    with Progress(ctx, "copied events") as progress:
        done = copy_sessions(source.engine, target.engine, chosen, progress=progress)
    bad = []
    heads = list(target.sessions()) if verify else []
    with Progress(ctx, "verified events", sum(h.seq for h in heads)) as progress:
        for head in heads:
            bad += [] if target.resume(head.session).verify().ok else [head.session]
            progress(head.seq)
    data = {**msgspec.to_builtins(done), "target": hide_password(where), "verified": verify, "damaged": bad}

    def human() -> None:
        there = f"{done.unchanged} were there already" if done.unchanged else "nothing was there before"
        ctx.say(
            f"{done.sessions} sessions, {done.events:,} events → {inert(hide_password(where), lines=False)}  ({there})"
        )
        for session in done.diverged:
            name = inert(source.engine.head(session).name or session, lines=False)
            ctx.say(f"{ctx.style('✗', fg='yellow')} {name} has gone its own way there, and was left alone")
        for session in bad:
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {session} does not verify there")
        if verify and not bad:
            ctx.say(f"{ctx.style('✔', fg='green')} {len(heads)} sessions verify there")

    ctx.answer("store-copy", data, human)
    return INTEGRITY if bad else PARTIAL if done.diverged else 0


def _show_archive(ctx: Context, store: Store, done: Done, place: str, word: str) -> int:
    data = {**msgspec.to_builtins(done), "place": hide_password(place)}

    def human() -> None:
        there = f"{done.unchanged} were there already" if done.unchanged else "nothing was there before"
        ctx.say(f"{done.sessions} sessions {word}  ({there})  {inert(hide_password(place), lines=False)}")
        for session, problem in done.problems.items():
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {session}: {inert(problem, lines=False)}")
        ctx.say(f"  as of {done.list}")

    ctx.answer("store-archive", data, human)
    return INTEGRITY if done.is_damaged else PARTIAL if done.problems else 0
