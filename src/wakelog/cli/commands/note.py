"""`wakelog note`: a remark on an event or a session."""

from __future__ import annotations

import click

from wakelog.cli.context import Context, common
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert


@click.command("note")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("-m", "--message", "text", required=True, metavar="TEXT", help="What to say.")
@common
def note_command(ctx: Context, selector: str, text: str) -> None:
    """Adds a remark to an event, or without a point to the session. Allowed at any time, even after close.

    \b
    Examples:
      wakelog note fix-bug@11 -m "this push was reviewed by Ada"
      wakelog note fix-bug -m "belongs to incident 42"
    """
    if not text.strip():
        raise click.UsageError("a note needs some text")
    session, place = ctx.select(selector)
    if place.last:
        raise click.UsageError("a note stands on one event")
    on = session.seq(place.first) if place.first else 0
    seq = session.note(text, on=on)
    data = {"session": session.id, "name": session.name, "seq": seq, "on": on or None, "text": text}
    where = f"e{on} of " if on else ""
    name = inert(session.name or session.id, lines=False)
    ctx.answer("note", data, lambda: ctx.say(f"Noted on {where}{name}, as e{seq}"))
