"""`wakelog hold`: protects sessions from erasing, pruning and deleting."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.options import named_session
from wakelog.cli.render.sessions import label
from wakelog.cli.render.table import say_table
from wakelog.cli.text import clock, inert_line, iso
from wakelog.maintenance.holds import Holds, find_holds, hold_of, lift_hold, place_hold


@click.group("hold")
def hold_command() -> None:
    """Protect sessions from being erased: while a session is on hold, erase, redact, gc and delete refuse to touch it.
    A hold is an event in the session's own log, and only removing it ends it.

    Examples:
      wakelog hold add fix-bug -m "case 2026-17, asked for by legal"
      wakelog hold ls
      wakelog hold rm fix-bug -m "case closed"
    """


@hold_command.command("add")
@named_session
@click.option("-m", "--message", "reason", required=True, metavar="TEXT", help="Say who asked for it, and why.")
@common
def add(ctx: CommandContext, session: str, reason: str) -> None:
    """Put a session on hold.

    Example:
      wakelog hold add fix-bug -m "case 2026-17"
    """
    found = ctx.session(session)
    seq = place_hold(found, reason)
    ctx.done("hold", found, f"{label(found)} is under a hold: {inert_line(reason)}", reason=reason, seq=seq)


@hold_command.command("rm")
@named_session
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Say why it ends; kept in the log.")
@common
def rm(ctx: CommandContext, session: str, why: str) -> None:
    """Remove the hold of a session.

    Example:
      wakelog hold rm fix-bug -m "case closed"
    """
    found = ctx.session(session)
    before = hold_of(found)
    seq = lift_hold(found, why=why)
    reason = before.reason if before else ""
    line = f"{label(found)} is no longer under a hold (it was: {inert_line(reason)})"
    ctx.done("hold", found, line, reason=reason, seq=seq)


@hold_command.command("ls")
@common
def ls(ctx: CommandContext) -> int:
    """List the sessions on hold. The exit code is 7 when a session cannot be read and might be on hold.

    Example:
      wakelog hold ls --json
    """
    holds = find_holds(ctx.store)
    data = [{**msgspec.to_builtins(h), "since": iso(h.since)} for h in holds.found]
    ctx.answer("holds", data, lambda: _show(ctx, holds))
    for session in holds.unreadable:
        name = inert_line(ctx.name_of(session))
        ctx.warn(f"{name} cannot be read, so it is unknown whether it is held (wakelog verify {name})")
    return PARTIAL if holds.unreadable else 0


def _show(ctx: CommandContext, holds: Holds) -> None:
    rows = [(h.name or h.session, clock(h.since, utc=ctx.utc, long=True), f"e{h.seq}", h.reason) for h in holds.found]
    say_table(ctx, "session 12 | since -1 | event -2 | reason 20", rows, none="No session is under a hold.")
