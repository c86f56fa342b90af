"""Which session? A numbered list of the newest and a prompt, where a person sits in front of it.

Without a terminal nobody is asked: the newest session is meant, as everywhere.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import click

from wakelog.cli.context import CommandContext
from wakelog.cli.places import list_sessions
from wakelog.cli.text import age, fit, inert_line, width
from wakelog.session import Session

MOST = 10


def picked_session(ctx: CommandContext) -> Session[Any]:
    """The session that a person chooses; the newest where there is nobody to ask, or nothing to choose from."""
    if ctx.names_session or not _can_ask(ctx):
        return ctx.session()
    with ctx.store.newest_index(MOST * 3) as index:
        rows = list(itertools.islice((i for i in list_sessions(index) if i.status != "archived"), MOST))
    if len(rows) < 2:
        return ctx.session()
    names = [fit(str(info), ctx.columns // 3) for info in rows]
    ages = [age(info.last_at, ctx.store.clock()) for info in rows]
    column, ago = max(map(width, names)), max(map(len, ages))
    for number, (info, name, when) in enumerate(zip(rows, names, ages, strict=True), 1):
        room = ctx.columns - column - ago - 9
        front = f"{number:>3}  {name}{' ' * (column - width(name))}  {when:>{ago}}"
        click.echo(f"{front}  {fit(inert_line(info.about), room)}".rstrip(), err=True)
    chosen = click.prompt("Which one?", type=click.IntRange(1, len(rows)), default=1, err=True)
    return ctx.session(rows[chosen - 1].id)


def _can_ask(ctx: CommandContext) -> bool:
    return ctx.is_for_people and not ctx.no_input and sys.stdin.isatty() and sys.stderr.isatty()
