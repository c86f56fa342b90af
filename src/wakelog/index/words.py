"""Full-text search: each database uses its own, over the same words.

One tokenizer, SQLite's unicode61, splits the text: case and accents do not matter, and a word is a run of letters and
digits, so `run_sql` and `run-sql` are two words. SQLite's FTS5 calls it itself. For PostgreSQL this file calls it and
sends a finished `tsvector` and `tsquery`; the server's own parser and dictionaries are not used. So the same words
match in both databases. The order is each database's own: bm25 here, ts_rank_cd there. Weighing every match costs time
for each, and words that are in very many texts weigh nothing: then the newest come first.

A tsvector has at most 256 positions of a word, and long words are cut. SQLite's word index keeps no texts: those that
no view shows are in the log only, which halves the size. So in both databases hits are checked once more, by an FTS5
table in memory over the texts themselves, which also makes the snippets. In SQLite words are added by the first search
(word_backlog.py), in PostgreSQL together with the rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from wakelog.index.connection import KEY_MAX, SEQ_BITS, Connection, IndexedText, Keep, Texts, as_key

Term = tuple[str, bool]
"""A phrase, and whether its last word is only a prefix."""

TOKENIZER = ("unicode61", "remove_diacritics", "2")
"""As in schema.sql."""
PLACES_MAX = 256
"""How many positions of a word a tsvector holds."""
PHRASE_MAX = 64
"""How many words of a phrase are sent to the server."""

BROAD = 10_000
"""If more texts than this match, they are not ranked."""

_SNIPPET = "snippet(wl_words, 0, '«', '»', '…', 24)"
_SEQ = (1 << SEQ_BITS) - 1


class LiteWords:
    """The words of one transaction in SQLite."""

    def __init__(self, db: apsw.Connection, *, keeps_all: bool = False) -> None:
        """With `keeps_all` every text is kept, to compare the index with one on a server."""
        self._db = db
        self._keeps_all = keeps_all
        self._has_removed = False

    @property
    def wants_all(self) -> bool:
        return self._keeps_all

    def add(self, texts: Sequence[IndexedText]) -> None:
        kept = [(id_, body) for id_, body, keep in texts if keep or self._keeps_all]
        self._db.executemany("insert into wl_text values (?, ?)", kept)
        self.add_words([(id_, body) for id_, body, keep in texts if keep is Keep.WORDS])

    def add_words(self, texts: Sequence[tuple[int, str]]) -> None:
        self._db.executemany("insert into wl_words (rowid, body) values (?, ?)", texts)

    def remove(self, first: int, last: int) -> None:
        self._db.execute("delete from wl_text where id between ? and ?", (first, last))
        self._db.execute("delete from wl_words where rowid between ? and ?", (first, last))
        self._has_removed = True

    def finish(self) -> None:
        if self._has_removed:
            # Until the segments are merged, removed words are only marked as deleted.
            self._db.execute("insert into wl_words (wl_words) values ('optimize')")
            self._has_removed = False

    def find(
        self, statement: str, terms: Sequence[Term], values: dict[str, Any], limit: int, texts: Texts
    ) -> list[tuple[Any, ...]]:
        matches = "wl_words match :query and wl_words.rowid between :low and :high"
        asked = {**values, "query": _as_fts5(terms), "limit": limit, "broad": BROAD}
        is_broad = self._db.execute(f"select 1 from wl_words where {matches} limit 1 offset :broad", asked).fetchone()
        sql = statement.format(
            found=(
                f"(select t.body from wl_text t where t.id = wl_words.rowid), {'0.0' if is_broad else 'wl_words.rank'}"
            ),
            source="wl_words",
            session=f"wl_words.rowid >> {SEQ_BITS}",
            seq=f"wl_words.rowid & {_SEQ}",
            matches=f"{matches} order by {'wl_words.rowid desc' if is_broad else 'wl_words.rank'}",
        )
        rows: Any = self._db.execute(sql, asked).fetchall()
        return _with_snippets([(*row[:-2], row[-2] or texts(row[11], row[2]), row[-1]) for row in rows], terms)


class SharedWords:
    """The words of one transaction in PostgreSQL. Every text also has its namespace as a word, so that a search of the
    GIN index, which all namespaces share, can be limited to one."""

    def __init__(self, db: Connection, ns: str) -> None:
        self._db = db
        self._mine = _quoted(f" {ns}")  # no word begins with a blank

    wants_all = True

    def add(self, texts: Sequence[IndexedText]) -> None:
        rows = [(id_, body, f"{self._mine} {_as_tsvector(body)}") for id_, body, _ in texts]
        self._db.executemany("insert into wl_text values (?, ?, ?)", rows)

    def add_words(self, texts: Sequence[tuple[int, str]]) -> None:
        raise AssertionError("all texts are added with their rows")

    def remove(self, first: int, last: int) -> None:
        self._db.execute("delete from wl_text where id between ? and ?", (first, last))

    def finish(self) -> None:
        pass

    def find(
        self, statement: str, terms: Sequence[Term], values: dict[str, Any], limit: int, texts: Texts
    ) -> list[tuple[Any, ...]]:
        query = _as_tsquery(terms)
        if not query:
            return []
        matches = (
            "t.words @@ cast(:query as tsquery) and t.words @@ cast(:mine as tsquery) and t.id between :low and :high"
        )
        asked = {**values, "query": query, "mine": self._mine, "limit": limit, "broad": BROAD}
        broad = self._db.execute(f"select 1 from wl_text t where {matches} limit 1 offset :broad", asked).fetchall()
        rank = "0.0" if broad else "-ts_rank_cd(t.words, cast(:query as tsquery))"
        sql = statement.format(
            found=f"t.body, cast({rank} as float8) as rank",
            source="wl_text t",
            session=f"t.id >> {SEQ_BITS}",
            seq=f"t.id & {_SEQ}",
            matches=f"{matches} order by {'t.id desc' if broad else 'rank, t.id'}",
        )
        return _with_snippets(self._db.execute(sql, asked).fetchall(), terms)


def words_of(text: str) -> list[str]:
    """The words of a text, in order."""
    flags = apsw.FTS5_TOKENIZE_DOCUMENT
    words: Any = _tokenizer()(text.encode(), flags, None, include_offsets=False, include_colocated=False)
    return list(words)


@functools.cache
def _tokenizer() -> Callable[..., Any]:
    name, *options = TOKENIZER
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


def _as_fts5(terms: Sequence[Term]) -> str:
    return " ".join(f'"{text}"' + "*" * is_beginning for text, is_beginning in terms)


def _as_tsvector(text: str) -> str:
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words_of(text), 1):
        places.setdefault(as_key(word), []).append(str(place))
    return " ".join(f"{_quoted(word)}:{','.join(where[:PLACES_MAX])}" for word, where in places.items())


def _as_tsquery(terms: Sequence[Term]) -> str:
    """All terms; text without words is ignored, as in FTS5."""
    phrases = []
    for text, is_beginning in terms:
        words = words_of(text)
        keys = [_quoted(as_key(word)) for word in words]
        if words and is_beginning:
            keys[-1] = f"{_quoted(words[-1][:KEY_MAX])}:*"
        if keys:
            phrases.append(f"({' <-> '.join(keys[:PHRASE_MAX])})")
    return " & ".join(phrases)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def _with_snippets(rows: Sequence[tuple[Any, ...]], terms: Sequence[Term]) -> list[tuple[Any, ...]]:
    """Rows that end with a text and a weight, with the snippet in between, without those that do not really match."""
    snippets = _snippets([row[-2] for row in rows], terms)
    return [(*row[:-1], snippets[at], row[-1]) for at, row in enumerate(rows) if at in snippets]


def _snippets(bodies: list[str], terms: Sequence[Term]) -> dict[int, str]:
    """The snippets of the texts that match, by their index."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(f'create virtual table wl_words using fts5 (body, tokenize = "{" ".join(TOKENIZER)}")')
        db.executemany("insert into wl_words (rowid, body) values (?, ?)", list(enumerate(bodies)))
        matching = f"select rowid, {_SNIPPET} from wl_words where wl_words match ?"
        rows: Any = db.execute(matching, (_as_fts5(terms),)).fetchall()
        return dict(rows)
    finally:
        db.close()
