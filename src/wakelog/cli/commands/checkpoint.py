"""`wakelog checkpoint` and `note`: name a point of a session, or add a note to it."""

from __future__ import annotations

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import place_argument
from wakelog.cli.render.sessions import label
from wakelog.cli.render.table import say_table
from wakelog.cli.selectors import Place
from wakelog.cli.shell_completion import complete_checkpoint
from wakelog.cli.text import inert_line
from wakelog.errors import InvalidInputError

_ONE_EVENT = "a checkpoint names one event, not a range"


@click.command("checkpoint")
@click.argument("name", required=False, default="", shell_complete=complete_checkpoint)
@place_argument()
@click.option("-d", "--delete", "remove", is_flag=True, help="Delete the name; the events stay.")
@common
def checkpoint_command(ctx: CommandContext, name: str, selector: str, remove: bool) -> None:
    """Name a point of a session, so that you can write cp:NAME. A name is free: nothing is copied.

    Without a name, or with `ls`, list the names. A name that is in use moves to the new point.

    Examples:
      wakelog checkpoint before-fix fix-bug@4
      wakelog checkpoint -d before-fix
      wakelog checkpoint ls -s fix-bug
    """
    where = ctx.place(selector)
    session = where.session
    names: dict[str, int] = session.log.state()["checkpoints"]
    if not remove and name in ("", "ls"):
        _list(ctx, where, names)
        return
    _check(name)
    if remove:
        session.checkpoint(name, names.get(name), remove=True)
        did, at = "removed", names[name]
    else:
        point = where.point(_ONE_EVENT)
        if (at := session.seq() if point is None else point) < 1:
            raise click.UsageError(_ONE_EVENT)
        session.checkpoint(name, at)
        did = "moved" if name in names and names[name] != at else "named"
    before = f" (it was e{names[name]})" if did == "moved" else ""
    verb = {"removed": "is gone; it was", "moved": "is now", "named": "is"}[did]
    line = f"cp:{inert_line(name)} {verb} e{at} of {label(session)}{before}"
    ctx.done("checkpoint", session, line, checkpoint=name, at=at, was=names.get(name), did=did)


def _list(ctx: CommandContext, where: Place, names: dict[str, int]) -> None:
    if where.text:
        raise click.UsageError("ls takes no point; choose the session with -s")
    session = where.session
    entries = {name: session.log.entry(seq).header for name, seq in names.items()}
    data = [{"checkpoint": n, "at": h.seq, "turn": h.turn or None, "kind": h.kind} for n, h in entries.items()]

    def human() -> None:
        rows = [(f"cp:{n}", f"e{h.seq}", f"@{h.turn}" if h.turn else "", h.kind) for n, h in entries.items()]
        say_table(ctx, "name 12 | event | turn | kind -1", rows, none=f"{label(session)} has no checkpoints")

    ctx.answer("checkpoints", data, human)


def _check(name: str) -> None:
    if not name or name == "ls" or any(c in name for c in "@\n\r\t") or name != name.strip() or ".." in name:
        raise InvalidInputError(
            f"{name!r} cannot name a checkpoint", kind="bad-name", hint="use letters, digits, - and _, without @ and .."
        )


@click.command("note")
@place_argument()
@click.option("-m", "--message", "text", required=True, metavar="TEXT", help="Write this text.")
@common
def note_command(ctx: CommandContext, selector: str, text: str) -> None:
    """Add a note to an event, or without a point to the session. This is always allowed, even after close.

    Examples:
      wakelog note fix-bug@11 -m "this push was reviewed by Ada"
      wakelog note fix-bug -m "belongs to incident 42"
    """
    if not text.strip():
        raise click.UsageError("a note needs some text")
    where = ctx.place(selector)
    session, on = where.session, where.point("a note goes on one event, not on a range") or 0
    seq = session.note(text, on=on)
    noted = f"e{on} of " if on else ""
    ctx.done("note", session, f"Noted on {noted}{label(session)}, as e{seq}", seq=seq, on=on or None, text=text)
