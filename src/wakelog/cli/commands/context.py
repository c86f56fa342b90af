"""`wakelog context`: what the model saw at a point, or would be shown now."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.places import place, select, something
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.window import Look, plain_look, say_look
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert_json
from wakelog.context.ledger import durable_part, exposure_of, make_context
from wakelog.context.recorded_window import moved, seen_at
from wakelog.context.shapes import Shape, shape_items
from wakelog.model.ids import Seq
from wakelog.session import Session
from wakelog.timeline.points import attempts_of

SHAPES = ("openai", "responses", "anthropic")


@click.command("context")
@click.argument("where", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("--diff", "diff", is_flag=True, help="Also what entered and left since the model call before.")
@click.option("--budget", type=click.IntRange(1), metavar="N", help="As it would be cut to N tokens.")
@click.option("--shape", type=click.Choice(SHAPES), help="The messages themselves, as a provider takes them.")
@common
def context_command(ctx: Context, where: str, diff: bool, budget: int | None, shape: Shape | None) -> None:
    """What was in the model's window: item by item, with tokens (an estimate), trust, and what had left.

    At a turn or event where a model was called, it is what that call recorded; elsewhere, and without SEL, what would
    be offered there. Nothing is written.

    \b
    Examples:
      wakelog context fix-bug@9 --diff
      wakelog context fix-bug --budget 400
      wakelog context fix-bug@9 --shape anthropic
    """
    session, spot, _ = select(ctx, where)
    look = _look(ctx, session, spot, diff, budget, shape)
    if shape and not ctx.json and not ctx.ndjson:
        messages = {"system": look.system, "messages": look.messages} if look.system else look.messages
        click.echo(inert_json(msgspec.json.format(msgspec.json.encode(messages), indent=2).decode()))
        return
    if ctx.ndjson:
        for item in plain_look(session, look)["items"]:
            ctx.record("context", {"session": session.id, **item})
        return

    def human() -> None:
        ctx.say(title(ctx, session) + (f"  {spot}" if spot else ""))
        say_look(ctx, session, look)

    ctx.answer("context", plain_look(session, look), human)
    name = handle(session)
    more = [] if diff else [f"wakelog context {where or name} --diff"]
    ctx.suggest(*more, f"wakelog context {where or name} --shape openai", f"wakelog brief {name}")


def _look(ctx: Context, session: Session[Any], spot: str, diff: bool, budget: int | None, shape: Shape | None) -> Look:
    log = session.log
    at, since = _span(ctx, session, spot)
    seen = seen_at(log, at, since)
    state = log.state(seen.at)
    taken_by: Shape = "openai" if shape is None else shape
    if seen.recorded:
        known = durable_part(log, state, seen.evicted, budget)
        shaped = shape_items(seen.items, known.text, taken_by)
        trust, source = exposure_of(seen.items, known)
        tokens = sum(i.tokens for i in seen.items) + known.tokens
        messages, system, text = shaped.messages, shaped.system, known.text
    else:
        offered = make_context(log, budget, shape=taken_by, record=False, at=seen.at)
        seen = msgspec.structs.replace(seen, items=offered.items, evicted=offered.evicted)
        trust, source, tokens = offered.exposure, offered.source, offered.tokens
        messages, system, text = offered.messages, offered.system, offered.known
    return Look(
        seen=seen,
        turn=state["turn"]["number"],
        known=text,
        tokens=tokens,
        budget=budget,
        trust=trust,
        source=source,
        moved=moved(log, seen) if diff else None,
        messages=messages if shape else None,
        system=system if shape else "",
    )


def _span(ctx: Context, session: Session[Any], spot: str) -> tuple[Seq, Seq]:
    """The point to look at, and from where on a model call counts as being there. Without a point it is now, and
    whatever a model saw earlier is not now."""
    if not spot:
        head = session.head.seq
        return head, head + 1
    found = something(session, spot, place(ctx, session, spot))
    if spot.startswith(("@", "turn:")) and spot != "@":
        return found.last, found.first
    turn = session.log.entry(found.last).header.turn
    if not turn:
        return found.last, found.last
    within = [s.first for s in attempts_of(session.log, turn) if s.first <= found.last]
    return found.last, within[-1] if within else found.last
