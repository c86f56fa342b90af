"""`wakelog files`: which files were changed in the last turns."""

from __future__ import annotations

from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.places import point, select
from wakelog.cli.render.sessions import handle, title
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import age, glyph, iso
from wakelog.timeline.files import ChangedFile, ChangedFiles

_COLUMNS = (
    Column("file", least=24, cut="middle"),
    Column("change", drop=3),
    Column("times", right=True),
    Column("lines", right=True, drop=2),
    Column("turns", least=6),
    Column("by", least=8),
    Column("event"),
    Column("age", right=True, drop=1),
)


@click.command("files")
@click.argument("where", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option(
    "--last", "-n", "last", type=click.IntRange(0), default=5, show_default=True, help="In how many turns; 0: in all."
)
@common
def files_command(ctx: Context, where: str, last: int) -> None:
    """The files changed in the last turns, the last changed first: how often, in which turns, by which tool and event.

    Only what is in view counts: turns that were rewound are passed over.

    \b
    Examples:
      wakelog files
      wakelog files fix-auth --last 1
      wakelog files fix-auth@4 --last 0 --json
    """
    session, spot, _ = select(ctx, where)
    found = session.files.modified(last, at=point(ctx, session, spot))
    listed = [_plain(each) for each in found.files]
    if ctx.ndjson:
        for row in listed:
            ctx.record("files", {"session": session.id, **row})
        return
    data = {"session": session.id, "name": session.name or None, "turns": list(found.turns), "files": listed}

    def human() -> None:
        ctx.say(f"{title(ctx, session)}  {_about(found)}")
        say_table(ctx, _COLUMNS, [_row(ctx, each) for each in found.files])

    ctx.answer("files", data, human)
    if found.files:
        ctx.suggest(f"wakelog show -s {handle(session)} e{found.files[0].seq}", f"wakelog diff {handle(session)} -- .")


def _about(found: ChangedFiles) -> str:
    count = len(found.files)
    files = f"{count or 'no'} file{'s' if count != 1 else ''} changed"
    return f"{files} in {', '.join(f'@{turn}' for turn in found.turns)}" if found.turns else files


def _row(ctx: Context, each: ChangedFile) -> Row:
    mark = f"{glyph('warn')} " if each.trust != "trusted" else ""
    return (
        Cell(each.path, {"bold": True}),
        each.change,
        str(each.changes),
        f"+{each.added} {glyph('minus')}{each.removed}" if each.added or each.removed else "",
        " ".join(f"@{turn}" for turn in each.turns),
        f"{mark}{each.tool}",
        Cell(f"e{each.seq}", {"fg": "cyan"}),
        age(each.at, ctx.store.clock()).removesuffix(" ago"),
    )


def _plain(each: ChangedFile) -> dict[str, Any]:
    return {
        "path": each.path,
        "change": each.change,
        "changes": each.changes,
        "turns": list(each.turns),
        "tool": each.tool or None,
        "event": each.seq,
        "at": iso(each.at),
        "added": each.added,
        "removed": each.removed,
        "trust": each.trust,
    }
