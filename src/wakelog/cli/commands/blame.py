"""`wakelog blame`: who last wrote each key of the state."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.changes import plain_writer, who
from wakelog.cli.render.places import key_of, plain_key, select
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.render.values import scalar
from wakelog.cli.shell_completion import complete_key, complete_selector
from wakelog.cli.text import clock, glyph, other_time
from wakelog.diff.blame import Blame

_COLUMNS = (
    Column(least=24, cut="middle"),
    Column(least=10),
    Column(),
    Column(drop=3),
    Column(least=8),
    Column(),
    Column(least=6),
    Column(least=16, drop=2),
)


@click.command("blame")
@click.argument("key", required=False, default="", shell_complete=complete_key)
@click.option("--at", "at", default="", metavar="SEL", shell_complete=complete_selector, help="At that point.")
@common
def blame_command(ctx: Context, key: str, at: str) -> None:
    """For KEY (a JSON Pointer) and each key below it: the event that last wrote it, its turn, tool and reason.

    Reads the whole history once; memory follows the keys.

    \b
    Examples:
      wakelog blame /data/plan -s fix-auth
    """
    session, _, seq = select(ctx, "", at)
    seq = session.head.seq if seq is None else seq
    pointer, _ = key_of(session.log.state(seq), key)
    found = session.blame(pointer, seq)
    data = {
        "session": session.id,
        "name": session.name or None,
        "at": seq,
        "pointer": pointer,
        "keys": [{"pointer": b.pointer, "value": b.value, "writer": plain_writer(b.writer)} for b in found],
    }

    def human() -> None:
        ctx.say(f"{title(ctx, session)}  e{seq}")
        say_table(ctx, _COLUMNS, [_row(ctx, each) for each in found], titles=False)

    ctx.answer("blame", data, human)
    if found and found[0].writer:
        ctx.suggest(f"wakelog show -s {handle(session)} e{found[0].writer.seq}")


def _row(ctx: Context, each: Blame) -> Row:
    writer = each.writer
    value = Cell(scalar(each.value, 60))
    if writer is None:
        return (Cell(f"  {plain_key(each.pointer)}", {"fg": "cyan"}), value, "", "", "unknown", "", "", "")
    mark: Any = f"{glyph('warn')} {writer.source or writer.trust}" if writer.trust != "trusted" else ""
    why = f"{writer.why}" if writer.known == "recorded" else f"{writer.why} ({writer.known})" if writer.why else ""
    return (
        Cell(f"  {plain_key(each.pointer)}", {"fg": "cyan"}),
        value,
        f"@{writer.turn}" if writer.turn else glyph("dash"),
        Cell(clock(writer.at, utc=ctx.utc) + other_time(writer.at, writer.stored_at), {"dim": True}),
        who(writer),
        Cell(f"e{writer.seq}", {"fg": "cyan"}),
        Cell(mark, {"fg": "yellow"}),
        Cell(why, {"dim": True}),
    )
