"""`wakelog ps`: sessions that are live, waiting or in trouble."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.places import list_sessions
from wakelog.cli.render.sessions import (
    NEEDS,
    URGENT,
    Standing,
    handle,
    label,
    pending_text,
    plain_session,
    standing,
    status_sign,
)
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.render.values import text_of
from wakelog.cli.text import age, glyph, inert
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index.results import SessionInfo
from wakelog.session import Session

RECENT_S, MOST = 3600, 200
EVERY_S = 2.0
_COLUMNS = (
    Column("needs"),
    Column("session", least=14),
    Column("last event", right=True),
    Column("turn", right=True, drop=3),
    Column("status", drop=2),
    Column("writer", least=8, drop=4),
    Column("what", least=20),
)
_COLORS = {
    "waiting": "yellow",
    "uncertain": "red",
    "stuck": "red",
    "over-budget": "red",
    "paused": "yellow",
    "running": "green",
}


class _Live(msgspec.Struct, frozen=True):
    session: Session[Any]
    stand: Standing


@click.command("ps")
@click.option("--waiting", "waiting", is_flag=True, help="List only sessions that wait for a person.")
@click.option(
    "--stuck", "stuck", is_flag=True, help="List only sessions without news, or with a call of unknown outcome."
)
@click.option("--over-budget", "over_budget", is_flag=True, help="List only sessions that reached their budget.")
@click.option("-A", "--all", "everything", is_flag=True, help="List idle sessions of any age too.")
@click.option("--watch", "watch", is_flag=True, help="Refresh every two seconds, until Ctrl-C.")
@common
def ps_command(
    ctx: CommandContext, waiting: bool, stuck: bool, over_budget: bool, everything: bool, watch: bool
) -> None:
    """List live sessions, those that need you first: who writes, what is pending, and when something last happened.

    Idle sessions without a flag leave the list after an hour, and at most 200 idle ones are shown. When many sessions
    are not indexed yet, only the last written ones are checked. -A shows all.

    \b
    Examples:
      wakelog ps
      wakelog ps --stuck
      wakelog ps --over-budget --json
    """
    wanted = {*(["waiting"] if waiting else []), *(["stuck", "uncertain"] if stuck else [])}
    wanted |= {"over-budget"} if over_budget else set()
    # Programs, and who asks for something in particular, get all; a person who only looks need not wait for it.
    is_first_look = not (wanted or everything or not ctx.is_for_people) and ctx.store.is_index_behind
    live = _tell(ctx, wanted, everything, MOST if is_first_look else 0)
    while watch:
        ctx.flush()
        time.sleep(EVERY_S)
        if ctx.is_for_people:
            click.clear()
        _tell(ctx, wanted, everything, MOST if is_first_look else 0)
    if live:
        name = handle(live[0].session)
        ctx.suggest(f"wakelog status {name}", f"wakelog tail -f {name}")


def _tell(ctx: CommandContext, wanted: set[str], everything: bool, most: int) -> list[_Live]:
    live, resting = _look(ctx, wanted, everything, most)

    def human() -> None:
        _show(ctx, live)
        if most:
            note = f"  of the {most} sessions last written; many are not indexed yet, -A looks at all"
            ctx.say(ctx.style(note, dim=True))
        elif resting:
            ctx.say(ctx.style(f"  {resting} more that are idle; -A shows all", dim=True))

    ctx.answer("ps", [plain_session(each.session, each.stand) for each in live], human)
    return live


def _look(ctx: CommandContext, wanted: set[str], everything: bool, most: int) -> tuple[list[_Live], int]:
    """The sessions to show, and how many more there are that only rest."""
    found = []
    idle = hidden = 0
    # Who asks for something in particular, or only looks, is not shown thousands that rest; programs are.
    rest_most = 0 if wanted else MOST if not (everything or not ctx.is_for_people) else None
    oldest = ctx.store.clock() - RECENT_S * 1_000_000
    for info in _not_closed(ctx, most):
        # What was spent is in no index: who asks for that has every session looked at.
        is_old = info.last_at < oldest and not everything and "over-budget" not in wanted
        is_enough = rest_most is not None and idle >= rest_most and "over-budget" not in wanted
        if (is_old or is_enough) and _is_at_rest(ctx, info):
            hidden += not is_old and not wanted
            continue
        try:
            session = ctx.store.resume(info.id)
            stand = standing(session)
        except NotFoundError:
            continue  # deleted while we looked
        except CorruptLogError as exc:
            ctx.warn(f"{label(info)} cannot be read: {inert(exc.message)}")
            continue
        if wanted and not wanted.intersection(stand.needs):
            continue
        is_quiet = stand.need == "idle" and stand.at < oldest and not stand.document["flags"]
        if stand.need == "ended" or (is_quiet and not everything):
            continue
        idle += stand.need == "idle"
        found.append(_Live(session, stand))
    return sorted(found, key=lambda each: (NEEDS.index(each.stand.need), -each.stand.at)), hidden


def _not_closed(ctx: CommandContext, most: int) -> Iterator[SessionInfo]:
    if most:
        with ctx.store.newest_index(most) as index:
            yield from index.sessions(live=True, limit=most)
        return
    yield from list_sessions(ctx.store.index, live=True)


def _is_at_rest(ctx: CommandContext, info: SessionInfo) -> bool:
    """Whether a session is idle as far as the index and the last sign of life can tell: its state need not be read."""
    if info.status == "paused" or info.pending or info.flags or (info.turn and not info.outcome):
        return False
    beat = ctx.store.engine.last_beat(info.id)
    return beat is None or beat.until < ctx.store.clock()


def _show(ctx: CommandContext, live: list[_Live]) -> None:
    if not live:
        ctx.say("nothing is live")
        return
    say_table(ctx, _COLUMNS, [_row(ctx, each) for each in live])


def _row(ctx: CommandContext, each: _Live) -> Row:
    stand, turn = each.stand, each.stand.document["turn"]
    sign, color = status_sign(stand.status)
    urgent = [need for need in stand.needs if need in URGENT]
    place = f"@{turn['number']}" + (" open" if turn["status"] == "open" else "") if turn["number"] else ""
    return (
        Cell(
            ", ".join(urgent) or stand.need,
            {"fg": _COLORS[stand.need], "bold": True} if stand.need in _COLORS else {"dim": True},
        ),
        Cell(each.session.name or each.session.id, {"bold": True}),
        age(stand.at, ctx.store.clock()),
        place,
        Cell(f"{sign} {stand.status}", {"fg": color}),
        stand.holder,
        _what(stand),
    )


def _what(stand: Standing) -> str:
    """The thing to know about a session, in a line: what it waits for, else what was flagged, else its goal."""
    order = ("waiting", "uncertain", "running", "requested")
    pending = sorted(stand.pending.items(), key=lambda item: order.index(item[1].get("status", "requested")))
    words = [pending_text(action, each) for action, each in pending[:3]]
    words += [f"{glyph('warn')} {name}" for name in list(stand.document["flags"])[:3]]
    if not words and stand.document["goal"] is not None:
        words = [text_of(stand.document["goal"])]
    return f" {glyph('dot')} ".join(words)
