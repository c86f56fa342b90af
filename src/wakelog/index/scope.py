"""Which events a question is about.

A session's history may be held by several sessions of its fork tree, and parts of it may have been rewound. A question
about a session is therefore a question about *spans*: (who holds them, first seq, last seq). They are handed to SQL as
JSON, so that one statement serves any number of them.

"The last five turns" are the five newest turn numbers in the spans, inherited ones included, and whatever happened
between them and since.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.index.visible import visible
from wakelog.model.ids import Seq, SessionId

Span = tuple[int, Seq, Seq]

_LINEAGE = "select holder, first, last from wl_lineage where session = ? order by first"
_TURNS = """
select min(t.first) from json_each(?) r
cross join wl_turn t on t.session = r.value ->> 0 and t.first <= r.value ->> 2 and t.last >= r.value ->> 1
group by t.turn order by t.turn desc limit 1 offset ?
"""


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

    @property
    def json(self) -> str:
        return msgspec.json.encode(self.spans).decode()


def scope_of(
    db: apsw.Connection,
    session: str,
    *,
    last_turns: int | None = None,
    rewound: bool = False,
    lineage: bool = True,
) -> Scope:
    """What to look at for a question about a session; NotFoundError when there is none."""
    number: Any = db.execute("select no from wl_session where id = ? and not hidden", (session,)).get
    if number is None:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    held: Any = db.execute(_LINEAGE, (number,)).fetchall()
    history: list[Span] = [span for span in held if lineage or span[0] == number]
    ranges = visible(db, number)
    spans = history if rewound else _in_view(history, ranges)
    if last_turns is not None:
        spans = _newest_turns(db, spans, last_turns)
    return Scope(SessionId(session), number, tuple(spans), tuple(history), tuple(ranges))


def _in_view(spans: list[Span], ranges: list[tuple[Seq, Seq]]) -> list[Span]:
    both = ((h, max(a, first), min(b, last)) for h, a, b in spans for first, last in ranges)
    return [span for span in both if span[1] <= span[2]]


def _newest_turns(db: apsw.Connection, spans: list[Span], count: int) -> list[Span]:
    if count < 1:
        raise InvalidInputError(f"last_turns is {count}; it must be 1 or more", kind="bad-limit")
    start: Any = db.execute(_TURNS, (msgspec.json.encode(spans).decode(), count - 1)).get
    return [(h, max(a, start), b) for h, a, b in spans if b >= start] if start else spans


def check_limit(limit: int) -> int:
    if not 1 <= limit <= 10_000:
        raise InvalidInputError(f"limit is {limit}; it must be from 1 to 10,000", kind="bad-limit")
    return limit
