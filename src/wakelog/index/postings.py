"""Words in a database without a full-text search that gives SQLite's answers.

Which words a text has is SQLite's to say: its tokenizer is called here, so the same words match by construction. A row
of wl_words tells in which of 256 neighbouring events of a session a word stands, and at which places:

    event & 255, words in it, n, place 1 … place n, and so on, each number two bytes

so more events are added by writing on behind. Everything else is arithmetic over these rows: words that must stand
together, beginnings of words (a range of the key), and the rank, which is SQLite's bm25 to the last digit. The snippets
of what is shown are made by SQLite too, from those few texts.

How rare a word is counts in all of the namespace, and is kept beside its postings. Of several words the rarest is read
first, and of the others only where that one stands. So the cost of a search is that of its rarest word, or of all that
has the beginning that was typed.
"""

from __future__ import annotations

import array
import functools
import heapq
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apsw

from wakelog.index.connection import KEY_MAX, Connection, as_key, as_rows
from wakelog.index.fts import SNIPPET, TOKENIZER
from wakelog.index.rows import SEQ_BITS

BLOCK_BITS = 8

_K1, _B = 1.2, 0.75
_TERM = re.compile(r'"([^"]*)"(\*?)')
_ADD = (
    "insert into wl_words values (?, ?, ?, ?) on conflict (word, block) do update set"
    " texts = wl_words.texts + excluded.texts, postings = wl_words.postings || excluded.postings"
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
_BODIES = """
select t.id, t.body from wl_text t where t.id in (select cast(value ->> 0 as bigint) from json_each(:ids))
"""
_OFTEN = """
select w.word, cast(sum(w.texts) as bigint) from wl_words w
where w.word in (select value ->> 0 from json_each(:words)) group by w.word
"""
_WORD = "select w.block, w.postings from wl_words w where w.word = :word and w.block between :first and :last"
_WORD_IN = _WORD + " and w.block in (select cast(value ->> 0 as bigint) from json_each(:blocks))"
_BEGINNING = "select w.block, w.postings from wl_words w where w.word >= ? and w.word < ?"
_PARTS = {
    "found": "(select t.body from wl_text t where t.id = w.id), w.place",
    "source": """(select cast(value ->> 0 as bigint) as id, cast(value ->> 1 as bigint) as no,
        cast(value ->> 2 as bigint) as seq, cast(value ->> 3 as bigint) as place from json_each(:ranked)) w""",
    "session": "w.no",
    "seq": "w.seq",
}
_IN_ORDER = " order by w.place limit :limit"

BLOCKS_MAX = 5000
"""Up to how many blocks are asked for one by one, rather than all that a word has."""

_LAST = (1 << 63) - 1
_Block = tuple[int, "array.array[int]"]
"""The first text of a block, and a word's postings in it."""

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
    words: Any = _tokenizer()(text.encode(), flags, None, include_offsets=False, include_colocated=False)
    return list(words)


class Postings:
    """The words of one namespace, in one transaction."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def add(self, texts: Sequence[tuple[int, str]]) -> None:
        blocks: dict[tuple[str, int], array.array[int]] = {}
        often: dict[tuple[str, int], int] = {}
        total = 0
        for id_, body in texts:
            words = words_of(body)
            total += len(words)
            places: dict[str, list[int]] = {}
            for at, word in enumerate(map(as_key, words)):
                places.setdefault(word, []).append(at)
            for word, stands in places.items():
                key = word, id_ >> BLOCK_BITS
                often[key] = often.get(key, 0) + 1
                block = blocks.setdefault(key, array.array("H"))
                block.extend((id_ & (1 << BLOCK_BITS) - 1, len(words), len(stands), *stands))
        if texts:
            self._db.executemany(_ADD, [(*key, often[key], _packed(blocks[key])) for key in sorted(blocks)])
            self._db.execute(_GROW, (1, len(texts), total))

    def remove(self, first: int, last: int) -> None:
        bodies: Any = self._db.execute(_TEXTS, (first, last)).fetchall()
        if bodies:
            said = [words_of(body) for (body,) in bodies]
            words = as_rows((word,) for word in sorted({as_key(word) for words in said for word in words}))
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
        terms = [
            (words, bool(star)) for text, star in _TERM.findall(query) if (words := _words_asked(text, bool(star)))
        ]
        often = self._often({word for words, star in terms for word in words[: len(words) - star]})
        size: Any = self._db.execute(_SIZE).fetchone()
        if not terms or not all(often.values()) or size is None or not size[1]:
            return []
        # How rare a phrase or a beginning is, only all its postings tell. Of a single word that is known, so just
        # those texts are looked at that can still match, the rarest word's first.
        found: list[Counts] = [{}] * len(terms)
        rest = [at for at, (words, star) in enumerate(terms) if len(words) == 1 and not star]
        matching = [0] * len(terms)
        possible: set[int] | None = None
        for at, (words, star) in enumerate(terms):
            if at not in rest:
                found[at] = self._phrase(words, star, often)
                matching[at] = len(found[at])
                possible = set(found[at]) if possible is None else possible & found[at].keys()
        for at in sorted(rest, key=lambda at: often[terms[at][0][0]]):
            word = terms[at][0][0]
            found[at], matching[at] = _counts(self._postings(word, low, high, possible)), often[word]
            possible = set(found[at]) if possible is None else possible & found[at].keys()
        texts, average = size[0], float(size[1]) / float(size[0])
        scored = [(each, _Score(_rarity(texts, n), average)) for each, n in zip(found, matching, strict=True)]
        out = []
        for id_ in possible or ():
            if low <= id_ <= high:
                rank = 0.0
                for each, score in scored:
                    rank += score[each[id_]]
                out.append((-1.0 * rank, id_))
        return out

    def _often(self, words: set[str]) -> dict[str, int]:
        """In how many texts each word stands."""
        keys = {as_key(word): word for word in words}
        rows: Any = self._db.execute(_OFTEN, {"words": as_rows((key,) for key in sorted(keys))}).fetchall()
        return dict.fromkeys(words, 0) | {keys[key]: count for key, count in rows}

    def _phrase(self, words: list[str], is_beginning: bool, often: dict[str, int]) -> Counts:
        """How often some words stand together, of which the last may be a beginning."""
        last = len(words) - 1
        if not last:
            return _counts(self._beginning(words[0]))
        stands: dict[int, Places] = {}
        possible: set[int] | None = None
        for at in sorted(range(last + 1 - is_beginning), key=lambda at: often[words[at]]):
            stands[at] = _places(self._postings(words[at], 0, _LAST, possible), possible)
            possible = set(stands[at])
        if is_beginning:
            stands[last] = _places(self._beginning(words[last]), possible)
        out: Counts = {}
        for id_ in stands[last if is_beginning else at]:
            length, places = stands[0][id_]
            starts = set(places)
            for at in range(1, last + 1):
                starts &= {place - at for place in stands[at][id_][1]}
            if starts:
                out[id_] = (length, len(starts))
        return out

    def _postings(self, word: str, low: int, high: int, possible: set[int] | None) -> Iterator[_Block]:
        """The postings of a word, at least of the texts that are possible."""
        asked: dict[str, Any] = {"word": as_key(word), "first": low >> BLOCK_BITS, "last": high >> BLOCK_BITS}
        blocks = {id_ >> BLOCK_BITS for id_ in possible or ()}
        if possible is None or len(blocks) > BLOCKS_MAX:
            rows: Any = self._db.execute(_WORD, asked).fetchall()
        else:
            rows = self._db.execute(_WORD_IN, asked | {"blocks": as_rows((block,) for block in blocks)}).fetchall()
        return ((block << BLOCK_BITS, _unpacked(postings)) for block, postings in rows)

    def _beginning(self, word: str) -> Iterator[_Block]:
        """The postings of all words that begin so."""
        first = word[:KEY_MAX]
        rows: Any = self._db.execute(_BEGINNING, (first, _after(first))).fetchall()
        found = ((block << BLOCK_BITS, _unpacked(postings)) for block, postings in rows)
        return found if first == word else self._checked(_counts(found), word)

    def _checked(self, ids: Iterable[int], beginning: str) -> Iterator[_Block]:
        """The postings of a beginning that is longer than keys are, from the texts themselves."""
        rows: Any = self._db.execute(_BODIES, {"ids": as_rows((id_,) for id_ in ids)}).fetchall()
        for id_, body in rows:
            words = words_of(body)
            places = [at for at, word in enumerate(words) if word.startswith(beginning)]
            if places:
                yield id_, array.array("H", (0, len(words), len(places), *places))


def _words_asked(text: str, is_beginning: bool) -> list[str]:
    return words_of(text, apsw.FTS5_TOKENIZE_QUERY | (apsw.FTS5_TOKENIZE_PREFIX if is_beginning else 0))


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


def _counts(postings: Iterable[_Block]) -> Counts:
    out: Counts = {}
    for first, numbers in postings:
        at, end = 0, len(numbers)
        while at < end:
            id_, length, count = first | numbers[at], numbers[at + 1], numbers[at + 2]
            at += 3 + count
            # Several words may have the same beginning.
            out[id_] = (length, count + out[id_][1]) if id_ in out else (length, count)
    return out


def _places(postings: Iterable[_Block], possible: set[int] | None) -> Places:
    out: Places = {}
    for first, numbers in postings:
        at, end = 0, len(numbers)
        while at < end:
            id_, length, count = first | numbers[at], numbers[at + 1], numbers[at + 2]
            if possible is None or id_ in possible:
                places = numbers[at + 3 : at + 3 + count]
                out[id_] = (length, [*out[id_][1], *places] if id_ in out else places)
            at += 3 + count
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
