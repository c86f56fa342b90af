"""`wakelog state`: the typed state, or one key of it, at any point."""

from __future__ import annotations

import textwrap
from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.places import key_of, select
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.values import tree
from wakelog.cli.shell_completion import complete_key, complete_selector
from wakelog.cli.text import clock, glyph, inert, iso
from wakelog.model.document import State
from wakelog.model.values import Value
from wakelog.session import Session


@click.command("state")
@click.argument("key", required=False, default="", shell_complete=complete_key)
@click.option(
    "--at",
    "at",
    default="",
    metavar="SEL",
    shell_complete=complete_selector,
    help="At that point: @5, fix-auth@5, e1042, t:2h.",
)
@click.option("--schema", "schema", is_flag=True, help="The JSON Schema of the state instead.")
@common
def state_command(ctx: Context, key: str, at: str, schema: bool) -> None:
    """The state as a tree. KEY is a JSON Pointer such as /data/plan/2 or /facts; without it, everything.

    \b
    Examples:
      wakelog state /facts -s fix-auth
      wakelog state --at fix-auth@5
    """
    if schema:
        click.echo(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(State)), indent=2).decode())
        return
    session, _, seq = select(ctx, "", at)
    head = session.head
    seq = head.seq if seq is None else seq
    document = session.log.state(seq)
    pointer, value = key_of(document, key)
    entry = session.log.entry(seq)
    data = {
        "session": session.id,
        "name": session.name or None,
        "at": seq,
        "timestamp": iso(entry.header.at),
        "pointer": pointer,
        "value": value,
    }

    def human() -> None:
        when = clock(entry.header.at, utc=ctx.utc, long=True)
        place = [f"@{document['turn']['number']}"] if document["turn"]["number"] else []
        ctx.say(f"{title(ctx, session)}  " + f" {glyph('dot')} ".join([*place, f"e{seq}", when]))
        if pointer:
            ctx.say(ctx.style(inert(pointer, lines=False), fg="cyan"))
            _say_tree(ctx, value)
        else:
            _say_document(ctx, document)

    ctx.answer("state", data, human)
    _suggest(ctx, session, pointer)


def _say_tree(ctx: Context, value: Value) -> None:
    for line in tree(value, ctx.columns, 2):
        ctx.say(line)


def _say_document(ctx: Context, document: dict[str, Value]) -> None:
    """The parts that hold something; the empty ones are named at the end."""
    empty = [name for name, value in document.items() if _is_empty(value)]
    _say_tree(ctx, {name: value for name, value in document.items() if name not in empty})
    for line in textwrap.wrap(f"empty: {', '.join(empty)}", ctx.columns - 4) if empty else ():
        ctx.say(ctx.style(f"  {line}", dim=True))


def _is_empty(value: Value) -> bool:
    return value is None or value == {} or (isinstance(value, dict) and all(v == {} for v in value.values()))


def _suggest(ctx: Context, session: Session[Any], pointer: str) -> None:
    name = handle(session)
    ctx.suggest(f"wakelog blame {pointer or '/data'} -s {name}", f"wakelog diff {name}")
