"""The syntax of a search for words.

A search is plain words, and all of them must occur. "Quoted words" are a phrase, and `word*` is a prefix. Every word is
passed to the full-text search in quotes. So no input is an error, and `AND`, `-` or `:` are just text. Case and accents
do not matter. A word is a run of letters and digits, so `sql` finds `run_sql`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from wakelog.index.connection import SEQ_BITS, Connection, Texts, as_rows
from wakelog.index.results import Hit
from wakelog.index.scope import Scope
from wakelog.index.statements import TRUST_NAME
from wakelog.index.words import Term

_TERM = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_WORDS_MAX = 64

# Events of a hidden session are found through the oldest fork that still shares them, under the id of that fork. Each
# database fills in the names in braces with its own full-text search (words.py).
_FIND = f"""
select h.id, h.name, e.seq, e.turn, e.attempt, e.kind, e.occurred, e.tool, {TRUST_NAME},
    exists (select 1 from wl_visible v where v.session = h.no and e.seq between v.first and v.last),
    e.session, (select o.id from wl_session o where o.no = e.session), {{{{found}}}}
from {{{{source}}}}
cross join wl_event e on e.session = {{{{session}}}} and e.seq = {{{{seq}}}}
cross join wl_session h on h.no = {{0}}
where e.occurred >= :since
    and (:kind is null or e.kind = :kind or substr(e.kind, 1, length(:kind) + 1) = :kind || '.') {{1}}
    and {{{{matches}}}} limit :limit
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


def find(
    db: Connection, text: str, scope: Scope | None, kind: str | None, since: int, limit: int, texts: Texts
) -> list[Hit]:
    """The matching events, the best first. Text that several events of a turn repeat is found once."""
    terms = terms_of(text)
    if not terms:
        return []
    values: dict[str, Any] = {"kind": kind, "since": since, "low": 0, "high": (1 << 63) - 1}
    statement = _OF_ALL
    if scope is not None:
        holders = [holder for holder, _, _ in scope.spans]
        values |= {"number": scope.number, "spans": as_rows(scope.spans)}
        # The numbers of a fork tree are not always consecutive, but the search can skip everything outside of them.
        values |= {"low": min(holders) << SEQ_BITS, "high": (max(holders) + 1 << SEQ_BITS) - 1}
        statement = _OF_ONE
    asked, texts = limit, functools.cache(texts)
    while True:
        rows = db.words.find(statement, terms, values, asked, texts)
        hits = _once(rows)
        if len(hits) >= limit or len(rows) < asked:
            return hits[:limit]
        asked *= 2


def _once(rows: Sequence[tuple[Any, ...]]) -> list[Hit]:
    """The hits without repetitions. A turn's input is often repeated by its first message, a call's output by a tool
    message, a model's answer by the agent's message, and a first attempt by the second. The hit that is kept is the one
    in view, and among those the message."""
    hits = [_hit(row) for row in rows]
    together: dict[tuple[str, int], list[int]] = {}
    for place, hit in enumerate(hits):
        together.setdefault((hit.session, hit.turn), []).append(place)
    alike = [places for (_, turn), places in together.items() if turn and len(places) > 1]
    texts = {place: " ".join(rows[place][12].split()) for places in alike for place in places}
    repeated: set[int] = set()
    for places in alike:
        kept: list[tuple[Hit, str]] = []
        for place in sorted(places, key=lambda p: (not hits[p].in_view, hits[p].kind != "message.added", p)):
            hit, text = hits[place], texts[place]
            if any(_is_repeated(hit, text, *other) for other in kept):
                repeated.add(place)
            else:
                kept.append((hit, text))
    return [hit for place, hit in enumerate(hits) if place not in repeated]


def _hit(row: tuple[Any, ...]) -> Hit:
    """The hit of a row, without the holding session and the text."""
    columns = (*row[:9], bool(row[9]), *row[13:])
    return Hit(*columns)


def _is_repeated(hit: Hit, text: str, other: Hit, said: str) -> bool:
    if (hit.kind, hit.attempt) == (other.kind, other.attempt):
        return False  # the same text twice in one attempt is two hits
    # A model's answer with calls begins with the text of the message, and so does a turn with an id.
    has_more = hit.kind.startswith(("action.", "turn.")) and other.kind == "message.added"
    return text == said or (has_more and text.startswith(said))


def terms_of(text: str) -> list[Term]:
    """The terms of a search; none if it has no word."""
    terms = []
    for phrase, star, word in _TERM.findall(text.replace("\0", " ")):
        words, is_beginning = (word.rstrip("*"), word.endswith("*")) if word else (phrase, bool(star))
        # A term without a letter or digit, such as "!!!", is left out: it would match nothing.
        if any(c.isalnum() for c in words):
            terms.append((words, is_beginning))
    return terms[:_WORDS_MAX]
