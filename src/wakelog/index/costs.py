"""What sessions cost, each amount counted once.

A fork has only its own events, so what it shares is counted for its parent. A sub-agent's session counts by its own
events. The amount that its spawner recorded at its return is a repetition; it counts only if the sub-agent has no such
amount itself, because it is in another store or reported nothing. The same holds for a fork and the amount that its
adopter recorded. A reused result costs nothing the second time. A call that was imported into two sessions is one call,
also if one of them has it in parts because its transcript was still growing. Rewound work was paid for and counts.

A question about one session includes its sub-agents and the forks it adopted, and theirs, under the turn that started
or took them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

from wakelog.errors import InvalidInputError
from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import CostRow, Costs
from wakelog.index.rows import OPEN_END
from wakelog.index.scope import number_of, scope_of
from wakelog.index.statements import IndexMoment
from wakelog.model.ids import Seq

BY = ("session", "turn", "tool", "model", "agent", "day", "repo")
LABEL = "label:"
REPO, FOLDER = "repo", "project"
"""The labels with the repository of a session, which its worktrees share, and with its folder, which counts for a
session without a repository."""

_QUARTER_US = 900_000_000

# The group of an amount: a text, and a number to order by.
_KEYS = {
    "session": ("c.id", "0"),
    "turn": ("c.top", "case when c.spawned < 0 then c.turn else c.spawned end"),
    "tool": ("case when c.tool = '' and c.sub <> '' then 'sub-agent' else c.tool end", "0"),
    "model": ("c.model", "0"),
    "agent": ("c.agent", "0"),
    "day": ("''", f"c.occurred / {_QUARTER_US}"),
    "project": ("c.project", "0"),
    "repo": (
        "coalesce("
        f"(select l.value from wl_label l where l.session = c.session and l.name = '{REPO}'), "
        f"(select l.value from wl_label l where l.session = c.session and l.name = '{FOLDER}'), '')",
        "0",
    ),
    "label": ("coalesce((select l.value from wl_label l where l.session = c.session and l.name = :label), '')", "0"),
}
_NAMED = """
select cast(value ->> 0 as bigint) as no, cast(value ->> 1 as bigint) as first, cast(value ->> 2 as bigint) as last,
    cast(value ->> 3 as bigint) as low, cast(value ->> 4 as bigint) as high, value ->> 5 as top,
    cast(value ->> 6 as bigint) as spawned
from json_each(:picks)
"""
_ALL = f"""
select s.no, 1 as first, {OPEN_END} as last, 0 as low, {OPEN_END} as high, s.id as top, -1 as spawned
from wl_session s where s.hidden = 0
"""
_PAID = """
with pick as materialized ({0}),
paid as materialized (
    select c.*, p.top, p.spawned, s.id, s.agent, s.project
    from pick p
    cross join wl_cost c on c.session = p.no and c.seq between p.first and p.last and c.turn between p.low and p.high
    join wl_session s on s.no = c.session
    where c.occurred >= :since and c.occurred < :until
)
"""
_IS_PART = "replace({0}call, '/', '') <> {0}call"
_NAME = "rtrim(rtrim({0}call, '0123456789'), '@')"
_ROOT = f"case when {_IS_PART} then rtrim(rtrim({_NAME}, '0123456789'), '/') else {_NAME} end"
"""A call without its time and the number of its part: an import of a transcript that grows has the answer `m1` as `m1`
and `m1/2`. It is one answer with that of a copy of the transcript, if they began together and used the same in all."""
_SUMS = (
    _PAID
    + f""",
parted as materialized (select distinct {_ROOT.format("")} as root from paid where {_IS_PART.format("")}),
whole as (
    select paid.session, parted.root, paid.tool, paid.model, paid.id, sum(paid.tokens) as tokens,
        sum(paid.tokens_out) as tokens_out, min(paid.occurred) as began
    from parted join paid on {_ROOT.format("paid.")} = parted.root group by 1, 2, 3, 4, 5
),
copied as materialized (
    select session, root, tool, model from (
        select whole.*, row_number() over (
            partition by root, tool, model, tokens, tokens_out, began order by id) as time
        from whole where tokens > 0) told
    where time > 1
),
once as (
    select paid.*, 1 as time from paid where call = ''
    union all
    select * from (
        select paid.*, row_number() over (
            partition by call, tool, model, tokens, tokens_out, usd_micros, duration_us order by id, seq) as time
        from paid where call <> '' and (not exists (select 1 from copied) or not exists (
            select 1 from copied where copied.session = paid.session and copied.root = {_ROOT.format("paid.")}
                and copied.tool = paid.tool and copied.model = paid.model))) repeated
    where time = 1
),
"""
    + """
c as (
    select once.*, coalesce(k.bits, 0) as known from once left join (
        select value ->> 0 as sub, cast(value ->> 1 as bigint) as bits from json_each(:known)) k on k.sub = once.sub
),
grouped as (
    select {1} as key, {2} as place,
        cast(sum(case when c.known & 1 = 0 then c.tokens - c.tokens_out else 0 end) as bigint) as heard,
        cast(sum(case when c.known & 1 = 0 then c.tokens_out else 0 end) as bigint) as said,
        cast(sum(case when c.known & 2 = 0 then c.usd_micros else 0 end) as bigint) as usd,
        cast(sum(case when c.known & 4 = 0 then c.duration_us else 0 end) as bigint) as took,
        cast(sum(case when c.known & 1 = 0 then c.unpriced else 0 end) as bigint) as unpriced
    from c group by 1, 2
)
select key, place, heard, said, usd, took, unpriced from grouped where heard <> 0 or said <> 0 or usd <> 0 or took <> 0
"""
)
_SUBS = _PAID + " select distinct sub from paid where sub <> ''"
_SUBS_OF_ALL = "select distinct c.sub from wl_cost c where c.sub <> ''"
_CHILDREN = """
select s.no, min(below.turn) from (
    select w.child as child, w.turn as turn from wl_spawn w
    where w.session = :no and w.seq between :first and :last and w.turn between :low and :high
    union all
    select c.sub, c.turn from wl_cost c
    where c.session = :no and c.seq between :first and :last and c.turn between :low and :high and c.sub <> ''
) below join wl_session s on s.id = below.child and s.hidden = 0 group by s.no order by s.no
"""
_HAS = "select max(c.tokens), max(c.usd_micros), max(c.duration_us) from wl_cost c where c.session = :no"

Pick = tuple[int, Seq, Seq, int, int, str, int]
"""Rows to count: session number, first and last seq, first and last turn; and the session and turn to count them for
(turn -1: their own)."""


def costs_of(
    reading: IndexMoment,
    sessions: str | Iterable[str] | None,
    *,
    by: str,
    turns: tuple[int, int] | None,
    since: int | None,
    until: int | None,
    utc: bool,
) -> Costs:
    """What was spent, in groups, the most expensive first; days and turns in order."""
    _check_grouping(by)
    values: dict[str, Any] = {"since": since or 0, "until": OPEN_END if until is None else until}
    if sessions is None:
        rows = _sum_up(reading.db, _ALL, _SUBS_OF_ALL, values, by, utc)
    else:
        named = [sessions] if isinstance(sessions, str) else list(sessions)
        values["picks"] = as_rows(_picks(reading.db, named, turns))
        rows = _sum_up(reading.db, _NAMED, _SUBS.format(_NAMED), values, by, utc)
    return Costs(by, rows, _total(rows), reading.as_of)


_CHOSEN = (
    _ALL.rstrip()
    + """ and (:project is null or s.project = :project)
    and (:sessions is null or s.id in (select value ->> 0 from json_each(:sessions)))
"""
)


def own_costs(
    reading: IndexMoment,
    sessions: list[str] | None,
    project: str | None,
    *,
    by: str,
    since: int | None,
    until: int | None,
    utc: bool,
) -> tuple[CostRow, ...]:
    """What some sessions spent themselves, without their sub-agents, for roll-ups. A project is the repository, or else
    the folder."""
    values: dict[str, Any] = {
        "since": since or 0,
        "until": OPEN_END if until is None else until,
        "project": project,
        "sessions": None if sessions is None else as_rows((each,) for each in sessions),
    }
    return _sum_up(reading.db, _CHOSEN, _SUBS_OF_ALL, values, by, utc)


def _sum_up(db: Connection, source: str, subs: str, values: dict[str, Any], by: str, utc: bool) -> tuple[CostRow, ...]:
    """The groups of the amounts that `source` selects; `subs` selects the sub-agents among them."""
    key, place = _KEYS["label" if by.startswith(LABEL) else by]
    found: Any = db.execute(subs, values).fetchall()
    values |= {"known": as_rows((sub, _known(db, sub)) for (sub,) in found), "label": by.removeprefix(LABEL)}
    sums: Any = db.execute(_SUMS.format(source, key, place), values).fetchall()
    return tuple(_days(sums, utc) if by == "day" else _in_order(sums, by))


def _check_grouping(by: str) -> None:
    if by not in BY and (not by.startswith(LABEL) or by == LABEL):
        raise InvalidInputError(
            f"costs cannot be grouped by {by!r}", kind="bad-grouping", hint=f"one of {', '.join(BY)}, {LABEL}NAME"
        )


def _in_order(results: list[tuple[Any, ...]], by: str) -> Iterator[CostRow]:
    """The most expensive first; turns in order."""
    if by == "turn":
        for top, turn, *amounts in sorted(results):
            yield CostRow(f"{top}@{turn}", *amounts)
    else:
        for key, _, *amounts in sorted(results, key=lambda row: (-row[4], -row[3], -row[5], row[0])):
            yield CostRow(key, *amounts)


def _days(results: list[tuple[Any, ...]], utc: bool) -> Iterator[CostRow]:
    """Days from quarters of an hour: the days of every time zone consist of whole quarters."""
    days: dict[str, list[int]] = {}
    for _, quarter, *amounts in results:
        day = day_of(of_quarter(quarter), utc)
        days[day] = [a + b for a, b in zip(days.get(day, (0, 0, 0, 0, 0)), amounts, strict=True)]
    for day in sorted(days):
        yield CostRow(day, *days[day])


def of_quarter(quarter: int) -> int:
    """The second in which a quarter of an hour begins."""
    return quarter * _QUARTER_US // 1_000_000


def day_of(seconds: int, utc: bool) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC if utc else None).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return ""  # outside of the calendar


def _picks(db: Connection, sessions: list[str], turns: tuple[int, int] | None) -> Iterator[Pick]:
    """The named sessions, and the sub-agents and adopted forks below them, each once."""
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


def _known(db: Connection, sub: str) -> int:
    """Which amounts a sub-agent reported itself, or through its own sub-agents: 1 tokens, 2 money, 4 time."""
    number = number_of(db, sub)
    todo = [] if number is None else [number]
    done = set(todo)
    known = 0
    while todo:
        no = todo.pop()
        largest: Any = db.execute(_HAS, {"no": no}).fetchone()
        known |= sum(bit for bit, amount in zip((1, 2, 4), largest, strict=True) if amount)
        below: Any = db.execute(
            _CHILDREN, {"no": no, "first": 1, "last": OPEN_END, "low": 0, "high": OPEN_END}
        ).fetchall()
        todo += [child for child, _ in below if child not in done]
        done.update(todo)
    return known


def _total(rows: tuple[CostRow, ...]) -> CostRow:
    return CostRow(
        "",
        sum(row.tokens_in for row in rows),
        sum(row.tokens_out for row in rows),
        sum(row.usd_micros for row in rows),
        sum(row.duration_us for row in rows),
        sum(row.unpriced_tokens for row in rows),
    )
