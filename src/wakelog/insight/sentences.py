"""Splits a text into sentences that can be quoted, and decides whether it is English.

Fenced code blocks and tables are skipped. A line break ends a sentence. A full stop inside a name (`fields.py`) or
after an abbreviation does not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final

import msgspec

TEXT_MAX: Final = 30_000
SENTENCE_MAX: Final = 1200
TITLE_MAX: Final = 60
"""Limits in characters that normal text does not reach. Patterns are not applied to more than this."""

_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINE: Final = re.compile(r"[^\n]+")
_ITEM: Final = re.compile(r"\s*(?:[-*•+]\s+|\d{1,2}[.)]\s+|#{1,6}\s+|>\s*)*")
_BULLET: Final = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_BOLD: Final = re.compile(r"\*\*[^*]+\*\*:?")
_LABEL: Final = re.compile(r"(?:THOUGHT|DISCUSSION|Thought|Plan|PLAN):\s*")
_END: Final = re.compile(r"""[.!?:][)"'’”*_`]*(?=\s+|$)|[.!?](?=[A-Z][a-z]|I['’ ])""")
_SHORT: Final = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)|\b[A-Z]|(?:^|[\s*])\d{1,2})\.$", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_CODE: Final = re.compile(r"`[^`\n]*`|https?://\S+|\S*[/\\_]\S*")


def word_set(text: str) -> frozenset[str]:
    """A set of words from one text."""
    return frozenset(text.split())


_ENGLISH: Final = word_set(
    "the a an is are was were it to of and in that this for on with as be by or not you i we let me my can will "
    "if from at have has do does did now so but should would could please what how why when which where there "
    "they them these your our all just into because since instead than then rather only also no more some any its "
    "it's i'll i'm i've we'll let's don't doesn't isn't that's there's here need needs use using used make first "
    "after before without each"
)
_OTHER: Final = word_set(
    "der die das und ist nicht ein eine ich wir den dem mit auf für von zu wird auch es im le la les et est pas une je "
    "nous des du que pour dans sur el los las y en por con una se lo al del il che di non per sono un o os da em não "
    "uma com para de het een niet van dat ik op och att som är inte jest nie na z do w to ve bir bu için"
) - {"do", "to"}
"""Small words of other languages with the same alphabet."""
_BRACKETS: Final = re.compile(r"\[[^\]\n]*\]|^\s*[|#].*$", re.MULTILINE)
_ENOUGH_WORDS: Final = 10
_MANY_WORDS: Final = 40
_SHARE: Final = 0.12
_TERSE_SHARE: Final = 0.04


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence, with its position in the text."""

    start: int
    end: int
    text: str
    is_heading: bool = False
    title: str = ""
    """The heading it stands under."""
    is_item: bool = False
    """Whether it starts an item of a list."""


@functools.lru_cache(maxsize=64)
def sentences_of(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text in order, without code, tables and overlong pieces. Only the start of a very long text is
    read."""
    return tuple(s for s in _sentences(text[:TEXT_MAX]) if len(s.text) <= SENTENCE_MAX)


def _sentences(text: str) -> Iterator[Sentence]:
    prose = _FENCE.sub(lambda m: _blank(m[0]), text)
    title = ""
    for line in _LINE.finditer(prose):
        if line[0].lstrip().startswith("|"):
            continue
        start = line.start() + _ITEM.match(line[0]).end()  # type: ignore[union-attr]  # it matches the empty text too
        is_heading = line[0].lstrip().startswith("#")
        if is_heading or _is_title(prose, line.start(), start, line.end()):
            title = prose[start : line.end()].strip(" *:#")
        is_item = bool(_BULLET.match(line[0]))
        label = _LABEL.match(prose, start, line.end())
        start = label.end() if label else start
        for end in _ends(prose, start, line.end()):
            piece = text[start:end]
            lead = len(piece) - len(piece.lstrip())
            body = piece.strip()
            if body:
                yield Sentence(start + lead, start + lead + len(body), body, is_heading, title, is_item)
                is_item = False
            start = end


def _is_title(prose: str, first: int, start: int, end: int) -> bool:
    """Whether a line is a heading without its mark: short, without a full stop, between empty lines; or bold."""
    words = prose[start:end].strip()
    if len(words) > TITLE_MAX or not words or words[-1] in ".!?,;":
        return False
    if _BOLD.fullmatch(words):
        return True
    is_apart = prose[max(first - 2, 0) : first].strip() == "" and prose[end : end + 2].strip() == ""
    return is_apart and first > 0 and end < len(prose) and words[0].isupper() and words[-1] != ":"


def _ends(prose: str, start: int, stop: int) -> Iterator[int]:
    for mark in _END.finditer(prose, start, stop):
        if mark[0][0] == ":" and mark.end() < stop and not re.match(r"\s+[A-Z`*]", prose[mark.end() : mark.end() + 3]):
            continue
        if mark[0][0] == ":" and mark.end() < stop and mark.end() - start < 25:
            continue  # a short label: what it introduces belongs to it
        if prose.count("`", start, mark.start()) % 2 and "`" in prose[mark.start() : stop]:
            continue  # inside code, such as `models.Index`
        if _SHORT.search(prose[max(start, mark.end() - 8) : mark.end()]):
            continue
        yield mark.end()
    yield stop


def _blank(code: str) -> str:
    return re.sub(r"[^\n]", " ", code)


@functools.lru_cache(maxsize=256)
def is_english(text: str) -> bool:
    """Whether a text is English, judged by its small words. A text that is too short to judge counts as English, and so
    does a list of names."""
    prose = _BRACKETS.sub(" ", _CODE.sub(" ", _FENCE.sub(" ", text[:5000])))
    words = [w.lower() for w in _WORD.findall(prose)]
    letters = [c for c in prose if c.isalpha()]
    if letters and sum(c.isascii() for c in letters) < 0.8 * len(letters):
        return False
    if len(words) < _ENOUGH_WORDS:
        return True
    english, other = (sum(w in known for w in words) for known in (_ENGLISH, _OTHER))
    is_accented = sum(not w.replace("’", "'").isascii() for w in words) > _SHARE * len(words)
    if english >= (2 * _SHARE if is_accented else _SHARE) * len(words):
        return True
    # Notes in keywords have few small words, but these are from one language.
    is_terse = other == 0 and english >= _TERSE_SHARE * len(words)
    return not is_accented and (is_terse or (other <= english and len(words) < _MANY_WORDS))


_SMALL: Final = word_set(
    "the and that this with for from have has not are was were will would should could can let now need want also "
    "just but into our your its they them then than there here what when which use using used make add added fix get "
    "all any one two been being does did don isn it's i'll i'm we're let's please you may "
    "instead because since keep keeping rather so as well still only like first next"
)
_CONTENT: Final = re.compile(r"[A-Za-z_][\w.]{2,}")


def content_words(text: str) -> frozenset[str]:
    """The words of a text without small words, in lower case."""
    return frozenset(w.lower().strip(".") for w in _CONTENT.findall(text[:TEXT_MAX])) - _SMALL
