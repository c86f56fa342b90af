"""`wakelog undo`: take back the newest rewind."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.completing import complete_session
from wakelog.cli.context import Context, common
from wakelog.cli.text import inert
from wakelog.history.preview import effects_between


@click.command("undo")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@common
def undo_command(ctx: Context, session: str) -> None:
    """Takes back the newest rewind that was not yet undone; again, it walks further back.

    What was written after the rewind leaves the view and stays in the log. Effects and erasures are not undone.

    \b
    Example:
      wakelog undo fix-bug
    """
    found = ctx.session(session)
    before = found.head.seq
    undone = found.undo()
    body = found.log.entry(undone.operation).body
    effects = effects_between(found.log, undone.operation, before)
    name = found.name or found.id
    back = f"wakelog rewind -s {name} e{before}"
    data = {
        "session": found.id,
        "name": found.name,
        "operation": undone.operation,
        "mode": body.get("mode", "rewind"),
        "went_to": body["to"],
        "head": undone.head.seq,
        "left_view": before - undone.operation,
        "effects": msgspec.to_builtins(effects),
        "back": back,
    }

    def human() -> None:
        what = "the retry" if data["mode"] == "retry" else "the rewind"
        ctx.say(f"{inert(name, lines=False)}: took back {what} at e{undone.operation} (it went to e{body['to']}).")
        if data["left_view"]:
            ctx.say(
                f"  {data['left_view']} later events left the view and stay in the log; back to them: {inert(back)}"
            )
        for effect in effects:
            tool = inert(effect.tool, lines=False)
            ctx.say(f"  not undone: {tool} ({effect.effect}, {effect.outcome}) at e{effect.seq}")

    ctx.answer("undo", data, human)
