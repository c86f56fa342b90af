"""Words in a database without a full-text search that gives SQLite's answers.

Which words a text has is SQLite's to say: its tokenizer is called here, so the same words match by construction. A row
of wl_words tells in which of 256 neighbouring events of a session a word stands, and at which places:

    event & 255, words in it, n, place 1 … place n, and so on, each number two bytes

so more events are added by writing on behind. Everything else is arithmetic over these rows: words that must stand
together, beginnings of words (a range of the key), and the rank, which is SQLite's bm25 to the last digit. The snippets
of what is shown are made by SQLite too, from those few texts.

A search reads the postings of its words from all of the namespace, because the rank depends on how rare each is. The
most common words cost the most: some 0.1 s where a word stands in 100,000 events.
"""

from __future__ import annotations

import array
import functools
import heapq
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import apsw

from wakelog.index.connection import Connection, as_key, as_rows
from wakelog.index.fts import SNIPPET, TOKENIZER
from wakelog.index.rows import SEQ_BITS

BLOCK_BITS = 8

_K1, _B = 1.2, 0.75
_TERM = re.compile(r'"([^"]*)"(\*?)')
_ADD = (
    "insert into wl_words values (?, ?, ?) on conflict (word, block) do update set"
    " postings = wl_words.postings || excluded.postings"
)
_DROP = (
    "delete from wl_words where word in (select value ->> 0 from json_each(:words)) and block between :first and :last"
)
_GROW = (
    "insert into wl_size values (?, ?, ?) on conflict (one) do update set"
    " texts = wl_size.texts + excluded.texts, words = wl_size.words + excluded.words"
)
_SIZE = "select z.texts, z.words from wl_size z"
_TEXTS = "select t.body from wl_text t where t.id between ? and ?"
_WORD = "select w.block, w.postings from wl_words w where w.word = ?"
_BEGINNING = "select w.block, w.postings from wl_words w where w.word >= ? and w.word < ?"
_PARTS = {
    "found": "(select t.body from wl_text t where t.id = w.id), w.place",
    "source": """(select cast(value ->> 0 as bigint) as id, cast(value ->> 1 as bigint) as no,
        cast(value ->> 2 as bigint) as seq, cast(value ->> 3 as bigint) as place from json_each(:ranked)) w""",
    "session": "w.no",
    "seq": "w.seq",
}
_IN_ORDER = " order by w.place limit :limit"

Counts = dict[int, tuple[int, int]]
"""Text → how many words it has, and how often what is looked for stands in it."""
Places = dict[int, tuple[int, Sequence[int]]]
"""Text → how many words it has, and at which places the one looked for stands."""


@functools.cache
def _tokenizer() -> Callable[..., Any]:
    name, *options = TOKENIZER
    return apsw.Connection(":memory:").fts5_tokenizer(name, options)


def words_of(text: str, flags: int = apsw.FTS5_TOKENIZE_DOCUMENT) -> list[str]:
    """The words of a text, in order, as SQLite tells them."""
    words = _tokenizer()(text.encode(), flags, None, include_offsets=False, include_colocated=False)
    return list(map(as_key, words))


class Postings:
    """The words of one namespace, in one transaction."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def add(self, texts: Sequence[tuple[int, str]]) -> None:
        blocks: dict[tuple[str, int], array.array[int]] = {}
        total = 0
        for id_, body in texts:
            words = words_of(body)
            total += len(words)
            places: dict[str, list[int]] = {}
            for at, word in enumerate(words):
                places.setdefault(word, []).append(at)
            for word, stands in places.items():
                block = blocks.setdefault((word, id_ >> BLOCK_BITS), array.array("H"))
                block.extend((id_ & (1 << BLOCK_BITS) - 1, len(words), len(stands), *stands))
        if texts:
            self._db.executemany(_ADD, [(*key, _packed(blocks[key])) for key in sorted(blocks)])
            self._db.execute(_GROW, (1, len(texts), total))

    def remove(self, first: int, last: int) -> None:
        bodies: Any = self._db.execute(_TEXTS, (first, last)).fetchall()
        if bodies:
            said = [words_of(body) for (body,) in bodies]
            words = as_rows((word,) for word in sorted({word for words in said for word in words}))
            self._db.execute(_DROP, {"words": words, "first": first >> BLOCK_BITS, "last": last >> BLOCK_BITS})
            self._db.execute(_GROW, (1, -len(bodies), -sum(map(len, said))))

    def finish(self) -> None:
        pass

    def find(self, statement: str, query: str, values: dict[str, Any], limit: int) -> list[tuple[Any, ...]]:
        matching = self.ranked(query, values["low"], values["high"])
        mask, size, done = (1 << SEQ_BITS) - 1, 2 * limit + 50, 0
        rows: list[Any] = []
        # What matches best may be of another kind or time: then more of what matches is looked at.
        while done < len(matching) and len(rows) < limit:
            best = heapq.nsmallest(size, matching) if not done else sorted(matching)
            some = best[done:size]
            found = as_rows((id_, id_ >> SEQ_BITS, id_ & mask, place) for place, (_, id_) in enumerate(some))
            asked = {**values, "ranked": found, "limit": limit - len(rows)}
            told: Any = self._db.execute(statement.format(**_PARTS) + _IN_ORDER, asked).fetchall()
            rows += [(*row[:-1], some[row[-1]][0]) for row in told]
            done, size = size, 4 * size
        snippets = _snippets([body for *_, body, _ in rows], query)
        return [(*row[:-2], snippet, row[-1]) for row, snippet in zip(rows, snippets, strict=True)]

    def ranked(self, query: str, low: int, high: int) -> list[tuple[float, int]]:
        """Rank and number of every text that matches, in any order; the smallest rank is the best."""
        found = [self._phrase(text, bool(star)) for text, star in _TERM.findall(query)]
        phrases = [phrase for phrase in found if phrase is not None]
        size: Any = self._db.execute(_SIZE).fetchone()
        if not phrases or size is None or not size[1]:
            return []
        texts, average = size[0], float(size[1]) / float(size[0])
        scored = [(phrase, _Score(_rarity(texts, len(phrase)), average)) for phrase in phrases]
        out = []
        for id_ in _in_all(phrases):
            if low <= id_ <= high:
                rank = 0.0
                for phrase, score in scored:
                    rank += score[phrase[id_]]
                out.append((-1.0 * rank, id_))
        return out

    def _phrase(self, text: str, is_beginning: bool) -> Counts | None:
        """How often some words stand together; None when there is no word in it."""
        flags = apsw.FTS5_TOKENIZE_QUERY | (apsw.FTS5_TOKENIZE_PREFIX if is_beginning else 0)
        words = words_of(text, flags)
        if not words:
            return None
        if len(words) == 1:
            return _counts(self._postings(words[0], is_beginning))
        # The last word is the only one that may be a beginning.
        last = len(words) - 1
        stands = [_places(self._postings(word, is_beginning and at == last)) for at, word in enumerate(words)]
        out: Counts = {}
        for id_ in _in_all(stands):
            starts = set(stands[0][id_][1])
            for at, each in enumerate(stands[1:], 1):
                starts &= {place - at for place in each[id_][1]}
            if starts:
                out[id_] = (stands[0][id_][0], len(starts))
        return out

    def _postings(self, word: str, is_beginning: bool) -> Iterable[tuple[int, array.array[int]]]:
        if is_beginning:
            word = word.partition("\1")[0]  # of a long one the first characters have to do
            rows: Any = self._db.execute(_BEGINNING, (word, _after(word))).fetchall()
        else:
            rows = self._db.execute(_WORD, (word,)).fetchall()
        return ((block << BLOCK_BITS, _unpacked(postings)) for block, postings in rows)


def _in_all(found: Sequence[Mapping[int, Any]]) -> set[int]:
    """The texts that are in every one."""
    rarest = min(found, key=lambda each: len(each))
    return set(rarest).intersection(*found)


class _Score(dict[tuple[int, int], float]):
    """What a phrase adds to the rank of a text, by its length and how often it stands there: the bm25 of FTS5,
    operation by operation."""

    def __init__(self, rarity: float, average: float) -> None:
        self._rarity = rarity
        self._average = average

    def __missing__(self, key: tuple[int, int]) -> float:
        length, often = key
        norm = 1 - _B + _B * length / self._average
        score = self[key] = self._rarity * ((often * (_K1 + 1.0)) / (often + _K1 * norm))
        return score


def _rarity(texts: int, matching: int) -> float:
    idf = math.log((texts - matching + 0.5) / (matching + 0.5))
    return idf if idf > 0 else 1e-6


def _counts(postings: Iterable[tuple[int, array.array[int]]]) -> Counts:
    out: Counts = {}
    for first, numbers in postings:
        at, end = 0, len(numbers)
        while at < end:
            id_, length, count = first | numbers[at], numbers[at + 1], numbers[at + 2]
            at += 3 + count
            # Several words may have the same beginning.
            out[id_] = (length, count + out[id_][1]) if id_ in out else (length, count)
    return out


def _places(postings: Iterable[tuple[int, array.array[int]]]) -> Places:
    out: Places = {}
    for first, numbers in postings:
        at, end = 0, len(numbers)
        while at < end:
            id_, length, count = first | numbers[at], numbers[at + 1], numbers[at + 2]
            places = numbers[at + 3 : at + 3 + count]
            at += 3 + count
            out[id_] = (length, [*out[id_][1], *places] if id_ in out else places)
    return out


def _after(word: str) -> str:
    """The first text that does not begin with `word`, nor comes before what does."""
    code = ord(word[-1]) + 1
    if code > sys.maxunicode:
        return word + chr(sys.maxunicode)
    return word[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)


def _packed(numbers: array.array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(postings: bytes) -> array.array[int]:
    numbers = array.array("H", postings)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _snippets(bodies: list[str], query: str) -> list[str]:
    db = apsw.Connection(":memory:")
    try:
        db.execute(f'create virtual table wl_words using fts5 (body, tokenize = "{" ".join(TOKENIZER)}")')
        db.executemany("insert into wl_words (rowid, body) values (?, ?)", list(enumerate(bodies)))
        rows: Any = db.execute(f"select rowid, {SNIPPET} from wl_words where wl_words match ?", (query,)).fetchall()
        found = dict(rows)
        return [found[place] for place in range(len(bodies))]
    finally:
        db.close()
