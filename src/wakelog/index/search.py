"""Finding words in everything said, done and decided.

What is typed is plain words: all of them must occur. "Quoted words" must stand together, and `word*` is the
beginning of a word. Every word is handed to the full-text search in quotes, so nothing that can be typed is an
error, and `AND`, `-` or `:` are just text. Case and accents do not count; a word is a run of letters and digits, so
`run_sql` is found by `sql`.
"""

from __future__ import annotations

import re
from typing import Any

import apsw

from wakelog.index.results import Hit
from wakelog.index.rows import SEQ_BITS
from wakelog.index.scope import Scope

_TERM = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_WORDS_MAX = 64

# A hidden session's events are found through the oldest fork that still shares them, under that one's id.
_FIND = f"""
select h.id, h.name, e.seq, e.turn, e.attempt, e.kind, e.occurred, e.tool,
    iif(e.trust = 0, 'trusted', iif(e.trust = 1, 'unverified', 'untrusted')),
    exists (select 1 from wl_visible v where v.session = h.no and e.seq between v.first and v.last),
    snippet(wl_words, 0, '«', '»', '…', 24), wl_words.rank
from wl_words
cross join wl_event e on e.session = wl_words.rowid >> {SEQ_BITS} and e.seq = wl_words.rowid & {(1 << SEQ_BITS) - 1}
cross join wl_session h on h.no = {{0}}
where wl_words match :query and e.occurred >= :since
    and (:kind is null or e.kind = :kind or e.kind glob :kind || '.*') {{1}}
order by wl_words.rank limit :limit
"""
_OF_ALL = _FIND.format(
    """coalesce((select no from wl_session where no = e.session and not hidden), (
    select min(l.session) from wl_lineage l join wl_session f on f.no = l.session and not f.hidden
    where l.holder = e.session and e.seq between l.first and l.last))""",
    "",
)
_OF_ONE = _FIND.format(
    ":number",
    "and exists (select 1 from json_each(:spans) r"
    " where r.value ->> 0 = e.session and e.seq between r.value ->> 1 and r.value ->> 2)"
    " and wl_words.rowid between :low and :high",
)


def find(db: apsw.Connection, text: str, scope: Scope | None, kind: str | None, since: int, limit: int) -> list[Hit]:
    """The events that match, the best first."""
    query = as_query(text)
    if not query:
        return []
    values: dict[str, Any] = {"query": query, "kind": kind, "since": since, "limit": limit}
    if scope is None:
        rows: Any = db.execute(_OF_ALL, values).fetchall()
    else:
        holders = [holder for holder, _, _ in scope.spans]
        values |= {"number": scope.number, "spans": scope.json}
        # Numbers of a fork tree are not always neighbours, but the search can skip what lies outside of them.
        values |= {"low": min(holders) << SEQ_BITS, "high": (max(holders) + 1 << SEQ_BITS) - 1}
        rows = db.execute(_OF_ONE, values).fetchall()
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
