"""The turns of a session, through its forks.

Each attempt at a turn has one row, kept up to date as events come. There is one case where that row is not the
answer: a fork that left its parent in the middle of a turn has only the first part of it, so the same sums are made
again over that part.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index.results import TurnInfo
from wakelog.index.rows import OPEN_END, TurnRow
from wakelog.index.scope import Scope
from wakelog.model.ids import Seq

_TRUST = ("trusted", "unverified", "untrusted")
_TURNS = """
with page as materialized (
    select * from wl_turn t
    where t.session {2}
        and exists (select 1 from json_each(:spans) r
            where r.value ->> 0 = t.session and t.first <= r.value ->> 2 and t.last >= r.value ->> 1)
        and (t.turn, t.attempt) {0} (:turn, :attempt)
    order by t.turn {1}, t.attempt {1} limit :limit
)
select page.*, (select count(*) from json_each(:history) h cross join wl_turn a
    on a.session = h.value ->> 0 and a.turn = page.turn and a.first between h.value ->> 1 and h.value ->> 2)
from page order by turn {1}, attempt {1}
"""
# A session that is no fork has its turns in order, so that a page costs a page.
_HOLDERS = {True: "= :number", False: "in (select value ->> 0 from json_each(:history))"}
_UP = {alone: _TURNS.format(">", "asc", holders) for alone, holders in _HOLDERS.items()}
_DOWN = {alone: _TURNS.format("<", "desc", holders) for alone, holders in _HOLDERS.items()}
_PART = """
select count(*),
    sum(kind in ('action.requested', 'action.recorded') and effect <> 'model' and gone <> 'pruned'),
    sum((kind in ('action.failed', 'action.timed_out') or (kind = 'action.recorded' and outcome <> 'succeeded'))
        and effect <> 'model' and gone <> 'pruned'),
    sum(kind in ('action.requested', 'action.recorded') and effect = 'model' and gone <> 'pruned'),
    (select count(distinct path) from wl_file where session = :holder and seq between :first and :last),
    (select coalesce(sum(added), 0) from wl_file where session = :holder and seq between :first and :last),
    (select coalesce(sum(removed), 0) from wl_file where session = :holder and seq between :first and :last),
    sum(tokens), sum(tokens_out), sum(usd_micros), max(trust)
from wl_event where session = :holder and seq between :first and :last
"""
_FIRST_INPUT = """
select summary from wl_event where session = :holder and seq between :first and :last and summary <> ''
    and (kind = 'turn.started' or (kind = 'message.added'
        and (select role from wl_message m where m.session = wl_event.session and m.seq = wl_event.seq) = 'user'))
order by seq limit 1
"""


def turns_of(
    db: apsw.Connection, scope: Scope, after: str, limit: int, newest_first: bool
) -> tuple[list[TurnInfo], str]:
    """A page of turns, and where the next one goes on."""
    turn, attempt = _place(after) if after else (1 << 62, 1 << 62) if newest_first else (-1, 0)
    values = {
        "spans": scope.json,
        "history": msgspec.json.encode(scope.history).decode(),
        "number": scope.number,
        "turn": turn,
        "attempt": attempt,
        "limit": limit + 1,
    }
    statements = _DOWN if newest_first else _UP
    found: Any = db.execute(statements[len(scope.history) == 1], values).fetchall()
    rows = [_turn(db, scope, row) for row in found[:limit]]
    return rows, f"{rows[-1].turn}.{rows[-1].attempt}" if len(found) > limit else ""


def _turn(db: apsw.Connection, scope: Scope, stored: tuple[Any, ...]) -> TurnInfo:
    *columns, attempts = stored
    row = TurnRow(*columns)
    end = next(last for holder, _, last in scope.history if holder == row.session)
    if row.last > end:
        _cut(db, row, end)
    if row.outcome == "open" and end != OPEN_END:
        row.outcome = "interrupted"  # by the fork, which does not go on with it
    fields = dict(zip(TurnRow.__struct_fields__, msgspec.structs.astuple(row), strict=True))
    in_view = any(first <= row.last and row.first <= last for first, last in scope.visible)
    return TurnInfo(
        **fields | {"session": scope.session, "trust": _TRUST[row.trust]},
        in_view=in_view,
        attempts=attempts,
    )


def _cut(db: apsw.Connection, row: TurnRow, end: Seq) -> None:
    """What a turn comes to up to `end`, where a fork left it."""
    row.last, row.ended_at, row.outcome = end, None, "open"
    part = {"holder": row.session, "first": row.first, "last": end}
    sums: Any = db.execute(_PART, part).fetchone()
    names = ("events", "tool_calls", "tool_errors", "model_calls", "files", "added", "removed")
    for name, value in zip((*names, "tokens", "tokens_out", "usd_micros", "trust"), sums, strict=True):
        setattr(row, name, value)
    said: Any = db.execute(_FIRST_INPUT, part).get
    row.input = said or ""


def _place(after: str) -> tuple[int, int]:
    turn, _, attempt = after.partition(".")
    if not (turn.isdecimal() and attempt.isdecimal()):
        raise InvalidInputError(
            f"{after!r} is not a place to go on from", kind="bad-cursor", hint="pass the `next` of the page before"
        )
    return int(turn), int(attempt)
