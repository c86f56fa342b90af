"""`wakelog state` and `blame`: show the state at any point, and who last wrote each key of it."""

from __future__ import annotations

import textwrap

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import at_option
from wakelog.cli.render.changes import writer_name
from wakelog.cli.render.sessions import handle, identity, title
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.render.values import scalar, tree
from wakelog.cli.selectors import child_key, find_key, plain_key
from wakelog.cli.shell_completion import complete_key, complete_selector
from wakelog.cli.text import clock, glyph, inert_line, iso, join_facts, other_time, place_of_turn, trust_mark
from wakelog.diff.writers import Blame
from wakelog.model.document import KEPT_BY_ADAPTERS, State, agent_data, name_objects
from wakelog.model.values import Value

_COLUMNS = "24~ | 10 |  | -3 | 8 |  | 6 | 16 -2"


@click.command("state")
@click.argument("key", required=False, default="", shell_complete=complete_key)
@click.option(
    "--at",
    default="",
    metavar="SEL",
    shell_complete=complete_selector,
    help="Show it as it was at that point: @5, fix-auth@5, e1042, t:2h.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the state instead.")
@common
def state_command(ctx: CommandContext, key: str, at: str, schema: bool) -> None:
    """Show the state as a tree, now or at any point. KEY is a JSON Pointer such as /data/plan/2 or /facts; without it,
    everything.

    Examples:
      wakelog state /facts -s fix-auth
      wakelog state --at fix-auth@5
    """
    if schema:
        ctx.print_json(msgspec.json.schema(State))
        return
    where = ctx.place(at=at)
    session, seq = where.session, where.session.head.seq if where.at is None else where.at
    document = session.log.state(session.seq(seq))
    pointer, value = find_key(document, key)
    entry = session.log.entry(seq)
    data = {**identity(session), "at": seq, "timestamp": iso(entry.happened_at), "pointer": pointer, "value": value}
    when = clock(entry.happened_at, utc=ctx.utc, long=True) + other_time(entry.happened_at, entry.header.at)
    place = [place_of_turn(document["turn"]["number"]), f"e{seq}", when]
    heading = f"{title(ctx, session)}  {join_facts(place)}"
    ctx.answer("state", data, lambda: _say_state(ctx, heading, pointer, value, handle(session)))
    ctx.suggest(f"wakelog blame {pointer or '/data'} -s {handle(session)}", f"wakelog diff {handle(session)}")


def _say_state(ctx: CommandContext, heading: str, pointer: str, document: Value, name: str) -> None:
    """Prints the value at a pointer. Of the whole document, the parts that are not empty come first, then the names of
    the empty ones."""
    ctx.say(heading)
    document, left_out = _without_adapter_keys(pointer, document)
    empty: list[str] = []
    if pointer:
        ctx.say(ctx.style(inert_line(pointer), fg="cyan"))
    else:
        empty = [name for name, value in document.items() if _is_empty(value)]
        document = {name: value for name, value in document.items() if name not in empty}
    ctx.say_all(tree(name_objects(document), ctx.columns, 2))
    for line in textwrap.wrap(f"empty: {', '.join(empty)}", ctx.columns - 4) if empty else ():
        ctx.remark(f"  {line}")
    for key in left_out:
        ctx.remark(f"  kept by the adapter: wakelog state '{inert_line(key)}' -s {name}")


def _without_adapter_keys(pointer: str, value: Value) -> tuple[Value, list[str]]:
    """What is to be shown at a pointer, and the keys that an adapter keeps for itself."""
    data = value if pointer == "/data" else value["data"] if not pointer else {}
    left_out = [child_key("/data", key) for key in data if key not in agent_data(data)]
    if not left_out:
        return value, []
    shown = agent_data(data)
    return (shown if pointer else {**value, "data": shown}), left_out


def _is_empty(value: Value) -> bool:
    return value is None or value == {} or (isinstance(value, dict) and all(v == {} for v in value.values()))


@click.command("blame")
@click.argument("key", required=False, default="", shell_complete=complete_key)
@at_option
@common
def blame_command(ctx: CommandContext, key: str, at: str) -> None:
    """Show who last wrote KEY (a JSON Pointer) and each key below it: event, turn, tool and reason.

    This reads the whole history once.

    Examples:
      wakelog blame /data/plan -s fix-auth
    """
    where = ctx.place(at=at)
    session, seq = where.session, where.session.head.seq if where.at is None else where.at
    pointer, _ = find_key(session.log.state(session.seq(seq)), key)
    blames = session.history.blame(pointer, seq)
    data = {
        **identity(session),
        "at": seq,
        "pointer": pointer,
        "keys": [{"pointer": b.pointer, "value": b.value, "writer": b.writer} for b in blames],
    }

    def human() -> None:
        ctx.say(f"{title(ctx, session)}  e{seq}")
        shown = [
            b for b in blames if pointer.startswith(KEPT_BY_ADAPTERS) or not b.pointer.startswith(KEPT_BY_ADAPTERS)
        ]
        say_table(ctx, _COLUMNS, [_row(ctx, blame) for blame in shown], titles=False)

    ctx.answer("blame", data, human)
    if blames and blames[0].writer:
        ctx.suggest(f"wakelog show -s {handle(session)} e{blames[0].writer.seq}")


def _row(ctx: CommandContext, blame: Blame) -> Row:
    key, value = Cell(f"  {plain_key(blame.pointer)}", {"fg": "cyan"}), Cell(scalar(blame.value, 60))
    writer = blame.writer
    if writer is None:
        return (key, value, "", "", "unknown", "", "", "")
    why = writer.why if writer.known == "recorded" or not writer.why else f"{writer.why} ({writer.known})"
    return (
        key,
        value,
        place_of_turn(writer.turn) or glyph("dash"),
        Cell(clock(writer.at, utc=ctx.utc) + other_time(writer.at, writer.stored_at), {"dim": True}),
        writer_name(writer),
        Cell(f"e{writer.seq}", {"fg": "cyan"}),
        Cell(trust_mark(writer.trust, writer.source), {"fg": "yellow"}),
        Cell(why, {"dim": True}),
    )
