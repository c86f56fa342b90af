"""`wakelog tail`: events as they come."""

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

LINES = 10


class _Wanted(msgspec.Struct, frozen=True):
    """Which events are told."""

    kinds: tuple[str, ...]
    errors: bool

    def takes(self, entry: Entry) -> bool:
        is_kind = not self.kinds or any(f"{entry.kind}.".startswith(f"{kind}.") for kind in self.kinds)
        return is_kind and (is_error(entry) or not self.errors)


class _Teller:
    """Tells events one by one, each at once."""

    def __init__(self, ctx: CommandContext, named: bool) -> None:
        self._ctx = ctx
        self._named = named
        self._tools: dict[SessionId, Tools] = {}

    def tell(self, session: Session[Any], entry: Entry) -> None:
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
@limit_option(LINES, "Start with the newest N events.", name="lines")
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
    wanted = _Wanted(kinds, errors)
    ctx.use_pager = ctx.use_pager and not follow
    teller = _Teller(ctx, everything)
    if everything:
        _tail_all(ctx, wanted, lines, follow, teller)
        return
    chosen = ctx.session(session)
    head = chosen.head.seq
    for entry in _last(chosen, head, wanted, lines):
        teller.tell(chosen, entry)
    if follow:
        for entry in chosen.follow(after=head):
            if wanted.takes(entry):
                teller.tell(chosen, entry)


def _last(session: Session[Any], upto: Seq, wanted: _Wanted, lines: int) -> list[Entry]:
    """The newest events up to a point, oldest first."""
    found: deque[Entry] = deque()
    for entry in session.events(upto=upto, newest_first=True) if lines else ():
        if wanted.takes(entry):
            found.appendleft(entry)
            if len(found) == lines:
                break
    return list(found)


def _tail_all(ctx: CommandContext, wanted: _Wanted, lines: int, follow: bool, teller: _Teller) -> None:
    heads = {head.session: head for head in ctx.store.sessions()}
    marks = {session: head.seq for session, head in heads.items()}
    # Only the sessions that moved last can hold the newest events, unless some of those are not wanted.
    newest = heads.values()
    if not wanted.kinds and not wanted.errors:
        newest = heapq.nlargest(max(lines, 1), newest, key=lambda h: h.at)  # type: ignore[assignment]
    found: list[tuple[int, str, Seq, Session[Any], Entry]] = []
    for head in newest if lines else ():
        session = ctx.store.resume(head.session)
        own = (e for e in _last(session, head.seq, wanted, lines) if e.session == session.id)
        found += [(e.header.at, session.id, e.seq, session, e) for e in own]
        found = heapq.nlargest(lines, found, key=lambda item: item[:3])
    for *_, session, entry in sorted(found, key=lambda item: item[:3]):
        teller.tell(session, entry)
    for session, entry in ctx.store.follow(after=marks) if follow else ():
        if wanted.takes(entry):
            teller.tell(session, entry)
