"""The spine on the terminal: a header for the session, a line a turn, and what was asked for beneath each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from wakelog.cli.context import Context
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.sessions import URGENT, Standing, handle, short_id, status_words
from wakelog.cli.render.table import Column, lay_out
from wakelog.cli.render.turns import COLUMNS, TurnRow, spine_row
from wakelog.cli.render.values import text_of
from wakelog.cli.text import clock, duration, fit, fit_path, glyph, money, width
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.session import Session
from wakelog.timeline.points import commit_at
from wakelog.timeline.slices import Slice, read_slice


class Look(msgspec.Struct, frozen=True):
    """How turns are shown."""

    patch: bool = False
    stat: bool = False
    oneline: bool = False
    graph: bool = False
    reverse: bool = False


def header_line(ctx: Context, session: Session[Any], stand: Standing) -> str:
    """The session in one line: name, turns, time, money, id, status."""
    document, head = stand.document, stand.head
    started = commit_at(session.log, 1)
    turns = document["turn"]["number"]
    facts = [
        f"{turns} turn{'s' if turns != 1 else ''}" if turns else f"{stand.seq} events",
        duration(max(0, stand.at - started.at)),
        money(spent) if (spent := document["budget"]["spent"].get("usd_micros", 0)) else "",
        short_id(session.id),
        f"fork of {short_id(head.fork.parent)} at e{head.fork.at}" if head.fork else "",
    ]
    need = f" {glyph('dot')} {stand.need}" if stand.need in URGENT else ""
    if flags := len(document["flags"]):
        need += f" {glyph('dot')} {glyph('warn')} {flags} flag{'s' if flags != 1 else ''}"
    name = fit(session.name or session.id, ctx.columns // 3)
    room = ctx.columns - width(name) - len(stand.status) - len(need) - 6
    rest = fit("  ".join(fact for fact in facts if fact), max(1, room))
    return f"{ctx.style(name, bold=True)}  {rest}  {status_words(ctx, stand.status)}{ctx.style(need, fg='yellow')}"


def say_spine(
    ctx: Context,
    session: Session[Any],
    stand: Standing,
    rows: Sequence[TurnRow],
    look: Look,
    older: tuple[int, int] | None,
    first: TurnRow | None,
) -> None:
    """Says the turns in the order given; `older` are left out but counted, and `first` stands for where they began."""
    marks = _marks(session, stand, rows) if look.graph else []
    everything = [*rows, *([first] if first else [])]
    lines = dict(zip((r.turn for r in everything), _lines(ctx, session, everything, look), strict=True))
    if look.reverse:
        _say_older(ctx, session, older, first, lines, look)
    pending = list(marks) if look.reverse else marks[::-1]
    for row in rows:
        while pending and (pending[0][0] < row.first if look.reverse else pending[0][0] > row.last):
            ctx.say(pending.pop(0)[1](ctx))
        ctx.say(lines[row.turn])
        for line in _beneath(ctx, session, row, look):
            ctx.say(line)
        inside = [m for m in pending if row.first <= m[0] <= row.last]
        pending = [m for m in pending if m not in inside]
        for _, draw in inside:
            ctx.say(draw(ctx))
    for _, draw in pending:
        ctx.say(draw(ctx))
    if not look.reverse:
        _say_older(ctx, session, older, first, lines, look)


def _say_older(
    ctx: Context,
    session: Session[Any],
    older: tuple[int, int] | None,
    first: TurnRow | None,
    lines: dict[int, str],
    look: Look,
) -> None:
    if not older:
        return
    low, high = (older[0] + 1 if first else older[0]), older[1]
    count = high - low + 1
    name = handle(session)
    more = f"  {glyph('more')}   {count} turn{'s' if count != 1 else ''} (wakelog log {name}@{low}..@{high})"
    parts = [ctx.style(more, dim=True)] if count > 0 else []
    if first:
        parts = [lines[first.turn], *parts] if look.reverse else [*parts, lines[first.turn]]
    for part in parts:
        ctx.say(part)


def _lines(ctx: Context, session: Session[Any], rows: Sequence[TurnRow], look: Look) -> Iterator[str]:
    today = clock(session.log.clock(), utc=ctx.utc, long=True)[:10]
    cells = [spine_row(ctx, row, today) for row in rows]
    columns: tuple[Column, ...] = COLUMNS
    if look.oneline:
        cells = [(c[0], c[2], c[3]) for c in cells]
        columns = (COLUMNS[0], COLUMNS[2], COLUMNS[3])
    if not look.graph:
        yield from lay_out(ctx, columns, cells, titles=False)
        return
    for row, line in zip(rows, lay_out(ctx, columns, cells, titles=False, limit=ctx.columns - 2), strict=True):
        yield f" {glyph('line' if row.in_view else 'gone')}{line}"


def _beneath(ctx: Context, session: Session[Any], row: TurnRow, look: Look) -> Iterator[str]:
    if look.stat:
        for path, (added, removed) in list(row.files.items())[:50]:
            lines = f"  +{added} {glyph('minus')}{removed}"
            yield f"        {fit_path(path, ctx.columns - 8 - width(lines))}{lines}"
    if look.patch:
        found = session.diff(row.begin - 1, row.last)
        yield from change_lines(ctx, found, row.files, indent="      ")
        yield ""


# Marks: what happened between turns


def _marks(session: Session[Any], stand: Standing, rows: Sequence[TurnRow]) -> list[Any]:
    """(seq, how to draw it) for forks, rewinds, checkpoints and the session's life, in the range of the rows."""
    low, high = min(r.first for r in rows), max(r.last for r in rows)
    if max(r.turn for r in rows) == stand.document["turn"]["number"]:
        high = stand.seq
    found: list[tuple[Seq, Any]] = []
    kinds = ("history", "session", "checkpoint", "gap")
    for entry in read_slice(session.log, Slice(after=low - 1, upto=high, kind=kinds)):
        mark = _mark_text(session, entry)
        if mark:
            found.append((entry.seq, _drawer(*mark, entry.seq)))
    for child in session.log.engine.children(session.id):
        if child.fork and low <= child.fork.at <= high:
            name = child.name or short_id(child.session)
            text = f"{name} forked here, now @{child.turn} {child.status}"
            found.append((child.fork.at, _drawer("fork", text, child.fork.at)))
    return sorted(found, key=lambda mark: mark[0])


def _mark_text(session: Session[Any], entry: Entry) -> tuple[str, str] | None:
    body, kind = entry.body, entry.kind
    why = f": {text_of(body['why'])}" if body.get("why") else ""
    if kind == "history.rewound":
        words = {"retry": "tried again from", "undo": "undone, back to", "adopt": "for a fork, back to"}.get(
            text_of(body.get("mode")), "rewound to"
        )
        to = body.get("to", 0)
        turn = session.log.entry(to).header.turn if isinstance(to, int) and to else 0
        return "back", f"{words} {f'@{turn} ' if turn else ''}e{to}{why}"
    if kind == "history.adopted":
        return "fork", f"adopted {short_id(text_of(body.get('session', '')))} at e{body.get('at')}{why}"
    if kind == "session.forked":
        return "fork", f"forked from {short_id(text_of(body.get('parent', '')))} at e{body.get('at')}{why}"
    if kind == "checkpoint.named":
        return "note", f"checkpoint {text_of(body.get('name', ''))} at e{body.get('at')}"
    if kind == "session.opened":
        return None
    return "note", f"{kind.replace('.', ' ')}{why}"


def _drawer(sign: str, text: str, seq: Seq) -> Any:
    def draw(ctx: Context) -> str:
        line = f" {glyph('line')} {glyph(sign)} {fit(text, ctx.columns - 14)}"
        return f"{ctx.style(line, fg='magenta')}  {ctx.style(f'e{seq}', fg='cyan')}"

    return draw
