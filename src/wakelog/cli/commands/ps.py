"""`wakelog ps`: lists sessions that are live, waiting or in trouble."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.render.sessions import handle, label, pending_text, plain_session, status_sign
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.render.values import text_of
from wakelog.cli.text import age, glyph, inert, join_facts
from wakelog.maintenance.live_sessions import IDLE_MAX, LiveSession, find_live
from wakelog.session.status import URGENT, SessionCondition

REFRESH_S = 2.0
_COLUMNS = "needs | session 14 | > last event | > turn -3 | status -2 | writer 8 -4 | what 20"
_COLORS = {
    "waiting": "yellow",
    "uncertain": "red",
    "stuck": "red",
    "over-budget": "red",
    "paused": "yellow",
    "running": "green",
}
_NOTHING = {"waiting": "waits for a person", "stuck": "is stuck", "over-budget": "is over its budget"}


@click.command("ps")
@click.option("--waiting", is_flag=True, help="List only sessions that wait for a person.")
@click.option("--stuck", is_flag=True, help="List only sessions without news, or with a call of unknown outcome.")
@click.option("--over-budget", is_flag=True, help="List only sessions that reached their budget.")
@click.option("--failed", is_flag=True, help="List only sessions whose last turn failed or was cut off.")
@click.option("-A", "--all", "everything", is_flag=True, help="List idle sessions of any age too.")
@click.option("--watch", is_flag=True, help="Refresh every two seconds, until Ctrl-C; as JSON, whenever it changes.")
@common
def ps_command(
    ctx: CommandContext, waiting: bool, stuck: bool, over_budget: bool, failed: bool, everything: bool, watch: bool
) -> None:
    """List live sessions, those that need you first: who writes, what is pending, and when something last happened.

    Idle sessions without a flag leave the list after an hour, and at most 200 idle ones are shown. When many sessions
    are not indexed yet, only the last written ones are checked. -A shows all.

    Examples:
      wakelog ps
      wakelog ps --stuck
      wakelog ps --over-budget --json
      wakelog ps --failed
    """
    wanted = {*(["waiting"] if waiting else []), *(["stuck", "uncertain"] if stuck else [])}
    wanted |= {"over-budget"} if over_budget else set()
    # Programs and specific questions get everything; a person who only looks should not wait for the index.
    is_first_look = not (wanted or failed or everything or not ctx.is_for_people) and ctx.store.is_index_behind
    most = IDLE_MAX if is_first_look else 0
    live = last = _answer_live(ctx, wanted, everything, most, failed, None)
    while watch:
        ctx.flush()
        time.sleep(REFRESH_S)
        if ctx.is_for_people:
            click.clear()
        last = _answer_live(ctx, wanted, everything, most, failed, last)
    if live:
        name = handle(live[0].session)
        ctx.suggest(f"wakelog status {name}", f"wakelog tail -f {name}")


def _answer_live(
    ctx: CommandContext,
    wanted: set[str],
    everything: bool,
    most: int,
    failed: bool,
    last: tuple[LiveSession, ...] | None,
) -> tuple[LiveSession, ...]:
    """Answers with the live sessions. A program that watches gets no second answer equal to the `last` one."""
    idle = None if everything or not ctx.is_for_people else IDLE_MAX
    fleet = find_live(ctx.store, wanted, everything=everything, idle=idle, newest=most, failed=failed)
    if last is not None and not ctx.is_for_people and _versions(fleet.found) == _versions(last):
        return last
    for info, problem in fleet.unreadable:
        ctx.warn(f"{label(info)} cannot be read: {inert(problem)}")

    def human() -> None:
        _show(ctx, fleet.found, failed, wanted)
        if most:
            ctx.remark(f"  of the {most} sessions written last; many are not indexed yet: -A looks at all")
        elif fleet.resting:
            ctx.remark(f"  {fleet.resting} more that are idle; -A shows all")

    ctx.answer("ps", [plain_session(live.session, live.condition) for live in fleet.found], human)
    return fleet.found


def _versions(sessions: Sequence[LiveSession]) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(live.session.id, live.condition.seq, live.condition.needs) for live in sessions]


def _show(ctx: CommandContext, sessions: Sequence[LiveSession], failed: bool, wanted: set[str]) -> None:
    words = [*(["failed"] if failed else []), *(_NOTHING[need] for need in _NOTHING if need in wanted)]
    none = f"nothing {' or '.join(words) or 'is live'}"
    say_table(ctx, _COLUMNS, [_row(ctx, live, failed) for live in sessions], none=none)


def _row(ctx: CommandContext, live: LiveSession, failed: bool) -> Row:
    condition, turn = live.condition, live.condition.document["turn"]
    sign, color = status_sign(condition.status)
    urgent = [need for need in condition.needs if need in URGENT]
    place = f"@{turn['number']}" + (" open" if turn["status"] == "open" else "") if turn["number"] else ""
    return (
        Cell(
            ", ".join(urgent) or condition.need,
            {"fg": _COLORS[condition.need], "bold": True} if condition.need in _COLORS else {"dim": True},
        ),
        Cell(str(live.session), {"bold": True}),
        age(condition.at, ctx.store.clock()),
        place,
        Cell(f"{sign} {condition.status}", {"fg": color}),
        condition.holder,
        live.info.last_error or live.info.outcome if failed else _headline(condition),
    )


def _headline(condition: SessionCondition) -> str:
    """The most important thing about a session: its pending calls and flags, else its goal."""
    order = ("waiting", "uncertain", "running", "requested")
    pending = sorted(condition.pending.items(), key=lambda item: order.index(item[1].get("status", "requested")))
    words = [pending_text(action, call) for action, call in pending[:3]]
    words += [f"{glyph('warn')} {name}" for name in list(condition.document["flags"])[:3]]
    if not words and condition.document["goal"] is not None:
        words = [text_of(condition.document["goal"])]
    return join_facts(words)
