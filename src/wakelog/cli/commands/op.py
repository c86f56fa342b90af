"""`wakelog op`: lists the operations on a session, and goes back to the state after one of them.

An operation is an event: a rewind, an adoption, an erasure, a prune, an import, a hold, a pause. Its number is the
number of the event, so nothing extra is stored and every machine sees the same list.
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
from wakelog.cli.render.table import Cell, say_table
from wakelog.cli.text import clock, inert_line
from wakelog.errors import NotFoundError
from wakelog.maintenance.audit import AuditEntry, whole_audit
from wakelog.session import Session

_ID = re.compile(r"(?:op:|e)?([1-9][0-9]{0,15})")
_NO_OPERATION = ("approval", "gap")
"""Kinds of audit entries that are not operations on the record."""
MAX_ROWS = 100


@click.group("op")
def op_command() -> None:
    """List what was done to a session: rewinds, adoptions, erasures, prunes, imports, holds, pauses. A rewind loses
    nothing, so you can go back to the state after any operation.

    Examples:
      wakelog op log fix-bug
      wakelog op restore op:65 -s fix-bug
    """


@op_command.command("log")
@session_argument
@limit_option(MAX_ROWS)
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
        say_table(
            ctx,
            "op | time | what 16 | by -1 | why 8 -2",
            [_row(ctx, entry) for entry in shown],
            none=f"nothing was done to {label(found)}",
        )
        if len(entries) > len(shown):
            ctx.say(f"… {len(entries) - len(shown):,} more (-n 0 shows all)")

    ctx.answer("op-log", [plain(entry) for entry in shown], human)
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
    session = ctx.session()
    entry = _find(ctx, session, operation)
    change = session.diff(entry.seq - 1, entry.seq) if entry.seq > 1 else None
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
    ctx.suggest(f"wakelog op restore op:{entry.seq} -s {handle(session)}")


@op_command.command("restore")
@click.argument("operation", metavar="OP")
@yes_option
@why_option
@common
def op_restore(ctx: CommandContext, operation: str, yes: bool, why: str) -> None:
    """Go back to the state right after an operation. This is a rewind: nothing is lost, and `wakelog undo` reverts it.
    Files on disk are not touched. What was erased stays erased.

    Example:
      wakelog op restore op:65 -s fix-bug
    """
    session = ctx.session()
    entry = _find(ctx, session, operation)
    if ctx.is_for_people:
        ctx.say(f"Go back to {label(session)} as it was after op:{entry.seq} ({_what(entry)})")
    ctx.confirm("Go back?", yes=yes)
    head = session.rewind(entry.seq, why=why or f"restore of op:{entry.seq}")
    line = f"{label(session)} is as it was after op:{entry.seq}. To undo: wakelog undo {handle(session)}"
    ctx.done("op-restore", session, line, operation=entry.seq, head=head.seq)


def _operations(ctx: CommandContext, session: Session[Any]) -> list[AuditEntry]:
    return [entry for entry in whole_audit(ctx.store, session).entries if entry.concern not in _NO_OPERATION]


def _find(ctx: CommandContext, session: Session[Any], operation: str) -> AuditEntry:
    match = _ID.fullmatch(operation)
    if match is None:
        raise click.UsageError(f"{operation!r} is not an operation; it looks like op:17")
    found = next((entry for entry in _operations(ctx, session) if entry.seq == int(match[1])), None)
    if found is None:
        raise NotFoundError(
            f"op:{match[1]} is not an operation on {session.name or session.id}",
            kind="operation-not-found",
            hint=f"wakelog op log {handle(session)}",
        )
    return found


def _what(entry: AuditEntry) -> str:
    subject, _, verb = entry.kind.partition(".")
    return inert_line(f"{subject} {verb.replace('_', ' ')}" + (f": {entry.what}" if entry.what else ""))


def _row(ctx: CommandContext, entry: AuditEntry) -> list[Cell | str]:
    return [
        Cell(f"op:{entry.seq}", {"fg": "cyan"}),
        clock(entry.at, utc=ctx.utc, long=True),
        _what(entry),
        entry.by or entry.actor,
        entry.why,
    ]
