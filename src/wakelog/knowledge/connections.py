"""How two things are connected: sessions that touched both, or things that lie between.

The walk goes from thing to session to thing, at most three sessions far, one side at a time. What more than `HOT`
sessions touched connects everything, and so says nothing: it is not walked through. Of ways of the same length, one
through files and keys comes before one through an error that two sessions happened to meet.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.index.connection import Connection, as_key, as_rows
from wakelog.index.results import AsOf
from wakelog.knowledge.lines import PastSession, sessions_by_number
from wakelog.model.ids import Seq, SessionId

HOPS_MAX = 3
HOT = 50
FRONTIER_MAX = 2000
WALKED = ("file", "url", "key", "commit", "artefact", "error")

Thing = tuple[str, str]
"""Kind and key."""

_SESSIONS_OF = """
select t.kind, t.key, t.session from json_each(:things) p
cross join wl_touch t on t.key = p.value ->> 1 and t.kind = p.value ->> 0
join wl_session s on s.no = t.session and s.hidden = 0
where (:project is null or s.project = :project)
order by t.at desc, s.id, t.kind, t.key limit :limit
"""
_THINGS_OF = """
select t.session, t.kind, t.key, t.name, min(t.last) from json_each(:sessions) p
cross join wl_touch t on t.session = cast(p.value ->> 0 as bigint)
group by t.session, t.kind, t.key, t.name order by t.session, t.kind, t.key limit :limit
"""


class PathStep(msgspec.Struct, frozen=True):
    """A session, and the thing that it was reached by."""

    kind: str
    name: str
    session: SessionId
    session_name: str
    seq: Seq


class ThingPath(msgspec.Struct, frozen=True):
    """The shortest way between two things; empty when there is none within reach."""

    a: str
    b: str
    steps: tuple[PathStep, ...]
    as_of: AsOf


def connect(db: Connection, a: Thing, b: Thing, project: str | None) -> list[PathStep]:
    """The shortest way from `a` to `b`; of several, the one through the newest sessions."""
    came: dict[Thing, tuple[Thing, int] | None] = {a: None}
    names: dict[Thing, str] = {a: a[1], b: b[1]}
    last: dict[tuple[int, Thing], Seq] = {}
    seen: set[int] = set()
    frontier = [a]
    for _ in range(HOPS_MAX):
        found = _sessions(db, frontier, project)
        new = {no: thing for no, thing in found.items() if no not in seen}
        seen |= new.keys()
        rows = db.execute(_THINGS_OF, {"sessions": as_rows((no,) for no in new), "limit": FRONTIER_MAX * 10})
        frontier = []
        for no, kind, key, name, seq in sorted(rows.fetchall(), key=lambda row: row[1] == "error"):
            thing = (kind, key)
            last[no, thing] = seq
            if kind in WALKED and thing not in came and no in new:
                came[thing] = (new[no], no)
                names[thing] = name
                frontier.append(thing)
        if b in came:
            return _way(db, b, came, names, last)
        frontier = frontier[:FRONTIER_MAX]
        if not frontier:
            break
    return []


def _sessions(db: Connection, things: Iterable[Thing], project: str | None) -> dict[int, Thing]:
    """The sessions that touched these, each with the first thing that leads to it."""
    asked = list(things)
    values = {"things": as_rows(asked), "project": project, "limit": FRONTIER_MAX * 10}
    found: dict[Thing, list[int]] = {}
    for kind, key, session in db.execute(_SESSIONS_OF, values).fetchall():
        found.setdefault((kind, key), []).append(session)
    out: dict[int, Thing] = {}
    for thing in asked:
        touched = list(dict.fromkeys(found.get(thing, ())))
        if len(asked) == 1 or len(touched) <= HOT:
            for session in touched[: FRONTIER_MAX // 4]:
                out.setdefault(session, thing)
    return out


def _way(
    db: Connection,
    b: Thing,
    came: dict[Thing, tuple[Thing, int] | None],
    names: dict[Thing, str],
    last: dict[tuple[int, Thing], Seq],
) -> list[PathStep]:
    steps: list[tuple[Thing, int]] = []
    at: Thing = b
    while (before := came[at]) is not None:
        steps.append((at, before[1]))
        at = before[0]
    sessions: dict[int, PastSession] = sessions_by_number(db, (no for _, no in steps))
    return [
        PathStep(thing[0], names[thing], sessions[no].id, sessions[no].name, last[no, thing])
        for thing, no in reversed(steps)
        if no in sessions
    ]


def thing(kind: str, name: str) -> Thing:
    return kind, as_key(name)
