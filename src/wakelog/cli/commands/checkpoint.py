"""`wakelog checkpoint`: name a point, or see the names."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.shell_completion import complete_checkpoint, complete_selector
from wakelog.cli.text import inert
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.session import Session


@click.command("checkpoint")
@click.argument("name", required=False, default="", shell_complete=complete_checkpoint)
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("-d", "--delete", "remove", is_flag=True, help="Take the name away; the events stay.")
@common
def checkpoint_command(ctx: Context, name: str, selector: str, remove: bool) -> None:
    """Names a point of a session, so that it can be said as cp:NAME. A name is free: nothing is copied.

    Without a name, or with `ls`, lists the names. A name that is in use moves.

    \b
    Examples:
      wakelog checkpoint before-fix fix-bug@4
      wakelog checkpoint -d before-fix
      wakelog checkpoint ls -s fix-bug
    """
    session, place = ctx.select(selector)
    names: dict[str, int] = session.log.state()["checkpoints"]
    if not remove and name in ("", "ls"):
        if selector and place.first:
            raise click.UsageError("ls takes no point; choose the session with -s")
        _list(ctx, session, names)
        return
    _check(name)
    if remove:
        if name not in names:
            known = ", ".join(names) or "none"
            raise NotFoundError(f"no checkpoint {name!r} (there are: {known})", kind="checkpoint-not-found")
        session.checkpoint(name, names[name], remove=True)
        told, at = "removed", names[name]
    else:
        at = session.seq(place.first or None)
        if place.last or at < 1:
            raise click.UsageError("a checkpoint names one event")
        session.checkpoint(name, at)
        told = "moved" if name in names and names[name] != at else "named"
    data = {
        "session": session.id,
        "name": session.name,
        "checkpoint": name,
        "at": at,
        "was": names.get(name),
        "did": told,
    }

    def human() -> None:
        owner = inert(session.name or session.id, lines=False)
        before = f" (it was e{names[name]})" if told == "moved" else ""
        verb = {"removed": "is gone; it was", "moved": "is now", "named": "is"}[told]
        ctx.say(f"cp:{inert(name, lines=False)} {verb} e{at} of {owner}{before}")

    ctx.answer("checkpoint", data, human)


def _list(ctx: Context, session: Session[Any], names: dict[str, int]) -> None:
    entries = {name: session.log.entry(seq).header for name, seq in names.items()}
    data = [{"checkpoint": n, "at": h.seq, "turn": h.turn or None, "kind": h.kind} for n, h in entries.items()]

    def human() -> None:
        if not data:
            ctx.say(f"{inert(session.name or session.id, lines=False)} has no checkpoints")
            return
        rows = [(f"cp:{n}", f"e{h.seq}", f"@{h.turn}" if h.turn else "", h.kind) for n, h in entries.items()]
        say_table(ctx, [Column("name", 12), Column("event"), Column("turn"), Column("kind", drop=1)], rows)

    ctx.answer("checkpoints", data, human)


def _check(name: str) -> None:
    if not name or name == "ls" or any(c in name for c in "@\n\r\t") or name != name.strip() or ".." in name:
        raise InvalidInputError(
            f"{name!r} cannot name a checkpoint", kind="bad-name", hint="use letters, digits, - and _, without @ and .."
        )
