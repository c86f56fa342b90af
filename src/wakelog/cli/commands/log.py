"""`wakelog log`: shows a session turn by turn, newest first."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import at_option, place_argument
from wakelog.cli.render.damage import answer_damaged
from wakelog.cli.render.events import brief, show_line
from wakelog.cli.render.flags import mark_flags
from wakelog.cli.render.results import plain
from wakelog.cli.render.sessions import handle, plain_session
from wakelog.cli.render.turns import TurnsLook, TurnSummary, gather, header_line, say_spine
from wakelog.cli.selectors import Place, clip_to_time, find_span, find_time, start_of, turn_at
from wakelog.errors import CorruptLogError
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.session import Session
from wakelog.session.status import SessionCondition, read_condition
from wakelog.timeline.selectors import Range

MAX_TURNS, MAX_EVENTS = 40, 100


@click.command("log")
@place_argument("where", "[SEL|RANGE]")
@click.option("-p", "--patch", is_flag=True, help="Show what each turn changed.")
@click.option("--stat", is_flag=True, help="Show the files that each turn in view changed.")
@click.option("--oneline", is_flag=True, help="Show turn, status and title only.")
@click.option("--insight", is_flag=True, help="Show what can be derived about each turn.")
@click.option("--graph", is_flag=True, help="Mark forks, rewinds and checkpoints.")
@click.option("--events", is_flag=True, help="Show events instead of turns.")
@click.option("--kind", "kinds", multiple=True, metavar="K", help="Show events of this kind, or of all kinds K.*.")
@click.option("--tool", metavar="T", help="Show events of this tool.")
@click.option("--reverse", is_flag=True, help="Show the oldest first.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(0),
    help=f"Show at most N (default: {MAX_TURNS} turns, {MAX_EVENTS} events; 0 shows all).",
)
@click.option("--since", metavar="T", help="Start at this time: 10m, 2h, today, 2026-11-15T18:00.")
@click.option("--until", metavar="T", help="Stop at this time.")
@at_option
@common
def log_command(
    ctx: CommandContext,
    where: str,
    events: bool,
    kinds: tuple[str, ...],
    tool: str | None,
    reverse: bool,
    limit: int | None,
    since: str | None,
    until: str | None,
    at: str,
    **looks: bool,
) -> int:
    """Show a session turn by turn, newest first, one line each. A session without turns shows its events.

    A point shows the history up to it (fix-auth@5). A range includes both ends (@3..@7 is five turns).

    Examples:
      wakelog log fix-auth
      wakelog log fix-auth --graph
    """
    ctx.even_damaged = True
    place = ctx.place(where, at)
    session = place.session
    span = Range(1, session.head.seq)
    max_events = MAX_EVENTS if limit is None else limit
    try:
        condition = read_condition(session, place.at)
        span = _span(place, find_time(ctx, since), find_time(ctx, until), condition.seq)
        if events or kinds or tool or not condition.document["turn"]["number"]:
            entries = session.events(
                after=span.first - 1, upto=span.last, kind=kinds or None, tool=tool, newest_first=not reverse
            )
            _answer_events(ctx, session, condition, entries, max_events)
        else:
            looks["insight"] |= looks["patch"]
            look = TurnsLook(**looks, reverse=reverse)
            _answer_turns(ctx, session, condition, span, MAX_TURNS if limit is None else limit, look)
    except CorruptLogError as exc:
        return answer_damaged(ctx, "log", session, exc, span, limit=max_events, reverse=not reverse)
    return 0


def _span(place: Place, since: int, until: int, last: Seq) -> Range:
    """The events asked for, both ends included."""
    first, session = 1, place.session
    if place.text:
        extent = place.span
        first, last = (extent.first if place.is_range else 1), min(extent.last, last)
    return clip_to_time(session, Range(max(first, 1), last), since, until)


# Turns


def _answer_turns(
    ctx: CommandContext, session: Session[Any], condition: SessionCondition, span: Range, limit: int, look: TurnsLook
) -> None:
    span = _whole_turns(session, span)
    rows, older = _newest(session, span, limit, condition.seq, in_view=look.stat)
    first = None
    if older and older[0] == 1 and older[1] > 1 and ctx.is_for_people:
        # Also show the first turn: it says what the session is about.
        first = next(_rows(session, Range(span.first, rows[0].first - 1), condition.seq), None) if rows else None
    mark_flags(session, condition.document["flags"], [*rows, *([first] if first else [])])
    summaries = rows if look.reverse else rows[::-1]
    cursor = f"@{older[0]}..@{older[1]}" if older else None
    data = {"session": plain_session(session, condition), "turns": summaries, "events": None}

    def human() -> None:
        ctx.say(header_line(ctx, session, condition))
        if rows:
            say_spine(ctx, session, condition, summaries, look, older, first)
        else:
            ctx.say("  no turns there")

    records = ({"session": session.id, **plain(row)} for row in summaries)
    ctx.answer("log", data, human, records=records, next_cursor=cursor)
    name = handle(session)
    bad = next((r for r in reversed(rows) if r.outcome == "failed" or r.errors), rows[-1] if rows else None)
    if bad:
        ctx.suggest(f"wakelog show {name}@{bad.turn}", f"wakelog diff {name}@{bad.turn}", f"wakelog log {name} -p")


def _newest(
    session: Session[Any], span: Range, limit: int, at: Seq, *, in_view: bool
) -> tuple[list[TurnSummary], tuple[int, int] | None]:
    """The newest turns of a span, oldest first, and the range of the older turns. Reads little more than it returns.
    `in_view` leaves out turns that were rewound."""
    if not limit:
        return [row for row in _rows(session, span, at) if row.in_view or not in_view], None
    low, high = turn_at(session, span.first), turn_at(session, span.last)
    reach = limit
    while True:
        start = max(low, high - reach + 1)
        from_seq = start_of(session, start) if start > low else span.first
        summaries = _rows(session, Range(from_seq, span.last), at)
        rows = list(deque((row for row in summaries if row.in_view or not in_view), maxlen=limit))
        if len(rows) == limit or start == low or not in_view:
            break
        reach *= 2
    oldest = rows[0].turn if rows else start
    return rows, (max(1, low), oldest - 1) if oldest > max(1, low) else None


def _whole_turns(session: Session[Any], span: Range) -> Range:
    """The span, extended to the start of its first turn, because half a turn would have half its numbers."""
    if not 1 < span.first <= span.last:
        return span
    entries = session.log.entries(after=span.first - 1, upto=span.last)
    turn = next((entry.header.turn for entry in entries if entry.header.turn), 0)
    return Range(min(span.first, find_span(session, f"@{turn}").first), span.last) if turn else span


def _rows(session: Session[Any], span: Range, at: Seq) -> Iterator[TurnSummary]:
    return gather(session, session.log.entries(after=span.first - 1, upto=span.last), at)


# Events


def _answer_events(
    ctx: CommandContext, session: Session[Any], condition: SessionCondition, entries: Iterable[Entry], limit: int
) -> None:
    tools: dict[str, str] = {}
    shown = itertools.islice(entries, limit) if limit else iter(entries)
    if ctx.json:
        listed = [brief(session, e, tools) for e in shown]
        rest = next(iter(entries), None) if limit else None
        data = {"session": plain_session(session, condition), "turns": None, "events": listed}
        ctx.answer("log", data, (), next_cursor=f"e{rest.seq}" if rest else None)
        return

    def human() -> Iterator[str]:
        yield header_line(ctx, session, condition)
        is_empty = True
        for entry in shown:
            is_empty = False
            yield show_line(ctx, session, entry, tools)
        if is_empty:
            yield "  no such events there"
        if limit and next(iter(entries), None) is not None:
            yield ctx.style(f"  there are more; -n {limit * 10} shows more of them, -n 0 all", dim=True)

    ctx.answer("log", None, human(), records=(brief(session, entry, tools) for entry in shown))
    ctx.suggest(f"wakelog show -s {handle(session)} e{session.head.seq}")
