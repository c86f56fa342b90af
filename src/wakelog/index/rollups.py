"""Roll-ups: totals of calls, turns, tokens and money by turn, phase, session, project, day, and for the whole store.

Only calls that ended count; the projector sums them (wl_sum). A fork counts its own calls only. Tokens and money are
counted as `cost` does, each amount once. A turn belongs to the day it began on; events between turns to the day their
session began. Pruned work still counts, and so does rewound work, because it happened.

Deleted sessions whose numbers were kept are shown as one row, and only if there are at least `DELETED_LEAST`, so that
no number is that of a single session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index.connection import Connection, as_rows
from wakelog.index.costs import day_of, of_quarter, own_costs
from wakelog.index.results import AsOf
from wakelog.index.rows import OPEN_END
from wakelog.index.statements import IndexMoment
from wakelog.model.html import text
from wakelog.model.totals import MODEL, PHASES, SessionTotals

LEVELS = ("turn", "phase", "session", "project", "day")
DELETED_LEAST = 5
DELETED = "(deleted)"
KEPT_FIELDS = (
    *("at", "turns", "events", "added", "removed", "tokens_in", "tokens_out"),
    *("usd_micros", "unpriced_tokens", "duration_us"),
)
"""The numbers in the tombstone of a session, if they were kept."""
MEASURES = ("calls", "errors", "duration_us", "turns", "events", "tokens_in", "tokens_out", "usd_micros", "added")

_QUARTER = 900_000_000
_KEYS = {
    "turn": ("s.id", "{turn}"),
    "phase": ("''", "0"),
    "phase of turn": ("s.id", "{turn}"),
    "session": ("s.id", "0"),
    "project": ("s.project", "0"),
    "day": ("''", f"{{at}} / {_QUARTER}"),
}
_CHOSEN = """
s.hidden = 0 and (:project is null or s.project = :project)
    and (:sessions is null or s.id in (select value ->> 0 from json_each(:sessions)))
"""
_CALLS = f"""
select {{key}}, {{place}}, m.phase, m.bucket, cast(sum(m.phases) as bigint), cast(sum(m.calls) as bigint),
    cast(sum(m.errors) as bigint), cast(sum(m.duration_us) as bigint)
from wl_session s cross join wl_sum m on m.session = s.no
left join wl_turn t on t.session = m.session and t.turn = m.turn and t.attempt = m.attempt
where {_CHOSEN} and coalesce(t.started_at, s.first_at) >= :since and coalesce(t.started_at, s.first_at) < :until
group by 1, 2, 3, 4
"""
_TURNS = f"""
select {{key}}, {{place}}, s.no, count(distinct t.turn), cast(sum(t.events) as bigint),
    cast(sum(t.added) as bigint), cast(sum(t.removed) as bigint)
from wl_session s cross join wl_turn t on t.session = s.no
where {_CHOSEN} and t.started_at >= :since and t.started_at < :until group by 1, 2, s.no
"""
_BETWEEN = f"""
select {{key}}, {{place}}, s.no, 0, s.events - coalesce((select cast(sum(x.events) as bigint) from wl_turn x
    where x.session = s.no), 0), 0, 0
from wl_session s where {_CHOSEN} and s.first_at >= :since and s.first_at < :until
"""
_KEPT = "select k.totals, k.calls from wl_kept k order by k.id"


class RollupRow(msgspec.Struct):
    """The totals of one group. Zero means none, or not reported."""

    key: str
    sessions: int = 0
    turns: int = 0
    phases: int = 0
    events: int = 0
    calls: int = 0
    errors: int = 0
    model_calls: int = 0
    added: int = 0
    removed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd_micros: int = 0
    unpriced_tokens: int = 0
    duration_us: int = 0
    took: list[int] = []
    """Tool calls by duration: `took[n]` counts those from 2^(n-1) up to 2^n microseconds, `took[0]` the unknown."""


class Rollup(msgspec.Struct, frozen=True):
    """Totals by group, and all together."""

    by: str
    rows: tuple[RollupRow, ...]
    total: RollupRow
    as_of: AsOf
    deleted: int = 0
    """How many deleted sessions are in it, in one row; 0 if there are fewer than five."""

    def svg(self, measure: str = "calls") -> str:
        """A chart with one bar for each group, of `calls` or another number; `took` draws the durations of calls."""
        if measure == "took":
            return columns(f"calls by duration, {self.total.calls:,} in all", _took_columns(self.total.took))
        if measure not in MEASURES:
            raise InvalidInputError(
                f"a roll-up cannot be drawn by {measure!r}",
                kind="bad-measure",
                hint=f"one of {', '.join(MEASURES)}, took",
            )
        return bars(f"{measure} by {self.by}", [(row.key or "(none)", getattr(row, measure)) for row in self.rows])

    def _repr_html_(self) -> str:
        return f'<div class="wakelog">{self.svg()}{self.svg("took")}</div>'


def roll_up(
    reading: IndexMoment,
    *,
    by: str,
    sessions: Iterable[str] | None,
    project: str | None,
    since: int | None,
    until: int | None,
    utc: bool,
) -> Rollup:
    """Sums up by turn, phase, session, project or day: turns and days in order, others by calls. Phases of named
    sessions are listed turn by turn, all others by kind."""
    if by not in _KEYS:
        raise InvalidInputError(
            f"work cannot be rolled up by {by!r}", kind="bad-grouping", hint=f"one of {', '.join(LEVELS)}"
        )
    named = None if sessions is None else list(sessions)
    values: dict[str, Any] = {
        "project": project,
        "sessions": None if named is None else as_rows((each,) for each in named),
        "since": since or 0,
        "until": OPEN_END if until is None else until,
    }
    groups = _Groups("phase of turn" if by == "phase" and named is not None else by, utc)
    groups.add_calls(reading.db, values)
    if by != "phase":
        groups.add_turns(reading.db, values)
        costs = own_costs(reading, named, project, by=by, since=since, until=until, utc=utc)
        for cost in costs:
            row = groups.row(cost.key)
            row.tokens_in, row.tokens_out = cost.tokens_in, cost.tokens_out
            row.usd_micros, row.duration_us, row.unpriced_tokens = (
                cost.usd_micros,
                cost.duration_us,
                cost.unpriced_tokens,
            )
    total = groups.total()
    rows = groups.in_order()
    deleted = 0
    if named is None and project is None and since is None and until is None and by != "phase":
        kept, deleted = _kept(reading.db)
        if deleted:
            rows.append(kept)
            total = _sum("", [total, kept], total.sessions + deleted)
    return Rollup(by, tuple(rows), total, reading.as_of, deleted)


class _Groups:
    """Collects the rows of a roll-up."""

    def __init__(self, by: str, utc: bool) -> None:
        self._by, self._utc = by, utc
        self._rows: dict[str, RollupRow] = {}
        self._sessions: dict[str, set[int]] = {}

    def row(self, key: str) -> RollupRow:
        return self._rows.setdefault(key, RollupRow(key, took=[]))

    def _key(self, key: str, place: int, phase: int = 0) -> str:
        if self._by == "day":
            return day_of(of_quarter(place), self._utc)
        if self._by.startswith("phase"):
            named = PHASES[phase] if 0 <= phase < len(PHASES) else "run"
            return named if self._by == "phase" else f"{key}@{place} {named}"
        return f"{key}@{place}" if self._by == "turn" else key

    def _statement(self, statement: str, turn: str, at: str) -> str:
        key, place = _KEYS[self._by]
        return statement.format(key=f"{key} as key", place=f"{place.format(turn=turn, at=at)} as place")

    def add_calls(self, db: Connection, values: dict[str, Any]) -> None:
        statement = self._statement(_CALLS, "m.turn", "coalesce(t.started_at, s.first_at)")
        for key, place, phase, bucket, phases, calls, errors, took in db.execute(statement, values).fetchall():
            row = self.row(self._key(key, place, phase))
            _add_calls(row, phase, bucket, phases, calls, errors)
            if self._by.startswith("phase"):
                row.duration_us += took

    def add_turns(self, db: Connection, values: dict[str, Any]) -> None:
        found = db.execute(self._statement(_TURNS, "t.turn", "t.started_at"), values).fetchall()
        found += db.execute(self._statement(_BETWEEN, "0", "s.first_at"), values).fetchall()
        for key, place, no, turns, events, added, removed in found:
            if not turns and not events:
                continue
            named = self._key(key, place)
            row = self.row(named)
            row.turns += turns
            row.events += events
            row.added += added
            row.removed += removed
            self._sessions.setdefault(named, set()).add(no)
        for named, numbers in self._sessions.items():
            self.row(named).sessions = len(numbers)

    def total(self) -> RollupRow:
        return _sum("", self._rows.values(), len(set().union(*self._sessions.values())))

    def in_order(self) -> list[RollupRow]:
        rows = list(self._rows.values())
        if self._by == "day":
            return sorted(rows, key=lambda row: row.key)
        if self._by == "turn":
            return sorted(rows, key=lambda row: (row.key.rpartition("@")[0], int(row.key.rpartition("@")[2])))
        if self._by == "phase":
            return sorted(rows, key=lambda row: PHASES.index(row.key))
        if self._by == "phase of turn":
            return sorted(rows, key=lambda row: _turn_and_phase(row.key))
        return sorted(rows, key=lambda row: (-row.calls, -row.events, row.key))


def _turn_and_phase(key: str) -> tuple[str, int, int]:
    place, _, phase = key.rpartition(" ")
    session, _, turn = place.rpartition("@")
    return session, int(turn), PHASES.index(phase)


def _add_calls(row: RollupRow, phase: int, bucket: int, phases: int, calls: int, errors: int) -> None:
    if phase == MODEL:
        row.model_calls += calls
        return
    row.phases += phases
    row.calls += calls
    row.errors += errors
    row.took += [0] * (bucket + 1 - len(row.took))
    row.took[bucket] += calls


def _sum(key: str, rows: Iterable[RollupRow], sessions: int) -> RollupRow:
    out = RollupRow(key, sessions, took=[])
    for row in rows:
        for name in RollupRow.__struct_fields__[2:-1]:
            setattr(out, name, getattr(out, name) + getattr(row, name))
        out.took += [0] * (len(row.took) - len(out.took))
        for place, number in enumerate(row.took):
            out.took[place] += number
    return out


def _kept(db: Connection) -> tuple[RollupRow, int]:
    """The totals of deleted sessions as one row, and how many they are."""
    out, count = RollupRow(DELETED, took=[]), 0
    for totals, calls in db.execute(_KEPT).fetchall():
        numbers = msgspec.json.decode(totals, type=list[int])
        if len(numbers) != len(KEPT_FIELDS):
            continue
        count += 1
        for name, number in zip(KEPT_FIELDS[1:], numbers[1:], strict=True):
            setattr(out, name, getattr(out, name) + number)
        for _, _, phase, bucket, phases, times, errors, _ in msgspec.json.decode(calls, type=list[list[int]]):
            _add_calls(out, phase, bucket, phases, times, errors)
    out.sessions = count
    return out, count if count >= DELETED_LEAST else 0


_CALLS_OF = """
select m.phase, m.bucket, cast(sum(m.phases) as bigint), cast(sum(m.calls) as bigint), cast(sum(m.errors) as bigint),
    cast(sum(m.duration_us) as bigint) from wl_sum m join wl_session s on s.no = m.session
where s.id = :id group by m.phase, m.bucket order by m.phase, m.bucket
"""
_FIRST = "select s.first_at from wl_session s where s.id = :id"


def totals_of(reading: IndexMoment, session: str) -> SessionTotals:
    """The totals of a session, as its tombstone keeps them: KEPT_FIELDS, and its calls as rows of CALL_FIELDS."""
    whole = roll_up(reading, by="session", sessions=[session], project=None, since=None, until=None, utc=True).total
    at: Any = reading.db.execute(_FIRST, {"id": session}).fetchone()
    numbers = ((at[0] if at else 0), *(getattr(whole, name) for name in KEPT_FIELDS[1:]))
    calls = reading.db.execute(_CALLS_OF, {"id": session}).fetchall()
    return SessionTotals(numbers, tuple((0, 0, *row) for row in calls))


def _took_columns(took: list[int]) -> list[tuple[str, int]]:
    return [(_until(bucket), count) for bucket, count in enumerate(took) if bucket > 0]


def _until(bucket: int) -> str:
    """The upper end of a bucket, in a unit that people read."""
    us = 1 << bucket
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000)):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us} µs"


ROWS_MAX = 60
_BLUE = "#2b6cb0"


def bars(title: str, rows: Sequence[tuple[str, int]]) -> str:
    """Draws a bar for each row, from top to bottom: the first ROWS_MAX rows, and the number of others."""
    shown = rows[:ROWS_MAX]
    most = max((number for _, number in shown), default=0) or 1
    out = [_head(720, 22 * len(shown) + 40 + 20 * (len(rows) > len(shown)), title)]
    for at, (label, number) in enumerate(shown):
        y = 30 + 22 * at
        wide = 360 * number / most
        out.append(f'<text x="230" y="{y + 13}" text-anchor="end">{text(label, 34)}</text>')
        out.append(f'<rect x="240" y="{y}" width="{wide:.1f}" height="17" fill="{_BLUE}"/>')
        out.append(f'<text x="{246 + wide:.1f}" y="{y + 13}">{number:,}</text>')
    if len(rows) > len(shown):
        out.append(f'<text x="240" y="{44 + 22 * len(shown)}">and {len(rows) - len(shown):,} more</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def columns(title: str, rows: Sequence[tuple[str, int]]) -> str:
    """Draws a column for each row, from left to right, for histograms."""
    most = max((number for _, number in rows), default=0) or 1
    out = [_head(max(240, 44 * len(rows) + 30), 210, title)]
    for at, (label, number) in enumerate(rows):
        x, high = 20 + 44 * at, 130 * number / most
        out.append(f'<rect x="{x}" y="{170 - high:.1f}" width="36" height="{high:.1f}" fill="{_BLUE}"/>')
        out.append(f'<text x="{x + 18}" y="{165 - high:.1f}" text-anchor="middle">{number:,}</text>')
        out.append(f'<text x="{x + 18}" y="188" text-anchor="middle" font-size="10">{text(label, 12)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _head(width: int, height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif"'
        f' font-size="12" role="img" aria-label="{text(title)}">\n'
        f'<text x="10" y="18" font-weight="bold">{text(title)}</text>'
    )
