"""The turns of a session, including those it shares with its ancestors.

Each attempt at a turn has one row, updated with every event. A fork that was made in the middle of a turn has only the
first part of it: then the sums are computed again for that part.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import TurnInfo
from wakelog.index.rows import OPEN_END, TurnRow
from wakelog.index.scope import Scope
from wakelog.index.statements import bad_place
from wakelog.model.ids import Seq
from wakelog.model.trust import TRUSTS

_TURNS = """
with page as materialized (
    select * from wl_turn t
    where t.session {2}
        and exists (select 1 from json_each(:spans) r
            where cast(r.value ->> 0 as bigint) = t.session
                and t.first <= cast(r.value ->> 2 as bigint) and t.last >= cast(r.value ->> 1 as bigint))
        and (t.turn, t.attempt) {0} (:turn, :attempt)
    order by t.turn {1}, t.attempt {1} limit :limit
)
select page.*, (select count(*) from json_each(:history) h cross join wl_turn a
    on a.session = cast(h.value ->> 0 as bigint) and a.turn = page.turn
        and a.first between cast(h.value ->> 1 as bigint) and cast(h.value ->> 2 as bigint))
from page order by turn {1}, attempt {1}
"""
# In a session that is no fork, the turns are in key order, so that reading a page costs no more than a page.
_HOLDERS = {True: "= :number", False: "in (select cast(value ->> 0 as bigint) from json_each(:history))"}
_UP = {alone: _TURNS.format(">", "asc", holders) for alone, holders in _HOLDERS.items()}
_DOWN = {alone: _TURNS.format("<", "desc", holders) for alone, holders in _HOLDERS.items()}
_PART = """
select count(*),
    count(case when kind in ('action.requested', 'action.recorded') and effect <> 'model' and gone <> 'pruned'
        then 1 end),
    count(case when (kind in ('action.failed', 'action.timed_out')
        or (kind = 'action.recorded' and outcome in ('failed', 'timed_out'))) and effect <> 'model' and gone <> 'pruned'
        then 1 end),
    count(case when kind in ('action.requested', 'action.recorded') and effect = 'model' and gone <> 'pruned'
        then 1 end),
    cast(sum(tokens) as bigint), cast(sum(tokens_out) as bigint), cast(sum(usd_micros) as bigint), max(trust)
from wl_event e where e.session = :holder and e.seq between :first and :last
"""
_PART_FILES = """
select count(distinct f.path), cast(coalesce(sum(f.added), 0) as bigint), cast(coalesce(sum(f.removed), 0) as bigint)
from wl_file f where f.session = :holder and f.seq between :first and :last
"""
_FIRST_INPUT = """
select e.summary from wl_event e where e.session = :holder and e.seq between :first and :last and e.summary <> ''
    and (e.kind = 'turn.started' or (e.kind = 'message.added'
        and (select m.role from wl_message m where m.session = e.session and m.seq = e.seq) = 'user'))
order by e.seq limit 1
"""


def turns_of(db: Connection, scope: Scope, after: str, limit: int, newest_first: bool) -> tuple[list[TurnInfo], str]:
    """A page of turns, and the position of the next page."""
    turn, attempt = _place(after) if after else (1 << 62, 1 << 62) if newest_first else (-1, 0)
    values = {
        "spans": as_rows(scope.spans),
        "history": as_rows(scope.history),
        "number": scope.number,
        "turn": turn,
        "attempt": attempt,
        "limit": limit + 1,
    }
    statements = _DOWN if newest_first else _UP
    found: Any = db.execute(statements[len(scope.history) == 1], values).fetchall()
    rows = [_turn(db, scope, row) for row in found[:limit]]
    return rows, f"{rows[-1].turn}.{rows[-1].attempt}" if len(found) > limit else ""


def _turn(db: Connection, scope: Scope, stored: tuple[Any, ...]) -> TurnInfo:
    *columns, attempts = stored
    row = TurnRow(*columns)
    end = next(last for holder, _, last in scope.history if holder == row.session)
    if row.last > end:
        _cut(db, row, end)
    if row.outcome == "open" and end != OPEN_END:
        row.outcome = "interrupted"  # by the fork
    fields = dict(zip(TurnRow.__struct_fields__, msgspec.structs.astuple(row), strict=True))
    in_view = any(first <= row.last and row.first <= last for first, last in scope.visible)
    return TurnInfo(
        **fields | {"session": scope.session, "trust": TRUSTS[row.trust]},
        in_view=in_view,
        attempts=attempts,
    )


def _cut(db: Connection, row: TurnRow, end: Seq) -> None:
    """Cuts a turn at `end`, where the fork was made."""
    row.last, row.ended_at, row.outcome = end, None, "open"
    part = {"holder": row.session, "first": row.first, "last": end}
    sums: Any = db.execute(_PART, part).fetchone()
    changed: Any = db.execute(_PART_FILES, part).fetchone()
    names = ("events", "tool_calls", "tool_errors", "model_calls", "tokens", "tokens_out", "usd_micros", "trust")
    for name, value in zip((*names, "files", "added", "removed"), (*sums, *changed), strict=True):
        setattr(row, name, value)
    said: Any = db.execute(_FIRST_INPUT, part).get
    row.input = said or ""


def _place(after: str) -> tuple[int, int]:
    turn, _, attempt = after.partition(".")
    if not (turn.isdecimal() and attempt.isdecimal()):
        raise bad_place(after)
    return int(turn), int(attempt)
