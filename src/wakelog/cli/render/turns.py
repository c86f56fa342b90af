"""The turn spine: one row a turn, gathered in one pass over the events it covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from wakelog.cli.context import Context
from wakelog.cli.render.cost import Spent, plain_cost
from wakelog.cli.render.events import is_error
from wakelog.cli.render.table import Cell, Column, Row
from wakelog.cli.render.values import preview, text_of
from wakelog.cli.text import clock, count, glyph, iso, money, other_time
from wakelog.diff.turn_diff import sentence
from wakelog.log.reader import Entry
from wakelog.model.calls import ASKS
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session import Session


class TurnRow(msgspec.Struct):
    """A turn in numbers. Lines and files are those of the newest attempt; money and calls are of all of them."""

    turn: int
    first: Seq
    started_at: int
    """When it happened, as far as that is told, like `ended_at`."""
    stored_at: int
    begin: Seq = 0
    """Where the newest attempt begins."""
    last: Seq = 0
    ended_at: int = 0
    attempts: int = 1
    outcome: str = "open"
    in_view: bool = True
    input: str = ""
    decision: str = ""
    first_tool: str = ""
    tools: int = 0
    model_calls: int = 0
    errors: int = 0
    events: int = 0
    files: dict[str, tuple[int, int]] = {}
    spent: Spent = msgspec.field(default_factory=Spent)
    untrusted: list[str] = []
    flags: list[str] = []
    """Those that stand and are about something in it."""

    @property
    def title(self) -> str:
        """What the turn is about: its input, else the first thing decided or done."""
        return self.input or self.decision or self.first_tool

    @property
    def added(self) -> int:
        return sum(a for a, _ in self.files.values())

    @property
    def removed(self) -> int:
        return sum(r for _, r in self.files.values())


def gather(session: Session[Any], entries: Iterable[Entry], at: Seq | None = None) -> Iterator[TurnRow]:
    """The turns among the events, oldest first. Memory follows one turn, not the history."""
    view = session.log.view(at)
    row: TurnRow | None = None
    for entry in entries:
        number = entry.header.turn
        if not number:
            continue
        if row is None or row.turn != number:
            if row is not None:
                yield _finished(row, view)
            row = TurnRow(number, entry.seq, entry.happened_at, entry.header.at, begin=entry.seq)
        _take(session, row, entry)
    if row is not None:
        yield _finished(row, view)


def _finished(row: TurnRow, view: list[tuple[Seq, Seq]]) -> TurnRow:
    row.in_view = any(first <= row.begin <= last for first, last in view)
    return row


def _take(session: Session[Any], row: TurnRow, entry: Entry) -> None:
    header, body, kind = entry.header, entry.body, entry.kind
    row.last, row.events = entry.seq, row.events + 1
    if kind == "turn.started":
        row.attempts, row.begin, row.outcome, row.ended_at = header.attempt, entry.seq, "open", 0
        row.files = {}
        row.input = row.input or preview(session, entry, body.get("input"))
    elif kind == "turn.ended":
        row.outcome, row.ended_at = text_of(body.get("outcome", "completed")), entry.happened_at
    elif kind == "message.added" and not row.input and body.get("role") == "user":
        row.input = preview(session, entry, body.get("content"))
    elif kind == "decision.made" and not row.decision:
        row.decision = sentence(body)
    elif kind == "file.changed":
        path = text_of(body.get("path", ""))
        added, removed = row.files.get(path, (0, 0))
        row.files[path] = (added + body.get("added", 0), removed + body.get("removed", 0))
    elif kind in ASKS:
        _take_call(row, body)
    if "cost" in body:
        row.spent.add(body["cost"])
    if kind != "turn.ended" and is_error(entry):
        row.errors += 1
    if header.trust != "trusted" and (header.source or header.trust) not in row.untrusted[:8]:
        row.untrusted.append(header.source or header.trust)


def _take_call(row: TurnRow, body: dict[str, Value]) -> None:
    if body.get("effect") == "model":
        row.model_calls += 1
        return
    row.tools += 1
    row.first_tool = row.first_tool or text_of(body.get("tool", ""))


_LOOKS = {
    "completed": ("done", "green"),
    "failed": ("failed", "red"),
    "interrupted": ("failed", "yellow"),
    "open": ("open", "blue"),
}

COLUMNS = (
    Column(),
    Column(),
    Column(),
    Column(least=16),
    Column(drop=2),
    Column(right=True, drop=4),
    Column(right=True, drop=5),
    Column(right=True, drop=6),
    Column(right=True, drop=3),
    Column(least=6),
)


def spine_row(ctx: Context, row: TurnRow, today: str) -> Row:
    """A turn as cells for COLUMNS: place, time, glyph, title, attempts, tools, lines, tokens, money, marks."""
    sign, color = _LOOKS.get(row.outcome, ("done", "white"))
    spent = row.spent
    lines = f"+{row.added} {glyph('minus')}{row.removed}" if row.files else ""
    marks = [f"{glyph('warn')} {name}" for name in (*row.flags[:2], *row.untrusted[:2])]
    if not row.in_view:
        marks.insert(0, f"{glyph('back')} rewound")
    if row.outcome in ("interrupted", "open"):
        marks.insert(0, row.outcome)
    dim = {} if row.in_view else {"dim": True}
    return (
        Cell(f" @{row.turn}", {"fg": "cyan"}),
        Cell(time_of(row.started_at, today, utc=ctx.utc) + other_time(row.started_at, row.stored_at), {"dim": True}),
        Cell(glyph(sign), {"fg": color}),
        Cell(row.title, dim),
        Cell(f"{glyph('times')}{row.attempts} attempts" if row.attempts > 1 else "", {"fg": "yellow"}),
        Cell(f"{row.tools} tool{'s' if row.tools != 1 else ''}" if row.tools else "", dim),
        Cell(lines, dim),
        Cell(f"{count(spent.tokens_out)} out" if spent.tokens_out else "", dim),
        Cell(money(spent.usd_micros) if spent.usd_micros else "", dim),
        Cell("  ".join(marks), {"fg": "yellow"}),
    )


def time_of(at_us: int, today: str, *, utc: bool) -> str:
    """The time of day, with the date in front when it is not `today` (YYYY-MM-DD)."""
    whole = clock(at_us, utc=utc, long=True)
    return whole[11:16] if whole.startswith(today) else whole[5:16]


def plain_turn(row: TurnRow) -> dict[str, Any]:
    """A turn as JSON."""
    return {
        "turn": row.turn,
        "attempts": row.attempts,
        "outcome": row.outcome,
        "in_view": row.in_view,
        "first": row.first,
        "last": row.last,
        "started_at": iso(row.started_at),
        "stored_at": iso(row.stored_at),
        "ended_at": iso(row.ended_at) if row.ended_at else None,
        "input": row.input or None,
        "decision": row.decision or None,
        "events": row.events,
        "tools": row.tools,
        "model_calls": row.model_calls,
        "errors": row.errors,
        "files": [{"path": path, "added": a, "removed": r} for path, (a, r) in row.files.items()],
        "cost": plain_cost(msgspec.to_builtins(row.spent)),
        "untrusted": row.untrusted,
        "flags": row.flags,
    }
