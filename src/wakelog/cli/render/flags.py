"""Flags, as table rows and as JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.sessions import identity
from wakelog.cli.render.table import Cell, Row
from wakelog.cli.render.turns import TurnSummary
from wakelog.cli.render.values import text_of
from wakelog.cli.text import age, glyph, iso
from wakelog.errors import CorruptLogError
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session import Session

SEVERITIES = ("alarm", "error", "warning", "info")
COLORS = {"alarm": "red", "error": "red", "warning": "yellow"}
FLAG_COLUMNS = "session 12 | flag 16 | > event -2 | > age -1 | what 24"


class RaisedFlag(msgspec.Struct, frozen=True):
    """A raised flag. `cause` is the event that led to it, 0 if unknown; `seq` and `at` are those of the flag event, 0
    if the flag is not in the log."""

    name: str
    rule: str
    severity: str
    message: str
    seq: Seq
    cause: Seq
    at: int
    targets: tuple[Seq, ...] = ()
    count: int = 1


def flags_of(session: Session[Any]) -> list[RaisedFlag]:
    """The raised flags of a session, oldest first."""
    results = []
    for name, flag in session.log.part("flags").items():
        entry = session.log.entry(flag["seq"])
        header, targets = entry.header, entry.body.get("targets", ())
        texts = (name, text_of(flag.get("rule", "")), flag.get("severity", "warning"), text_of(flag.get("message", "")))
        results.append(RaisedFlag(*texts, entry.seq, header.cause, header.at, tuple(targets), flag.get("count", 1)))
    return sorted(results, key=lambda flag: flag.seq)


def flags_by_event(session: Session[Any]) -> dict[Seq, str]:
    """The flag on each event; empty if the session is too damaged to read its state."""
    with contextlib.suppress(CorruptLogError):
        return {flag.cause or next(iter(flag.targets), flag.seq): flag.name for flag in flags_of(session)}
    return {}


def mark_flags(session: Session[Any], flags: dict[str, Value], rows: Sequence[TurnSummary]) -> None:
    """Adds to each turn the flags that are about one of its events."""
    for name, flag in flags.items():
        entry = session.log.entry(flag["seq"])
        place = entry.header.cause or next(iter(entry.body.get("targets", ())), entry.seq)
        for row in rows:
            if row.first <= place <= row.last:
                row.flags.append(name)


def flag_cells(ctx: CommandContext, session: str, flag: RaisedFlag) -> Row:
    """A flag as cells for FLAG_COLUMNS."""
    place = flag.cause or next(iter(flag.targets), flag.seq)
    style = {"fg": COLORS[flag.severity]} if flag.severity in COLORS else {}
    return (
        Cell(session, {"bold": True}),
        Cell(f"{glyph('warn')} {flag.name}", style),
        Cell(f"e{place}" if place else "", {"fg": "cyan"}),
        age(flag.at, ctx.store.clock()).removesuffix(" ago") if flag.at else "",
        flag.message + (f" ({flag.count} times)" if flag.count > 1 else ""),
    )


def plain_flag(session: Session[Any], flag: RaisedFlag) -> dict[str, Any]:
    """A flag as JSON."""
    return {
        **identity(session),
        "flag": flag.name,
        "rule": flag.rule or None,
        "severity": flag.severity,
        "count": flag.count,
        "message": flag.message or None,
        "seq": flag.seq or None,
        "cause": flag.cause or None,
        "targets": list(flag.targets),
        "raised_at": iso(flag.at) if flag.at else None,
    }
