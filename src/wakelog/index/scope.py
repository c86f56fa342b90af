"""Which events a question is about.

A session's history may be held by several sessions of its fork tree, and parts of it may have been rewound. A question
about a session is therefore a question about *spans*: (who holds them, first seq, last seq). They are handed to SQL as
JSON, so that one statement serves any number of them.

"The last five turns" are the five newest turn numbers in the spans, inherited ones included, and whatever happened
between them and since.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import AsOf
from wakelog.index.rows import visible
from wakelog.model.ids import Seq, SessionId

Span = tuple[int, Seq, Seq]

_NUMBER = "select s.no from wl_session s where s.id = :id and s.hidden = 0"
_LINEAGE = "select l.holder, l.first, l.last from wl_lineage l where l.session = :no order by l.first"
_TURNS = """
select min(t.first) from json_each(:spans) r
cross join wl_turn t on t.session = cast(r.value ->> 0 as bigint)
    and t.first <= cast(r.value ->> 2 as bigint) and t.last >= cast(r.value ->> 1 as bigint)
group by t.turn order by t.turn desc limit 1 offset :before
"""
TRUST_NAME = "case e.trust when 0 then 'trusted' when 1 then 'unverified' else 'untrusted' end"

# `x` is the table asked, `e` the event its row belongs to. Both forms give a session's id as `sid`.
SPANS = """
(select cast(value ->> 0 as bigint) as holder, cast(value ->> 1 as bigint) as a, cast(value ->> 2 as bigint) as b,
    :session as sid
from json_each(:spans)) r
"""
_OF_ONE = f"""
{SPANS}
cross join {{0}} x on x.session = r.holder and x.seq between r.a and r.b
join wl_event e on e.session = x.session and e.seq = x.seq
where e.occurred >= :since
"""
_OF_ALL = """
{0} x join (select s.no, s.id as sid from wl_session s where s.hidden = 0) r on r.no = x.session
join wl_event e on e.session = x.session and e.seq = x.seq
where e.occurred >= :since and (
    :rewound = 1
    or exists (select 1 from wl_visible v where v.session = x.session and x.seq between v.first and v.last))
"""


class Reading(msgspec.Struct, frozen=True):
    """A moment of the index: everything asked through `db` is about it."""

    db: Connection
    as_of: AsOf


class Scope(msgspec.Struct, frozen=True):
    """A session and the spans of its history that are asked about."""

    session: SessionId
    number: int
    spans: tuple[Span, ...]
    """All that is asked about."""
    history: tuple[Span, ...]
    """All that is the session's, in view or not."""
    visible: tuple[tuple[Seq, Seq], ...]
    """What the session has in view."""


def scope_of(
    db: Connection,
    session: str,
    *,
    last_turns: int | None = None,
    rewound: bool = False,
    lineage: bool = True,
) -> Scope:
    """What to look at for a question about a session; NotFoundError when there is none."""
    number = number_of(db, session)
    if number is None:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    held: Any = db.execute(_LINEAGE, {"no": number}).fetchall()
    history: list[Span] = [tuple(span) for span in held if lineage or span[0] == number]
    ranges = visible(db, number)
    spans = history if rewound else _in_view(history, ranges)
    if last_turns is not None:
        spans = _newest_turns(db, spans, last_turns)
    return Scope(SessionId(session), number, tuple(spans), tuple(history), tuple(ranges))


def source_of(
    db: Connection,
    table: str,
    session: str | None,
    last_turns: int | None,
    since: int | None,
    rewound: bool,
    lineage: bool,
) -> tuple[str, dict[str, Any]]:
    """The part of a statement that says which rows are asked about, and its values."""
    if session is None:
        if last_turns is not None:
            raise InvalidInputError(
                "last_turns is about one session's turns, and no session was named",
                kind="no-session",
                hint="name a session, or use since",
            )
        return _OF_ALL.format(table), {"rewound": rewound, "since": since or 0}
    scope = scope_of(db, session, last_turns=last_turns, rewound=rewound, lineage=lineage)
    return _OF_ONE.format(table), {"since": since or 0, "session": scope.session, "spans": as_rows(scope.spans)}


def number_of(db: Connection, session: str) -> int | None:
    """The number of a session that can be asked about."""
    number: Any = db.execute(_NUMBER, {"id": session}).get
    return None if number is None else int(number)


def _in_view(spans: list[Span], ranges: list[tuple[Seq, Seq]]) -> list[Span]:
    both = ((h, max(a, first), min(b, last)) for h, a, b in spans for first, last in ranges)
    return [span for span in both if span[1] <= span[2]]


def _newest_turns(db: Connection, spans: list[Span], count: int) -> list[Span]:
    if count < 1:
        raise InvalidInputError(f"last_turns is {count}; it must be 1 or more", kind="bad-limit")
    start: Any = db.execute(_TURNS, {"spans": as_rows(spans), "before": count - 1}).get
    return [(h, max(a, start), b) for h, a, b in spans if b >= start] if start else spans


def check_limit(limit: int) -> int:
    if not 1 <= limit <= 10_000:
        raise InvalidInputError(f"limit is {limit}; it must be from 1 to 10,000", kind="bad-limit")
    return limit
