"""`wakelog archive`: a closed session's status, or an archive of sessions in Parquet."""

from __future__ import annotations

import click

from wakelog.cli.commands.life import move_session
from wakelog.cli.commands.store import show_archive
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.options import session_argument, why_option
from wakelog.cli.output import Progress
from wakelog.cli.text import counted, inert_line
from wakelog.maintenance.parquet_archive import archive_parquet, check_parquet


@click.command("archive")
@session_argument
@click.option(
    "--to", "place", default="", metavar="DIR|URL", help="Add sessions to the archive in this folder or bucket."
)
@click.option("--format", "form", type=click.Choice(["parquet"]), default="parquet", help="With --to: its format.")
@click.option("--check", is_flag=True, help="With --to: read the archive back and verify it; write nothing.")
@click.option("--decrypt", is_flag=True, help="With --to: archive an encrypted store, in the clear.")
@why_option
@common
def archive_command(
    ctx: CommandContext, session: str, place: str, form: str, check: bool, decrypt: bool, why: str
) -> int:
    """Archive a closed session. Nothing is removed; `wakelog reopen` brings it back.

    With --to, no session changes: the events of a session, or of all, are added to an archive in Parquet, a row each,
    in folders by day and project. A second run adds what is new. What was written is read back and compared before it
    counts. `wakelog query --archive` queries it, and `wakelog store restore` restores sessions from it, verified.

    \b
    Examples:
      wakelog archive fix-bug
      wakelog archive --to /mnt/archive --format parquet
      wakelog archive --to s3://bucket/wakelog
      wakelog archive --to /mnt/archive --check
    """
    if not place:
        if check:
            raise click.UsageError("--check reads an archive: name it with --to")
        move_session(ctx, session, lambda s: s.life.archive(why=why), "wakelog reopen {}")
        return 0
    if why:
        raise click.UsageError("-m is a reason for a change of status: with --to, no session changes")
    if check:
        return _check(ctx, place)
    store = ctx.store
    wanted = [ctx.session(session).id] if session else []
    with Progress(
        ctx, "archived events", sum(h.seq for h in store.sessions() if not wanted or h.session in wanted)
    ) as told:
        done = archive_parquet(store, place, wanted, told, decrypt=decrypt)
    return show_archive(ctx, done, place, "archived")


def _check(ctx: CommandContext, place: str) -> int:
    found = check_parquet(place)

    def human() -> None:
        where = inert_line(hide_password(place))
        sound = found.sessions - len(found.problems)
        ctx.say(f"{sound} of {counted(found.sessions, 'session')} in {where} verify, {counted(found.events, 'event')}")
        for name, why in found.problems.items():
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {inert_line(name)}: {inert_line(why)}")

    ctx.answer("archive-check", found, human)
    return INTEGRITY if found.problems else 0
