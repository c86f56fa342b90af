"""`wakelog show`: shows one turn, event or commit in full."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.render.damage import answer_damaged
from wakelog.cli.render.detail import MAX_BYTES, event_lines, turn_lines
from wakelog.cli.render.events import record
from wakelog.cli.render.insight import WHY, derive_insight, insight_lines
from wakelog.cli.render.sessions import handle, identity
from wakelog.cli.render.turns import TurnSummary, gather
from wakelog.cli.selectors import find_events, find_span
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert
from wakelog.errors import CorruptLogError
from wakelog.insight.items import Insight
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.session import Session
from wakelog.timeline.selectors import Range

MAX_EVENTS = 1000
"""How many events of a turn are shown; the others are counted."""


class _Shown(msgspec.Struct, frozen=True):
    """What a selector names: a session, and a turn, event, commit or range in it."""

    session: Session[Any]
    kind: str
    span: Range


@click.command("show")
@click.argument("places", nargs=-1, metavar="[SEL]...", shell_complete=complete_selector)
@click.option("--raw", is_flag=True, help="Print the stored header and body of each event, a line each.")
@click.option("--with-output", is_flag=True, help="Show inputs and outputs of calls too.")
@click.option("--all", "everything", is_flag=True, help="Show minor derived decisions too.")
@click.option(
    "--max-bytes",
    "limit",
    type=click.IntRange(0),
    default=MAX_BYTES,
    show_default=True,
    help="Show at most N bytes of a value; 0 shows all.",
)
@common
def show_command(
    ctx: CommandContext, places: tuple[str, ...], raw: bool, with_output: bool, everything: bool, limit: int
) -> int:
    """Show a turn with its events (@5), one event in full (e1042), or a commit (c:9f3a). Without SEL, the newest turn.

    A session's name also applies to the positions after it: fix-auth@7 e40 is event 40 of fix-auth.

    Examples:
      wakelog show fix-auth@5
      wakelog show e1042 -s fix-auth
    """
    ctx.even_damaged = True
    shown = _find(ctx, places)
    try:
        _show(ctx, shown, raw, with_output, everything, limit)
    except CorruptLogError as exc:
        return max(answer_damaged(ctx, "show", item.session, exc, item.span, limit=MAX_EVENTS) for item in shown)
    return 0


def _show(ctx: CommandContext, shown: list[_Shown], raw: bool, with_output: bool, everything: bool, limit: int) -> None:
    if raw:
        for item in shown:
            _say_raw(item)
        return
    if ctx.ndjson:
        for item in shown:
            tools: dict[str, str] = {}
            for entry in _entries(item):
                ctx.record("show", record(item.session, entry, tools, limit))
        return
    if ctx.json:
        documents = [_plain(item, everything, limit) for item in shown]
        ctx.answer("show", documents[0] if len(documents) == 1 else documents)
        return
    for number, item in enumerate(shown):
        if number:
            ctx.say()
        _say(ctx, item, with_output, everything, limit)
    ctx.flush()
    _suggest(ctx, shown[-1])


def _find(ctx: CommandContext, places: tuple[str, ...]) -> list[_Shown]:
    results: list[_Shown] = []
    named = [ctx.place(text) for text in places or ("@",)]
    for place in named:
        results.append(_find_one(place.session if place.named or not results else results[-1].session, place.text))
    if len(named) > 1 and named[0].named and not named[0].text and not named[1].named:
        del results[0]  # a name alone only says which session the positions after it are in
    # `fix-auth@7 e40`, as search prints it, means the event and not the turn as well.
    if len(results) == 2 and places[0][-1:].isdigit() and results[1].kind == "event" and results[0].kind == "turn":
        first, second = results
        if first.session.id == second.session.id and first.span.first <= second.span.first <= first.span.last:
            return [second]
    return results


def _find_one(session: Session[Any], spot: str) -> _Shown:
    head = session.head
    if spot in ("", "@"):
        if head.turn:
            return _Shown(session, "turn", find_span(session, f"@{head.turn}"))
        return _Shown(session, "events", Range(1, head.seq))
    span = find_events(session, spot)
    if ".." in spot:
        kind = "events"
    elif spot.startswith(("@", "turn:")):
        kind = "turn"
    elif spot.startswith(("c:", "commit:")):
        kind = "commit"
    else:
        kind = "event"
    return _Shown(session, kind, span)


def _entries(shown: _Shown) -> Iterator[Entry]:
    span = shown.span
    entries = shown.session.log.entries(after=max(0, span.first - 1), upto=span.last) if span.last else iter(())
    if shown.kind != "turn":
        return entries
    return (entry for entry in entries if entry.header.turn)


def _turn_row(shown: _Shown) -> TurnSummary | None:
    return next(gather(shown.session, _entries(shown)), None) if shown.kind == "turn" else None


def _insight(shown: _Shown, row: TurnSummary | None, everything: bool) -> Insight | None:
    return derive_insight(shown.session, f"@{row.turn}", everything=everything) if row is not None else None


def _plain(shown: _Shown, everything: bool, limit: int) -> dict[str, Any]:
    tools: dict[str, str] = {}
    row, session = _turn_row(shown), shown.session
    events = [record(session, e, tools, limit) for e in itertools.islice(_entries(shown), MAX_EVENTS)]
    return {
        **identity(session),
        "kind": shown.kind,
        "first": shown.span.first,
        "last": shown.span.last,
        "turn": row,
        "insight": _insight(shown, row, everything),
        "commit": _plain_commit(session, shown.span.last) if shown.kind in ("commit", "event") else None,
        "events": events,
        "more": max(0, (row.events if row else shown.span.last - shown.span.first + 1) - len(events)),
    }


def _plain_commit(session: Session[Any], seq: Seq) -> dict[str, Any]:
    commit = session.history.commit(seq)
    return {
        "id": commit.commit_id,
        "hash": commit.hash.hex(),
        "prev": commit.prev.hex(),
        "first": commit.first,
        "last": commit.last,
        "kinds": list(commit.kinds),
        "paths": list(commit.paths),
    }


def _say(ctx: CommandContext, shown: _Shown, with_output: bool, everything: bool, limit: int) -> None:
    tools: dict[str, str] = {}
    session = shown.session
    if shown.kind == "event":
        entry = session.log.entry(shown.span.last)
        ctx.say_all(event_lines(ctx, session, entry, tools, limit))
        return
    row = _turn_row(shown)
    commit = _plain_commit(session, shown.span.last) if shown.kind == "commit" else None
    entries = itertools.islice(_entries(shown), MAX_EVENTS)
    insight = _insight(shown, row, everything)
    # The heading has the goal, and checks and files are among the events.
    about = list(insight_lines(ctx, insight, (*WHY, "pending", "check"), files=False)) if insight else []
    ctx.say_all(
        turn_lines(ctx, session, row, commit, shown.span, entries, tools, about, with_output=with_output, limit=limit)
    )
    total = row.events if row else shown.span.last - shown.span.first + 1
    if total > MAX_EVENTS:
        rest = f"wakelog log {handle(session)} --events, or show a range e{shown.span.first}.."
        ctx.remark(f"  {total - MAX_EVENTS:,} more events ({rest})")


def _say_raw(shown: _Shown) -> None:
    """Prints the stored bytes; inert on a terminal, unchanged in a pipe."""
    for entry in _entries(shown):
        for part in (entry.record.header, entry.record.body):
            text = part.decode(errors="backslashreplace")
            click.echo(inert(text) if sys.stdout.isatty() else text)


def _suggest(ctx: CommandContext, shown: _Shown) -> None:
    name = handle(shown.session)
    if shown.kind == "turn":
        turn = shown.session.log.entry(shown.span.last).header.turn
        ctx.suggest(f"wakelog diff {name}@{turn}", f"wakelog show {name}@{turn} --with-output")
    else:
        ctx.suggest(f"wakelog log {name}")
