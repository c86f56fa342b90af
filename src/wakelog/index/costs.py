"""What sessions cost, each amount counted once.

A fork holds its own events only, so what it shares is counted for its parent. A sub-agent's session counts by its own
events; what its spawner noted when it returned repeats that, and counts only where the sub-agent has no such amount
itself, because it is in another store or reported nothing. A result that was used again cost nothing the second time.
A call that was imported into two sessions is one call. Rewound work was paid for and counts.

A question about one session is about its sub-agents too, and theirs, under the turn that started them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apsw
import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index.results import CostRow, Costs
from wakelog.index.rows import OPEN_END
from wakelog.index.scope import scope_of
from wakelog.index.statements import Reading
from wakelog.model.ids import Seq

BY = ("session", "turn", "tool", "model", "agent", "day")
LABEL = "label:"

_KEYS = {
    "session": "c.id",
    "turn": "printf('%s@%d', c.top, iif(c.spawned < 0, c.turn, c.spawned))",
    "tool": "iif(c.tool = '' and c.sub <> '', 'sub-agent', c.tool)",
    "model": "c.model",
    "agent": "c.agent",
    "day": "strftime('%Y-%m-%d', c.occurred / 1000000, 'unixepoch'{0})",
    "label": "coalesce((select value from json_each(c.labels) where key = :label), '')",
}
_PICKED = """
with pick as materialized (
    select value ->> 0 as no, value ->> 1 as first, value ->> 2 as last, value ->> 3 as low, value ->> 4 as high,
        value ->> 5 as top, value ->> 6 as spawned
    from json_each(:picks)
),
paid as materialized (
    select c.*, p.top, p.spawned, s.id, s.agent, s.labels
    from pick p
    cross join wl_cost c on c.session = p.no and c.seq between p.first and p.last and c.turn between p.low and p.high
    join wl_session s on s.no = c.session
    where c.occurred >= :since and c.occurred < :until
),
"""
_SUMS = (
    _PICKED
    + """
once as (
    select *, 1 as time from paid where call = ''
    union all
    select * from (
        select *, row_number() over (
            partition by call, tool, model, tokens, tokens_out, usd_micros, duration_us order by id, seq) as time
        from paid where call <> '')
    where time = 1
),
c as (select once.*, coalesce(k.value, 0) as known from once left join json_each(:known) k on k.key = once.sub)
select {0} as key, sum(iif(c.known & 1, 0, c.tokens - c.tokens_out)), sum(iif(c.known & 1, 0, c.tokens_out)) as said,
    sum(iif(c.known & 2, 0, c.usd_micros)) as usd, sum(iif(c.known & 4, 0, c.duration_us)) as took,
    min(c.occurred) as first
from c group by 1 having usd or took or said or sum(iif(c.known & 1, 0, c.tokens)) order by {1}
"""
)
_SUBS = _PICKED.rstrip().removesuffix(",") + " select distinct sub from paid where sub <> ''"
_SUBS_OF_ALL = "select distinct sub from wl_cost where sub <> ''"
_ALL = "select json_group_array(json_array(no, 1, :end, 0, :end, id, -1)) from wl_session where not hidden"
_CHILDREN = """
select s.no, min(w.turn) from wl_spawn w join wl_session s on s.id = w.child and not s.hidden
where w.session = :no and w.seq between :first and :last and w.turn between :low and :high group by s.no order by s.no
"""
_HAS = """
with recursive below(no) as (
    select no from wl_session where id = ? and not hidden
    union
    select s.no from below b join wl_spawn w on w.session = b.no join wl_session s on s.id = w.child and not s.hidden
)
select max(tokens > 0) + 2 * max(usd_micros > 0) + 4 * max(duration_us > 0)
from below cross join wl_cost c on c.session = below.no
"""

Pick = tuple[int, Seq, Seq, int, int, str, int]
"""Rows to count: whose, from where to where, in which turns; for which session, and in which of its turns (-1: in those
they are in)."""


def costs_of(
    reading: Reading,
    sessions: str | Iterable[str] | None,
    *,
    by: str,
    turns: tuple[int, int] | None,
    since: int | None,
    until: int | None,
    utc: bool,
) -> Costs:
    """What was spent, in groups, the dearest first; days and turns in their order."""
    db = reading.db
    if sessions is None:
        picks: Any = db.execute(_ALL, {"end": OPEN_END}).get
    else:
        named = [sessions] if isinstance(sessions, str) else list(sessions)
        picks = msgspec.json.encode(list(_picks(db, named, turns))).decode()
    values = {"picks": picks, "since": since or 0, "until": OPEN_END if until is None else until}
    subs: Any = db.execute(_SUBS_OF_ALL if sessions is None else _SUBS, values).fetchall()
    known = {sub: _known(db, sub) for (sub,) in subs}
    key, order = _grouping(by, utc)
    values |= {"known": msgspec.json.encode(known).decode(), "label": by.removeprefix(LABEL)}
    found: Any = db.execute(_SUMS.format(key, order), values).fetchall()
    rows = tuple(CostRow(*row[:5]) for row in found)
    return Costs(by, rows, _total(rows), reading.as_of)


def _grouping(by: str, utc: bool) -> tuple[str, str]:
    kind = "label" if by.startswith(LABEL) and by != LABEL else by
    if kind not in _KEYS or (kind == "label" and by == kind):
        raise InvalidInputError(
            f"costs cannot be told by {by!r}", kind="bad-grouping", hint=f"one of {', '.join(BY)}, {LABEL}NAME"
        )
    order = {"day": "key", "turn": "c.top, iif(c.spawned < 0, c.turn, c.spawned)"}
    return _KEYS[kind].format("" if utc else ", 'localtime'"), order.get(kind, "usd desc, said desc, took desc, key")


def _picks(db: apsw.Connection, sessions: list[str], turns: tuple[int, int] | None) -> Iterator[Pick]:
    """The sessions that were asked for, and the sub-agents below them, each once."""
    low, high = turns if turns is not None else (0, OPEN_END)
    todo: list[Pick] = []
    for session in sessions:
        scope = scope_of(db, session, rewound=True, lineage=turns is not None)
        todo += [(no, first, last, low, high, session, -1) for no, first, last in scope.history]
    done = {pick[0] for pick in todo}
    yield from todo
    while todo:
        no, first, last, low, high, top, spawned = todo.pop()
        place = {"no": no, "first": first, "last": last, "low": low, "high": high}
        children: Any = db.execute(_CHILDREN, place).fetchall()
        for child, turn in children:
            if child not in done:
                done.add(child)
                pick = (child, 1, OPEN_END, 0, OPEN_END, top, turn if spawned < 0 else spawned)
                todo.append(pick)
                yield pick


def _known(db: apsw.Connection, sub: str) -> int:
    """Which amounts a sub-agent tells itself, or through its own sub-agents: 1 tokens, 2 money, 4 time."""
    known: Any = db.execute(_HAS, (sub,)).get
    return int(known or 0)


def _total(rows: tuple[CostRow, ...]) -> CostRow:
    return CostRow(
        "",
        sum(row.tokens_in for row in rows),
        sum(row.tokens_out for row in rows),
        sum(row.usd_micros for row in rows),
        sum(row.duration_us for row in rows),
    )
