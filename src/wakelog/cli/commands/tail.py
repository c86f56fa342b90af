"""`wakelog tail`: streams events live."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import all_sessions_option, limit_option, session_argument
from wakelog.cli.render.events import Tools, brief, is_error, show_line
from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq, SessionId
from wakelog.session import Session

FIRST_LINES = 10


class _Filter(msgspec.Struct, frozen=True):
    """Which events are shown."""

    kinds: tuple[str, ...]
    errors: bool

    def matches(self, entry: Entry) -> bool:
        is_kind = not self.kinds or any(f"{entry.kind}.".startswith(f"{kind}.") for kind in self.kinds)
        return is_kind and (is_error(entry) or not self.errors)


class _Printer:
    """Prints events one by one, each at once."""

    def __init__(self, ctx: CommandContext, named: bool) -> None:
        self._ctx = ctx
        self._named = named
        self._tools: dict[SessionId, Tools] = {}

    def __call__(self, session: Session[Any], entry: Entry) -> None:
        tools = self._tools.setdefault(session.id, {})
        if len(tools) > 10_000:
            tools.clear()
        if not self._ctx.is_for_people:
            self._ctx.record("tail", brief(session, entry, tools))
            return
        name = str(session) if self._named else ""
        self._ctx.say(show_line(self._ctx, session, entry, tools, name=name))
        self._ctx.flush()


@click.command("tail")
@session_argument
@click.option("-f", "--follow", is_flag=True, help="Keep waiting for new events, until Ctrl-C.")
@all_sessions_option
@click.option("--kind", "kinds", multiple=True, metavar="K", help="Show events of this kind, or of all kinds K.*.")
@click.option("--errors", is_flag=True, help="Show only errors.")
@limit_option(FIRST_LINES, "Start with the newest N events.", name="lines")
@common
def tail_command(
    ctx: CommandContext, session: str, follow: bool, everything: bool, kinds: tuple[str, ...], errors: bool, lines: int
) -> None:
    """Stream events live: show the newest events of a session, oldest first, and with -f every new one. Without
    SESSION, the newest session.

    --json and --ndjson both write one record a line.

    Examples:
      wakelog tail fix-auth
      wakelog tail -f --all
    """
    if session and ctx.place(session).text:
        raise InvalidInputError(
            f"{session!r} is a position; tail takes a session", kind="bad-selector", hint="use wakelog log for a range"
        )
    if session and everything:
        raise click.UsageError("tail takes a session or --all, not both")
    filters = _Filter(kinds, errors)
    ctx.use_pager = ctx.use_pager and not follow
    print_event = _Printer(ctx, everything)
    if everything:
        _tail_all(ctx, filters, lines, follow, print_event)
        return
    chosen = ctx.session(session)
    head = chosen.head.seq
    for entry in _newest(chosen, head, filters, lines):
        print_event(chosen, entry)
    if follow:
        for entry in chosen.follow(after=head):
            if filters.matches(entry):
                print_event(chosen, entry)


def _newest(session: Session[Any], upto: Seq, filters: _Filter, lines: int) -> list[Entry]:
    """The newest events up to a point, oldest first."""
    found: deque[Entry] = deque()
    for entry in session.events(upto=upto, newest_first=True) if lines else ():
        if filters.matches(entry):
            found.appendleft(entry)
            if len(found) == lines:
                break
    return list(found)


def _tail_all(ctx: CommandContext, filters: _Filter, lines: int, follow: bool, print_event: _Printer) -> None:
    heads = {head.session: head for head in ctx.store.sessions()}
    marks = {session: head.seq for session, head in heads.items()}
    # Without a filter, the newest events are in the sessions that were written last.
    newest = heads.values()
    if not filters.kinds and not filters.errors:
        newest = heapq.nlargest(max(lines, 1), newest, key=lambda h: h.at)  # type: ignore[assignment]
    results: list[tuple[int, str, Seq, Session[Any], Entry]] = []
    for head in newest if lines else ():
        session = ctx.store.resume(head.session)
        own = (e for e in _newest(session, head.seq, filters, lines) if e.session == session.id)
        results += [(e.header.at, session.id, e.seq, session, e) for e in own]
        results = heapq.nlargest(lines, results, key=lambda item: item[:3])
    for *_, session, entry in sorted(results, key=lambda item: item[:3]):
        print_event(session, entry)
    for session, entry in ctx.store.follow(after=marks) if follow else ():
        if filters.matches(entry):
            print_event(session, entry)
