"""`wakelog op`: what was done to a session's record, and going back to how it was after something was done.

An operation is an event: a rewind, an adoption, an erasure, a prune, an import, a hold, a pause. Its number is the
event's. So nothing new is stored, and every machine sees the same list.
"""

from __future__ import annotations

import re
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import limit_option, session_argument, why_option, yes_option
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.results import plain
from wakelog.cli.render.sessions import handle, label
from wakelog.cli.render.table import Cell, Column, say_table
from wakelog.cli.text import clock, inert_line
from wakelog.errors import NotFoundError
from wakelog.maintenance.audit import AuditEntry, whole_audit
from wakelog.session import Session

_ID = re.compile(r"(?:op:|e)?([1-9][0-9]{0,15})")
_NOT_OURS = ("approval", "gap")
"""What is in the audit, and is no operation on the record."""
SHOWN = 100


@click.group("op")
def op_command() -> None:
    """List what was done to a session: rewinds, adoptions, erasures, prunes, imports, holds, pauses. Nothing is lost by
    any rewind, so you can go back to how things were after an operation.

    Examples:
      wakelog op log fix-bug
      wakelog op restore op:65 -s fix-bug
    """


@op_command.command("log")
@session_argument
@limit_option(SHOWN)
@common
def op_log(ctx: CommandContext, session: str, limit: int) -> None:
    """List the operations on a session, newest first, with who did it and why.

    Example:
      wakelog op log fix-bug
    """
    found = ctx.session(session)
    entries = _operations(ctx, found)
    entries.reverse()
    shown = entries[:limit] if limit else entries

    def human() -> None:
        columns = (Column("op"), Column("time"), Column("what", 16), Column("by", drop=1), Column("why", 8, drop=2))
        say_table(ctx, columns, [_row(ctx, each) for each in shown], none=f"nothing was done to {label(found)}")
        if len(entries) > len(shown):
            ctx.say(f"… {len(entries) - len(shown):,} more (-n 0 shows all)")

    ctx.answer("op-log", [plain(each) for each in shown], human)
    if shown:
        ctx.suggest(f"wakelog op show op:{shown[0].seq} -s {handle(found)}", "wakelog undo")


@op_command.command("show")
@click.argument("operation", metavar="OP")
@common
def op_show(ctx: CommandContext, operation: str) -> None:
    """Show one operation: who did it, why, and what it changed.

    Example:
      wakelog op show op:65 -s fix-bug
    """
    found = ctx.session()
    entry = _find(ctx, found, operation)
    change = found.diff(entry.seq - 1, entry.seq) if entry.seq > 1 else None
    data = {**msgspec.to_builtins(entry), "change": plain(change) if change is not None else None}

    def human() -> None:
        ctx.say(f"{ctx.style(f'op:{entry.seq}', bold=True)}  {_what(entry)}  {clock(entry.at, utc=ctx.utc, long=True)}")
        for title, text in (("by", entry.by or entry.actor), ("why", entry.why)):
            if text:
                ctx.row(title, inert_line(text))
        if entry.events:
            more = " …" if len(entry.events) > 20 else ""
            ctx.row("events", ", ".join(f"e{seq}" for seq in entry.events[:20]) + more)
        ctx.say_all(change_lines(ctx, change, {}, indent="  ") if change is not None else ())

    ctx.answer("op", data, human)
    ctx.suggest(f"wakelog op restore op:{entry.seq} -s {handle(found)}")


@op_command.command("restore")
@click.argument("operation", metavar="OP")
@yes_option
@why_option
@common
def op_restore(ctx: CommandContext, operation: str, yes: bool, why: str) -> None:
    """Go back to how the session was right after an operation. This is a rewind: nothing is lost, and `wakelog undo`
    takes it back. Files on disk are not touched. What was erased stays erased.

    Example:
      wakelog op restore op:65 -s fix-bug
    """
    found = ctx.session()
    entry = _find(ctx, found, operation)
    if ctx.is_for_people:
        ctx.say(f"Go back to {label(found)} as it was after op:{entry.seq} ({_what(entry)})")
    ctx.confirm("Go back?", yes=yes)
    head = found.rewind(entry.seq, why=why or f"restore of op:{entry.seq}")
    said = f"{label(found)} is as it was after op:{entry.seq}. To undo: wakelog undo {handle(found)}"
    ctx.done("op-restore", found, said, operation=entry.seq, head=head.seq)


def _operations(ctx: CommandContext, session: Session[Any]) -> list[AuditEntry]:
    return [each for each in whole_audit(ctx.store, session).entries if each.concern not in _NOT_OURS]


def _find(ctx: CommandContext, session: Session[Any], operation: str) -> AuditEntry:
    match = _ID.fullmatch(operation)
    if match is None:
        raise click.UsageError(f"{operation!r} is not an operation; it looks like op:17")
    found = next((each for each in _operations(ctx, session) if each.seq == int(match[1])), None)
    if found is None:
        raise NotFoundError(
            f"e{match[1]} is not an operation on {session.name or session.id}",
            kind="operation-not-found",
            hint=f"wakelog op log {handle(session)}",
        )
    return found


def _what(entry: AuditEntry) -> str:
    name = entry.kind.partition(".")[2].replace("_", " ")
    subject = entry.kind.partition(".")[0]
    return inert_line(f"{subject} {name}" + (f": {entry.what}" if entry.what else ""))


def _row(ctx: CommandContext, entry: AuditEntry) -> list[Cell | str]:
    return [
        Cell(f"op:{entry.seq}", {"fg": "cyan"}),
        clock(entry.at, utc=ctx.utc, long=True),
        _what(entry),
        entry.by or entry.actor,
        entry.why,
    ]
