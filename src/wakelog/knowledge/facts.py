"""Facts across sessions: which hold, which were replaced, which contradict each other.

A fact's scope is its project and key. It has two times: since when it holds (`occurred_at`, else when it was stored),
and when it was stored. A later value replaces an earlier one only if its writer knew the earlier one: in the same fork
tree, or because recall had shown it. Otherwise both hold, and contradict each other if they differ. A less trusted
value never replaces a more trusted one. Rewound facts do not count.

Two sessions that record the same value confirm each other, unless recall had shown one of them the other's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from wakelog.index.connection import Connection, as_key, as_rows
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.lines import SOURCES_MAX, KnownLine, KnownThing, source, trust_of
from wakelog.model.ids import Seq, SessionId
from wakelog.model.short_text import one_line

KEYS_MAX = 500
SESSIONS_MAX = 500
"""How many sessions that wrote a key to read, the newest first."""

_NOW = 1 << 62
_ROWS = """
select f.session, f.seq, f.key, f.value, f.retracted, e.occurred, e.at, e.trust, e.turn,
    (select min(l.session) from wl_lineage l join wl_session h on h.no = l.session and h.hidden = 0
        where l.holder = f.session and f.seq between l.first and l.last) as shown_in,
    exists (select 1 from wl_lineage l join wl_session h on h.no = l.session and h.hidden = 0
        join wl_visible v on v.session = l.session and f.seq between v.first and v.last
        where l.holder = f.session and f.seq between l.first and l.last) as in_view
from json_each(:touched) t
cross join wl_fact f on f.session = cast(t.value ->> 0 as bigint) and f.key = t.value ->> 1
join wl_event e on e.session = f.session and e.seq = f.seq
where e.occurred <= :as_of and e.at <= :known_at
"""
_TOUCHED = """
select t.session, t.name from wl_touch t join wl_session s on s.no = t.session
where t.kind = 'key' and t.key = :key and (:project is null or s.project = :project)
order by t.at desc, s.id limit :limit
"""
_KEYS = """
select f.session, f.key from wl_fact f join wl_session s on s.no = f.session
where f.key not like 'preference:%' and (:project is null or s.project = :project)
group by f.session, f.key, s.last_at, s.id order by s.last_at desc, s.id, f.key limit :limit
"""
_SESSIONS = """
select s.no, s.id, s.name, s.root, s.project from wl_session s
where s.no in (select cast(value ->> 0 as bigint) from json_each(:numbers))
"""
_SHOWN = """
select s.session, s.seq, s.source from wl_shown s
where s.session in (select cast(value ->> 0 as bigint) from json_each(:numbers))
"""
_REWINDS = """
select w.session, w.seq, w.back_to, w.under, e.at from wl_rewind w
join wl_event e on e.session = w.session and e.seq = w.seq
where w.session in (select cast(value ->> 0 as bigint) from json_each(:numbers))
"""


class FactEvent(msgspec.Struct, frozen=True):
    """One time that a fact was recorded or retracted."""

    session: SessionId
    name: str
    root: str
    project: str
    seq: Seq
    turn: int
    key: str
    value: str | None
    """As JSON; None if it is too long for the index."""
    retracted: bool
    valid: int
    stored: int
    distrust: int
    shown: frozenset[str] = frozenset()
    """The sources that recall had shown to its session before."""

    @property
    def source(self) -> str:
        return source(self.session, self.seq)

    def knew(self, other: FactEvent) -> bool:
        """Whether the writer of this fact knew the other one."""
        return self.root == other.root or other.source in self.shown


class HeldFact(msgspec.Struct):
    """A value that holds, and all events that recorded it."""

    value: str | None
    said: list[FactEvent]

    @property
    def newest(self) -> FactEvent:
        return max(self.said, key=_order)

    @property
    def roots(self) -> int:
        """How many fork trees recorded it independently, without having been shown another's."""
        first: dict[str, FactEvent] = {}
        for event in self.said:
            first.setdefault(event.root, event)
        own = [e for e in first.values() if not any(other.source in e.shown for other in self.said)]
        return max(1, len(own))


def _order(event: FactEvent) -> tuple[int, int, str, Seq]:
    return event.valid, event.stored, event.session, event.seq


def facts_that_hold(events: Iterable[FactEvent]) -> list[HeldFact]:
    """The values of one key in one project that hold, oldest first. More than one is a contradiction."""
    facts: list[FactEvent] = []
    for event in sorted(events, key=_order):
        replaced = [e for e in facts if event.knew(e) and event.distrust <= e.distrust]
        if event.retracted:
            facts = [e for e in facts if e not in replaced]
            continue
        facts = [e for e in facts if e not in replaced or _same(e, event)]
        facts.append(event)
    out: list[HeldFact] = []
    for event in facts:
        alike = next((fact for fact in out if _same(fact.said[0], event)), None)
        if alike is None:
            out.append(HeldFact(event.value, [event]))
        else:
            alike.said.append(event)
    return out


def _same(a: FactEvent, b: FactEvent) -> bool:
    return a.value is not None and a.value == b.value


class AskFacts(IndexQuestion, frozen=True):
    """The facts that hold, for one key or all keys, each with its sources. With `conflicts`, only those that contradict
    each other, side by side."""

    key: str | None = None
    project: str | None = None
    conflicts: bool = False
    as_of: Number | None = None
    known_at: Number | None = None
    limit: Number = 50

    def __call__(self, reading: IndexMoment) -> KnownThing:
        check_limit(self.limit)
        events = fact_events(reading.db, self.key, self.project, as_of=self.as_of, known_at=self.known_at)
        lines = [line for line in fact_lines(events) if line.conflicts or not self.conflicts]
        more = max(0, len(lines) - self.limit)
        return KnownThing(self.key or "", "key", tuple(lines[: self.limit]), reading.as_of, more)


def fact_events(
    db: Connection,
    key: str | None,
    project: str | None,
    *,
    as_of: int | None = None,
    known_at: int | None = None,
) -> list[FactEvent]:
    """All fact events in view, of one key or of all keys."""
    values: dict[str, Any] = {"project": project, "limit": SESSIONS_MAX if key is not None else KEYS_MAX}
    if key is not None:
        found = db.execute(_TOUCHED, {**values, "key": as_key(key)}).fetchall()
    else:
        found = db.execute(_KEYS, values).fetchall()
    touched = sorted({(session, name) for session, name in found if key is None or name == key})
    if not touched:
        return []
    times = {"as_of": _NOW if as_of is None else as_of, "known_at": _NOW if known_at is None else known_at}
    rows = db.execute(_ROWS, {"touched": as_rows(touched), **times}).fetchall()
    if known_at is None:
        rows = [row for row in rows if row[10]]
    else:
        rows = _in_view_at(db, rows, known_at)
    numbers = as_rows((n,) for n in sorted({row[0] for row in rows} | {row[9] for row in rows if row[9]}))
    sessions = {row[0]: row[1:] for row in db.execute(_SESSIONS, {"numbers": numbers}).fetchall()}
    shown: dict[int, list[tuple[Seq, str]]] = {}
    for session, seq, what in db.execute(_SHOWN, {"numbers": numbers}).fetchall():
        shown.setdefault(session, []).append((seq, what))
    out = []
    for holder, seq, name, value, retracted, valid, stored, distrust, turn, shown_in, _ in rows:
        if shown_in is None or shown_in not in sessions:
            continue
        # Events of a deleted session are listed under a fork that still has them.
        id_, label, root, place = sessions[shown_in]
        before = frozenset(what for at, what in shown.get(holder, ()) if at < seq)
        event = FactEvent(
            id_, label, root, place, seq, turn, name, value, bool(retracted), valid, stored, distrust, before
        )
        out.append(event)
    return out


def fact_lines(events: Iterable[FactEvent]) -> list[KnownLine]:
    """The facts that hold, as lines: contradicting ones next to each other, the newest key first."""
    scopes: dict[tuple[str, str], list[FactEvent]] = {}
    for event in events:
        scopes.setdefault((event.project, event.key), []).append(event)
    out: list[tuple[int, list[KnownLine]]] = []
    for (project, key), recorded in scopes.items():
        facts = sorted(facts_that_hold(recorded), key=lambda fact: _order(fact.newest), reverse=True)
        lines = [_line(project, key, fact, conflicts=len(facts) > 1) for fact in facts]
        if lines:
            out.append((max(line.at for line in lines), lines))
    return [line for _, lines in sorted(out, key=lambda group: (-group[0], group[1][0].text)) for line in lines]


def _line(project: str, key: str, fact: HeldFact, *, conflicts: bool) -> KnownLine:
    newest = fact.newest
    value = "(too long to show here)" if fact.value is None else _shown_value(fact.value)
    return KnownLine(
        kind="fact",
        text=one_line(f"{key} = {value}"),
        session=newest.session,
        name=newest.name,
        seq=newest.seq,
        turn=newest.turn,
        at=newest.valid,
        trust=trust_of(e.distrust for e in fact.said),
        known="recorded",
        project=project,
        times=len(fact.said),
        roots=fact.roots,
        sources=tuple(e.source for e in sorted(fact.said, key=_order, reverse=True)[:SOURCES_MAX]),
        conflicts=conflicts,
    )


def _shown_value(value: str) -> str:
    plain = msgspec.json.decode(value)
    return plain if isinstance(plain, str) else value


def _in_view_at(db: Connection, rows: Sequence[Any], known_at: int) -> list[Any]:
    """The facts that were in view at a time, before later rewinds."""
    numbers = as_rows((n,) for n in sorted({row[0] for row in rows}))
    rewinds: dict[int, dict[Seq, tuple[Seq, Seq]]] = {}
    for session, seq, back_to, under, at in db.execute(_REWINDS, {"numbers": numbers}).fetchall():
        if at <= known_at:
            rewinds.setdefault(session, {})[seq] = (back_to, under)
    return [row for row in rows if _in_view(row[1], rewinds.get(row[0], {}))]


def _in_view(seq: Seq, rewinds: dict[Seq, tuple[Seq, Seq]]) -> bool:
    at, under = _NOW, max(rewinds, default=0)
    while under:
        if under <= seq <= at:
            return True
        at, under = rewinds.get(under, (0, 0))
    return seq <= at
