"""Finding words in everything said, done and decided.

What is typed is plain words: all of them must occur. "Quoted words" must stand together, and `word*` is the
beginning of a word. Every word is handed to the full-text search in quotes, so nothing that can be typed is an
error, and `AND`, `-` or `:` are just text. Case and accents do not count; a word is a run of letters and digits, so
`run_sql` is found by `sql`.
"""

from __future__ import annotations

import re
from typing import Any

from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import Hit
from wakelog.index.rows import SEQ_BITS
from wakelog.index.scope import Scope
from wakelog.index.statements import TRUST_NAME

_TERM = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_WORDS_MAX = 64

# A hidden session's events are found through the oldest fork that still shares them, under that one's id. What matches
# and where that is comes from the database (Words.find), in place of {found}, {source}, {session} and {seq}.
_FIND = f"""
select h.id, h.name, e.seq, e.turn, e.attempt, e.kind, e.occurred, e.tool, {TRUST_NAME},
    exists (select 1 from wl_visible v where v.session = h.no and e.seq between v.first and v.last), {{{{found}}}}
from {{{{source}}}}
cross join wl_event e on e.session = {{{{session}}}} and e.seq = {{{{seq}}}}
cross join wl_session h on h.no = {{0}}
where e.occurred >= :since
    and (:kind is null or e.kind = :kind or substr(e.kind, 1, length(:kind) + 1) = :kind || '.') {{1}}
"""
_OF_ALL = _FIND.format(
    """coalesce((select s.no from wl_session s where s.no = e.session and s.hidden = 0), (
    select min(l.session) from wl_lineage l join wl_session f on f.no = l.session and f.hidden = 0
    where l.holder = e.session and e.seq between l.first and l.last))""",
    "",
)
_OF_ONE = _FIND.format(
    ":number",
    "and exists (select 1 from json_each(:spans) r where cast(r.value ->> 0 as bigint) = e.session"
    " and e.seq between cast(r.value ->> 1 as bigint) and cast(r.value ->> 2 as bigint))",
)


def find(db: Connection, text: str, scope: Scope | None, kind: str | None, since: int, limit: int) -> list[Hit]:
    """The events that match, the best first."""
    query = as_query(text)
    if not query:
        return []
    values: dict[str, Any] = {"kind": kind, "since": since, "low": 0, "high": (1 << 63) - 1}
    if scope is None:
        rows = db.words.find(_OF_ALL, query, values, limit)
    else:
        holders = [holder for holder, _, _ in scope.spans]
        values |= {"number": scope.number, "spans": as_rows(scope.spans)}
        # Numbers of a fork tree are not always neighbours, but the search can skip what lies outside of them.
        values |= {"low": min(holders) << SEQ_BITS, "high": (max(holders) + 1 << SEQ_BITS) - 1}
        rows = db.words.find(_OF_ONE, query, values, limit)
    return [_hit(list(row)) for row in rows]


def _hit(row: list[Any]) -> Hit:
    row[9] = bool(row[9])
    return Hit(*row)


def as_query(text: str) -> str:
    """What was typed as a full-text query that cannot be wrong; empty when there is no word in it."""
    terms = []
    for phrase, star, word in _TERM.findall(text.replace("\0", " ")):
        words, is_beginning = (word.rstrip("*"), word.endswith("*")) if word else (phrase, bool(star))
        # Something that is no word at all is left out: "!!!" would otherwise be found nowhere, and all else with it.
        if any(c.isalnum() for c in words):
            terms.append(f'"{words}"' + ("*" if is_beginning else ""))
    return " ".join(terms[:_WORDS_MAX])
