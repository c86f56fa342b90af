"""Which events a question is about.

Several sessions of a fork tree may hold a session's history, and parts of it may be rewound. So a question about a
session is a question about *spans*: (holder, first seq, last seq). They are passed to SQL as JSON, so that one
statement works for any number of them.

"The last five turns" are the five newest turn numbers in the spans, inherited ones included, and everything between and
after them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index.connection import Connection, as_rows
from wakelog.index.rows import visible_ranges
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


class Scope(msgspec.Struct, frozen=True):
    """A session, and the spans of its history that a question is about."""

    session: SessionId
    number: int
    spans: tuple[Span, ...]
    """What the question is about."""
    history: tuple[Span, ...]
    """The whole history of the session, in view or not."""
    visible: tuple[tuple[Seq, Seq], ...]
    """The ranges in view."""


def scope_of(
    db: Connection,
    session: str,
    *,
    last_turns: int | None = None,
    rewound: bool = False,
    lineage: bool = True,
) -> Scope:
    """The scope of a question about a session; NotFoundError if there is no such session."""
    number = number_of(db, session)
    if number is None:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    held: Any = db.execute(_LINEAGE, {"no": number}).fetchall()
    history: list[Span] = [tuple(span) for span in held if lineage or span[0] == number]
    ranges = visible_ranges(db, number)
    spans = history if rewound else _in_view(history, ranges)
    if last_turns is not None:
        spans = _newest_turns(db, spans, last_turns)
    return Scope(SessionId(session), number, tuple(spans), tuple(history), tuple(ranges))


def number_of(db: Connection, session: str) -> int | None:
    """The number of a session; None if there is none, or it is hidden."""
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
