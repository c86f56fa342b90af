"""`wakelog archive`: archives a closed session, or writes sessions to an archive in Parquet."""

from __future__ import annotations

import time

import click
import msgspec

from wakelog.cli.commands.life import move_session
from wakelog.cli.commands.store_copy import show_archive
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.options import session_argument, why_option
from wakelog.cli.output import Progress
from wakelog.cli.text import clock, inert_line
from wakelog.config.amounts import parse_interval
from wakelog.errors import ConflictError, UnavailableError
from wakelog.maintenance.archive import ArchiveResult
from wakelog.maintenance.continuous_archive import ContinuousArchive
from wakelog.maintenance.parquet_archive import archive_parquet
from wakelog.maintenance.parquet_restore import check_parquet
from wakelog.model.short_text import pluralize

QUIET_US = 3600 * 1_000_000
"""With --bundles, a session without an event for this long gets its bundle; so does one that has ended."""


@click.command("archive")
@session_argument
@click.option(
    "--to", "place", default="", metavar="DIR|URL", help="Add sessions to the archive in this folder or bucket."
)
@click.option("--format", "form", type=click.Choice(["parquet"]), default="parquet", help="With --to: its format.")
@click.option(
    "--bundles", is_flag=True, help="With --to: also put a bundle of each session that ended or is quiet for an hour."
)
@click.option("--every", metavar="TIME", help="With --to: keep running, and add what is new every 10m or 1h.")
@click.option("--check", is_flag=True, help="With --to: read the archive back and verify it; write nothing.")
@click.option("--decrypt", is_flag=True, help="With --to: archive an encrypted store, in the clear.")
@why_option
@common
def archive_command(
    ctx: CommandContext,
    session: str,
    place: str,
    form: str,
    bundles: bool,
    every: str | None,
    check: bool,
    decrypt: bool,
    why: str,
) -> int:
    """Archive a closed session. Nothing is removed; `wakelog reopen` brings it back.

    With --to, no session changes: the events of a session, or of all, are added to an archive in Parquet, a row each,
    in folders by day and project. A second run adds what is new. Everything written is read back and compared before
    it counts. `wakelog query --archive` queries the archive, and `wakelog store restore` restores sessions from it,
    verified. With --every the command runs until Ctrl-C; run one such process for each archive.

    Examples:
      wakelog archive fix-bug
      wakelog archive --to /mnt/archive --format parquet
      wakelog archive --to s3://bucket/wakelog
      wakelog archive --to s3://bucket/wakelog --bundles --every 10m
      wakelog archive --to /mnt/archive --check
    """
    if not place:
        for name, value in (("--check", check), ("--bundles", bundles), ("--every", every is not None)):
            if value:
                raise click.UsageError(f"{name} is about an archive: name it with --to")
        move_session(ctx, session, lambda s: s.life.archive(why=why), "wakelog reopen {}")
        return 0
    if why:
        raise click.UsageError("-m is a reason for a change of status: with --to, no session changes")
    if check:
        return _check(ctx, place)
    store = ctx.store
    quiet_us = QUIET_US if bundles else None
    if every is not None:
        if session:
            raise click.UsageError("--every is for all sessions: leave SESSION out")
        return _archive_repeatedly(
            ctx, ContinuousArchive(store, place, quiet_us=quiet_us, decrypt=decrypt), place, every
        )
    session_ids = [ctx.session(session).id] if session else []
    total = sum(head.seq for head in store.sessions() if not session_ids or head.session in session_ids)
    with Progress(ctx, "archived events", total) as progress:
        result = archive_parquet(store, place, session_ids, progress, decrypt=decrypt, quiet_us=quiet_us)
    return show_archive(ctx, result, place, "archived")


def _archive_repeatedly(ctx: CommandContext, archive: ContinuousArchive, place: str, every: str) -> int:
    """Runs until Ctrl-C. Reports an outage, or a round lost to another process, and retries in the next round."""
    every_s = parse_interval(every)
    ctx.use_pager = False
    while True:
        try:
            _say_round(ctx, archive.round(), place)
        except (UnavailableError, ConflictError) as exc:
            ctx.warn(f"{inert_line(exc.message)}; trying again")
        time.sleep(every_s)


def _say_round(ctx: CommandContext, result: ArchiveResult, place: str) -> None:
    if not result.sessions and not result.problems:
        return
    if not ctx.is_for_people:
        ctx.record("store-archive", {**msgspec.to_builtins(result), "place": hide_password(place)})
        return
    when = clock(ctx.store.clock(), utc=ctx.utc, long=True)
    ctx.say(f"{when}  {pluralize(result.sessions, 'session')} archived")
    for session, problem in result.problems.items():
        ctx.say(f"{ctx.mark(False)} {session}: {inert_line(problem)}")
    ctx.flush()


def _check(ctx: CommandContext, place: str) -> int:
    check = check_parquet(place)

    def human() -> None:
        where = inert_line(hide_password(place))
        sound = check.sessions - len(check.problems)
        bundles = f", and {pluralize(check.bundles, 'bundle')}" if check.bundles else ""
        sessions = f"{sound} of {pluralize(check.sessions, 'session')} in {where} verify"
        ctx.say(f"{sessions}, {pluralize(check.events, 'event')}{bundles}")
        for name, why in check.problems.items():
            ctx.say(f"{ctx.mark(False)} {inert_line(name)}: {inert_line(why)}")

    ctx.answer("archive-check", check, human)
    return INTEGRITY if check.problems else 0
