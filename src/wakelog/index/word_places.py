"""Which events may contain a text, for questions that would otherwise search the stored bytes of a whole session.

The words of the index name the events to look at; the caller reads those and decides. So the answer is the same as
without an index, as long as no event is left out. Three things ensure that. Only words are asked for that stand inside
the text between ASCII characters that are no letters and no digits: any tokenizer splits there. Events of which a model
could read more than their words tell are always named (`wl_partly_worded`). And `upto` says where the words end: what
comes after it must be searched.

Nothing is brought up to date for this, and an index on a server is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from wakelog.errors import NotFoundError, WakelogError
from wakelog.index.connection import SEQ_BITS, Connection, Damaged, as_rows
from wakelog.index.index import Index
from wakelog.index.scope import Span, scope_of
from wakelog.model.ids import Seq, SessionId
from wakelog.model.read_texts import READ_FIELDS

PHRASES_MAX = 16

_HELD = "select s.no, s.worded, s.marked from wl_session s where s.no in (select value ->> 0 from json_each(:held))"
_SEQ = (1 << SEQ_BITS) - 1
_READ = ", ".join(f"'{kind}'" for kind in READ_FIELDS)
_NAMED = f"""
select wl_words.rowid & {_SEQ} from wl_words
where wl_words match :words and wl_words.rowid between :low and :high
    and (select e.kind from wl_event e where e.session = :holder and e.seq = wl_words.rowid & {_SEQ}) in ({_READ})
order by wl_words.rowid limit :limit
"""
_PARTLY = """
select p.seq from wl_partly_worded p where p.session = :holder and p.seq between :first and :last
order by p.seq limit :limit
"""
_ASCII = re.compile(r"[\x00-\x7f]+")
_INSIDE = re.compile(r"(?<=[^0-9A-Za-z])[0-9A-Za-z]+(?=[^0-9A-Za-z])")


class WordPlaces(msgspec.Struct, frozen=True):
    """The words that the index has of one session."""

    index: Index
    session: SessionId
    upto: Seq
    """All events up to here had their words when this was made."""
    is_marked: bool
    """Whether an event of FAR_REACHING, or one that is not trusted, may be among them."""

    def named(self, texts: Iterable[str], upto: Seq, limit: int) -> tuple[list[tuple[Seq, str]], Seq] | None:
        """The events up to `upto` that may contain one of the texts, in order, each with that text, or with none if it
        may contain any; for each text `limit` at most. Also the event up to which they were looked for. None if the
        words of a text cannot tell."""
        asked = {text: words_inside(text) for text in texts}
        if not all(asked.values()):
            return None
        results: list[tuple[Seq, str]] = []
        try:
            with self.index.reading() as db:
                spans, worded, _ = _read(db, self.session)
                upto = min(upto, worded)
                for holder, first, last in spans:
                    span = (holder, first, min(last, upto))
                    results += [(seq, "") for seq in _partly_worded(db, *span, limit)]
                    results += [
                        (seq, text) for text, words in asked.items() for seq in _worded(db, words, *span, limit)
                    ]
        except (Damaged, WakelogError):  # the answer does not depend on an index
            return None
        return sorted(results), upto


def find_word_places(index: Index, session: SessionId) -> WordPlaces | None:
    """The words of a session in a local index; None if it has none."""
    if type(index) is not Index:
        return None
    try:
        index.check_same_log()
        with index.reading() as db:
            _, upto, is_marked = _read(db, session)
    except (Damaged, NotFoundError):
        return None
    return WordPlaces(index, session, upto, is_marked) if upto else None


def _read(db: Connection, session: SessionId) -> tuple[tuple[Span, ...], Seq, bool]:
    """The spans of a session's history, up to where all their words are there, and whether any is marked."""
    spans = scope_of(db, session, rewound=True).history
    rows: Any = db.execute(_HELD, {"held": as_rows((holder,) for holder, _, _ in spans)}).fetchall()
    held = {no: (worded, marked) for no, worded, marked in rows}
    upto = 0
    for holder, _, last in spans:
        worded = held[holder][0]
        upto = min(worded, last)
        if worded < last:
            break
    return spans, upto, any(marked for _, marked in held.values())


def words_inside(text: str) -> str:
    """The words that every text has which contains this one, as phrases for FTS5."""
    phrases = (" ".join(_INSIDE.findall(run)) for run in _ASCII.findall(text))
    return " ".join([f'"{phrase}"' for phrase in phrases if phrase][:PHRASES_MAX])


def _partly_worded(db: Connection, holder: int, first: Seq, last: Seq, limit: int) -> list[Seq]:
    values = {"holder": holder, "first": first, "last": last, "limit": limit}
    return [seq for (seq,) in db.execute(_PARTLY, values).fetchall()]


def _worded(db: Connection, words: str, holder: int, first: Seq, last: Seq, limit: int) -> list[Seq]:
    base = holder << SEQ_BITS
    values = {"words": words, "holder": holder, "low": base | first, "high": base | last, "limit": limit}
    return [seq for (seq,) in db.execute(_NAMED, values).fetchall()]
