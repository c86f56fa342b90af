"""Lines: what is known, each in one line with the events it comes from.

A line is as trusted as its least trusted source. Sources are counted in fork trees, because a fork repeats what its
parent did. A session that was shown a line does not confirm it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import AsOf
from wakelog.model.ids import Seq, SessionId
from wakelog.model.trust import TRUSTS, Trust

T = TypeVar("T")
Known = Literal["recorded", "matched", "derived"]
LineKind = Literal[
    "fact", "dead_end", "recipe", "error", "decision", "changed", "read", "produced", "committed", "session"
]
SOURCES_MAX = 20
"""How many sources of a line are listed; `times` and `roots` count all."""
TEXT_MAX = 300


class KnownLine(msgspec.Struct, frozen=True):
    """One thing that is known, and its sources."""

    kind: LineKind
    text: str
    session: SessionId
    """The newest session it comes from; `seq` is the event there."""
    name: str
    seq: Seq
    turn: int
    at: int
    trust: Trust
    known: Known
    project: str
    times: int = 1
    roots: int = 1
    """How many independent sessions it comes from; a session and its forks count as one."""
    sources: tuple[str, ...] = ()
    """The events, each as `session@seq`."""
    conflicts: bool = False
    """Whether another line contradicts it."""
    stale: bool = False
    """Whether the file it is about was changed since."""
    why: str = ""
    """Why it was recalled; empty if it was requested by name."""


class KnownThing(msgspec.Struct, frozen=True):
    """What is known about one thing. `kind` says how its name was interpreted: file, url, key, commit, artefact or
    error."""

    subject: str
    kind: str
    lines: tuple[KnownLine, ...]
    as_of: AsOf
    more: int = 0
    """How many lines were left out."""


class PastSession(msgspec.Struct, frozen=True):
    """A session, as the index has it."""

    no: int
    id: SessionId
    name: str
    root: str
    project: str
    agent: str
    outcome: str
    goal: str | None
    labels: dict[str, str]
    first_at: int
    last_at: int


_SESSIONS = """
select s.no, s.id, s.name, s.root, s.project, s.agent, s.outcome, s.goal, s.labels, s.first_at, s.last_at
from wl_session s where s.hidden = 0 and s.no in (select cast(value ->> 0 as bigint) from json_each(:numbers))
"""
_PLACES = """
select e.session, e.seq, e.turn, e.occurred, e.trust from json_each(:places) p
cross join wl_event e on e.session = cast(p.value ->> 0 as bigint) and e.seq = cast(p.value ->> 1 as bigint)
"""


def sessions_by_number(db: Connection, numbers: Iterable[int]) -> dict[int, PastSession]:
    """The sessions with these numbers, without deleted ones."""
    values = {"numbers": as_rows((number,) for number in sorted(set(numbers)))}
    out: dict[int, PastSession] = {}
    for row in db.execute(_SESSIONS, values).fetchall():
        fields: list[Any] = [*row[:8], msgspec.json.decode(row[8], type=dict[str, str]), *row[9:11]]
        out[row[0]] = PastSession(*fields)
    return out


def places(db: Connection, pairs: Iterable[tuple[int, Seq]]) -> dict[tuple[int, Seq], tuple[int, int, int]]:
    """Turn, time and distrust of these events."""
    rows = db.execute(_PLACES, {"places": as_rows(sorted(set(pairs)))}).fetchall()
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}


def source(session: str, seq: Seq) -> str:
    return f"{session}@{seq}"


def trust_of(distrusts: Iterable[int]) -> Trust:
    """The lowest trust of several."""
    return TRUSTS[min(max(distrusts, default=0), len(TRUSTS) - 1)]


def group_by(items: Iterable[T], key: Callable[[T], Any]) -> Iterator[list[T]]:
    """Groups items with the same key, in the order of the first item of each group."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return iter(groups.values())
