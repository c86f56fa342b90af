"""How two things are connected: by sessions that touched both, or by things in between.

A breadth-first search goes from thing to session to thing, through at most three sessions. A thing that more than `HOT`
sessions touched connects everything and so means nothing; the search does not go through it. Of paths with the same
length, one through files and keys is preferred to one through an error that two sessions happened to meet.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wakelog.index.connection import Connection, as_key, as_rows
from wakelog.index.questions import IndexQuestion
from wakelog.index.results import AsOf
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.lines import PastSession, sessions_by_number
from wakelog.knowledge.things import kind_of
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
    """A session, and the thing through which it was reached."""

    kind: str
    name: str
    session: SessionId
    session_name: str
    seq: Seq


class ThingPath(msgspec.Struct, frozen=True):
    """The shortest path between two things; empty if there is none within reach."""

    a: str
    b: str
    steps: tuple[PathStep, ...]
    as_of: AsOf


class AskConnections(IndexQuestion, frozen=True):
    """How two things are connected: the shortest path of sessions and things between them."""

    a: str
    b: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> ThingPath:
        db = reading.db
        a, b = ((kind_of(db, name, self.project), as_key(name)) for name in (self.a, self.b))
        return ThingPath(self.a, self.b, tuple(_connect(db, a, b, self.project)), reading.as_of)


def _connect(db: Connection, a: Thing, b: Thing, project: str | None) -> list[PathStep]:
    """The shortest path from `a` to `b`; of several, the one through the newest sessions."""
    came_from: dict[Thing, tuple[Thing, int] | None] = {a: None}
    names: dict[Thing, str] = {a: a[1], b: b[1]}
    last: dict[tuple[int, Thing], Seq] = {}
    seen: set[int] = set()
    frontier = [a]
    for _ in range(HOPS_MAX):
        results = _sessions_touching(db, frontier, project)
        new = {no: thing for no, thing in results.items() if no not in seen}
        seen |= new.keys()
        rows = db.execute(_THINGS_OF, {"sessions": as_rows((no,) for no in new), "limit": FRONTIER_MAX * 10})
        frontier = []
        for no, kind, key, name, seq in sorted(rows.fetchall(), key=lambda row: row[1] == "error"):
            thing = (kind, key)
            last[no, thing] = seq
            if kind in WALKED and thing not in came_from and no in new:
                came_from[thing] = (new[no], no)
                names[thing] = name
                frontier.append(thing)
        if b in came_from:
            return _path_to(db, b, came_from, names, last)
        frontier = frontier[:FRONTIER_MAX]
        if not frontier:
            break
    return []


def _sessions_touching(db: Connection, things: Sequence[Thing], project: str | None) -> dict[int, Thing]:
    """The sessions that touched these things, each with the first thing that leads to it."""
    values = {"things": as_rows(things), "project": project, "limit": FRONTIER_MAX * 10}
    results: dict[Thing, list[int]] = {}
    for kind, key, session in db.execute(_SESSIONS_OF, values).fetchall():
        results.setdefault((kind, key), []).append(session)
    out: dict[int, Thing] = {}
    for thing in things:
        touched = list(dict.fromkeys(results.get(thing, ())))
        if len(things) == 1 or len(touched) <= HOT:
            for session in touched[: FRONTIER_MAX // 4]:
                out.setdefault(session, thing)
    return out


def _path_to(
    db: Connection,
    b: Thing,
    came_from: dict[Thing, tuple[Thing, int] | None],
    names: dict[Thing, str],
    last: dict[tuple[int, Thing], Seq],
) -> list[PathStep]:
    steps: list[tuple[Thing, int]] = []
    at: Thing = b
    while (before := came_from[at]) is not None:
        steps.append((at, before[1]))
        at = before[0]
    sessions: dict[int, PastSession] = sessions_by_number(db, (no for _, no in steps))
    return [
        PathStep(thing[0], names[thing], sessions[no].id, sessions[no].name, last[no, thing])
        for thing, no in reversed(steps)
        if no in sessions
    ]
