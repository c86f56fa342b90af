"""`wakelog pause`, `close`, `reopen`, `archive`, `delete`: a session's life."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import glyph, inert
from wakelog.errors import NotAllowedError
from wakelog.log.surgery import refuse_if_held
from wakelog.session import Session

_COMMANDS = {
    "session.paused": "pause",
    "session.resumed": "resume",
    "session.closed": "close",
    "session.reopened": "reopen",
    "session.archived": "archive",
    "session.deleted": "delete",
}
_session = click.argument("session", required=False, default="", shell_complete=complete_session)
_why = click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")


@click.command("pause")
@_session
@_why
@common
def pause_command(ctx: Context, session: str, why: str) -> None:
    """Nothing new takes effect until `wakelog resume`. Outcomes of calls begun before are still accepted.

    \b
    Example:
      wakelog pause fix-bug -m "waiting for the release"
    """
    _move(ctx, session, lambda s: s.pause(why=why), "wakelog resume {}")


@click.command("close")
@_session
@_why
@click.option("--outcome", default="completed", help="How it ended, in a word.")
@common
def close_command(ctx: Context, session: str, why: str, outcome: str) -> None:
    """Ends a session. Calls that never started are abandoned, and those that did are marked as uncertain.

    \b
    Example:
      wakelog close fix-bug
    """
    found = ctx.session(session)
    pending = found.log.state()["pending_actions"]
    settled = sorted(action for action, entry in pending.items() if entry["status"] != "uncertain")
    _move(ctx, session, lambda s: s.end(outcome, why=why), "wakelog reopen {}", settled=settled)


@click.command("reopen")
@_session
@_why
@common
def reopen_command(ctx: Context, session: str, why: str) -> None:
    """Brings a closed or archived session back.

    \b
    Example:
      wakelog reopen fix-bug
    """
    _move(ctx, session, lambda s: s.reopen(why=why), "wakelog close {}")


@click.command("archive")
@_session
@_why
@common
def archive_command(ctx: Context, session: str, why: str) -> None:
    """Puts a closed session away. Nothing is removed; `wakelog reopen` brings it back.

    \b
    Example:
      wakelog archive fix-bug
    """
    _move(ctx, session, lambda s: s.archive(why=why), "wakelog reopen {}")


@click.command("delete")
@_session
@_why
@click.option("--dry-run", is_flag=True, help="Show what would go, and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common
def delete_command(ctx: Context, session: str, why: str, dry_run: bool, yes: bool) -> None:
    """Ends a session for good. A tombstone stays; the content is removed from the files. Forks keep what they share.

    \b
    Examples:
      wakelog delete old-try --dry-run
      wakelog delete old-try --yes -m "asked for by the customer"
    """
    if not session and not ctx.names_session:
        raise click.UsageError("delete needs the session's name: there is no default for this one")
    found = ctx.session(session, in_full=True)
    refuse_if_held(ctx.store.engine, found.id)
    head = found.head
    forks = [h.name or h.session for h in ctx.store.engine.children(found.id)]
    name = inert(found.name or found.id, lines=False)
    if not ctx.json and not ctx.ndjson:
        own = head.seq - (head.fork.at if head.fork else 0)
        ctx.say(f"{ctx.style(f'Delete {name}', bold=True)}  {own:,} events of its own, @{head.turn}, {head.status}")
        if forks:
            ctx.say(
                f"  its forks keep what they share, until they are deleted too: {inert(', '.join(forks), lines=False)}"
            )
        ctx.say("  there is no way back; wakelog export keeps a copy")
    if not dry_run:
        ctx.confirm(f"Delete {name} for good?", yes=yes)
        ctx.store.delete(found, why=why)
    data = {"session": found.id, "name": found.name, "events": head.seq, "forks": forks, "deleted": not dry_run}
    end = "This was a dry run: nothing was deleted." if dry_run else f"{name} is deleted; a tombstone stays."
    ctx.answer("delete", data, lambda: ctx.say(end))


def _move(
    ctx: Context, name: str, move: Callable[[Session[Any]], Any], back: str, *, settled: list[str] | None = None
) -> None:
    session = ctx.session(name)
    before = session.status
    shown = session.name or session.id
    try:
        head = move(session)
    except NotAllowedError as exc:
        ways = " · ".join(f"wakelog {_COMMANDS[kind]} {shown}" for kind in exc.legal if kind in _COMMANDS)
        raise NotAllowedError(f"{shown} is {before}: {exc.message}", kind=exc.kind, hint=ways, legal=exc.legal) from exc
    data = {
        "session": session.id,
        "name": session.name,
        "was": before,
        "status": head.status,
        "head": head.seq,
        "settled": settled or [],
    }

    def human() -> None:
        ctx.say(f"{inert(shown, lines=False)}: {before} {glyph('arrow')} {ctx.style(head.status, bold=True)}")
        if settled:
            ctx.say(f"  settled first: {inert(', '.join(settled), lines=False)}")

    ctx.answer("life", data, human)
    ctx.suggest(back.format(shown))
