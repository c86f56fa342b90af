"""A damaged session, as far as it can be read: its events in order, and holes where events cannot be read.

State, turns and differences need every event from the first on, so they are not shown."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.render.events import record, show_line
from wakelog.cli.render.sessions import handle
from wakelog.cli.text import glyph, inert_line
from wakelog.errors import CorruptLogError
from wakelog.log.damage import Hole
from wakelog.log.reader import Entry
from wakelog.session import Session
from wakelog.timeline.selectors import Range


def readable_events(session: Session[Any], span: Range) -> Iterator[Entry | Hole]:
    """The events of a span, with holes in place of those that cannot be read."""
    holes: list[Hole] = []
    for entry in session.log.entries(after=max(0, span.first - 1), upto=span.last, on_hole=holes.append):
        yield from holes
        holes.clear()
        yield entry
    yield from holes


def answer_damaged(
    ctx: CommandContext,
    schema: str,
    session: Session[Any],
    problem: CorruptLogError,
    span: Range,
    *,
    limit: int,
    reverse: bool = False,
) -> int:
    """Answers with what can be read of a span, oldest first unless `reverse`; the exit code says that it is damaged."""
    # Keep one more than is shown, to know whether there are more. A long session is not kept in memory.
    wanted = limit + 1 if limit else None
    walk = readable_events(session, span)
    results = list(deque(walk, maxlen=wanted))[::-1] if reverse else list(itertools.islice(walk, wanted))
    shown = results[:limit] if limit else results
    tools: dict[str, str] = {}
    holes = [msgspec.to_builtins(item) for item in shown if isinstance(item, Hole)]
    if not ctx.is_for_people:
        events = [_plain(session, item, tools) for item in shown if isinstance(item, Entry)]
        fields = {"session": {"id": session.id, "name": session.name or None}, "turns": None}
        data = {**fields, "events": events, "holes": holes, "damage": problem.message}
        ctx.answer(schema, data, records=[*events, *({"hole": hole} for hole in holes)])
        return INTEGRITY
    sign = ctx.style(f"{glyph('warn')} damaged", fg="red")
    ctx.say(f"{ctx.style(handle(session), bold=True)}  {sign}")
    ctx.say(f"  {inert_line(problem.message)}; this is what can be read")
    for item in shown:
        ctx.say(_hole_line(ctx, item) if isinstance(item, Hole) else _line(ctx, session, item, tools))
    if len(results) > len(shown):
        ctx.remark("  there are more; wakelog export --format ndjson writes all that can be read")
    ctx.flush()
    ctx.suggest(f"wakelog verify {handle(session)}")
    return INTEGRITY


def _plain(session: Session[Any], entry: Entry, tools: dict[str, str]) -> dict[str, Any]:
    """The full event; without the values that are in a damaged commit."""
    try:
        return record(session, entry, tools, 0)
    except CorruptLogError as exc:
        return {"seq": entry.seq, "kind": entry.kind, "body": entry.body, "damage": exc.message}


def _line(ctx: CommandContext, session: Session[Any], entry: Entry, tools: dict[str, str]) -> str:
    try:
        return show_line(ctx, session, entry, tools)
    except CorruptLogError as exc:
        return f"e{entry.seq}  {entry.kind}  {ctx.style(inert_line(exc.message), fg='red')}"


def _hole_line(ctx: CommandContext, hole: Hole) -> str:
    why = f"cannot be read: {inert_line(hole.why)}"
    return f"{ctx.style(hole.place, fg='cyan')}  {ctx.style(why, fg='red')}"
