"""`wakelog fork`: a new session sharing the history up to a point."""

from __future__ import annotations

import itertools

import click

from wakelog.cli.context import Context, common
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert
from wakelog.errors import InvalidInputError
from wakelog.store import Store


@click.command("fork")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("-n", "--name", default="", help="The new session's name (default: the old one's with a number).")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def fork_command(ctx: Context, selector: str, name: str, why: str) -> None:
    """Makes a new session that shares this one's history up to a point. It costs nothing, whatever the length; the old
    session is not changed. Calls open at the point are not inherited.

    \b
    Examples:
      wakelog fork fix-bug@4 -n try-redis
      wakelog fork                        the newest session, as it is now
    """
    session, place = ctx.select(selector)
    if place.last:
        raise click.UsageError("a fork begins at one point, not at a range")
    at = session.seq(place.first or None)
    if at < 1:
        raise InvalidInputError(
            "before the first event there is nothing to fork", kind="bad-point", hint="e1 is the first"
        )
    fork = ctx.store.fork(session, at, name=name or _free_name(ctx.store, session.name), why=why)
    turn = fork.log.state()["turn"]["number"]
    data = {
        "session": fork.id,
        "name": fork.name,
        "parent": session.id,
        "parent_name": session.name,
        "at": at,
        "turn": turn,
        "head": fork.head.seq,
    }

    def human() -> None:
        place_text = f"@{turn} (e{at})" if turn else f"e{at}"
        parent, child = (inert(n, lines=False) for n in (session.name or session.id, fork.name or fork.id))
        ctx.say(f"Forked {parent} at {place_text} as {ctx.style(child, bold=True)}  {fork.id}")

    ctx.answer("fork", data, human)
    ctx.suggest(f"wakelog log {fork.name or fork.id}", f"wakelog diff {session.name}@ {fork.name}@")


def _free_name(store: Store, name: str) -> str:
    """The name with the first free number behind it; nothing for a session without a name."""
    if not name:
        return ""
    return next(n for i in itertools.count(2) if store.engine.find(n := f"{name}-{i}") is None)
