"""Long words: the places where a token can be.

A long word is 20 or more of [A-Za-z0-9_-] with a digit or a capital among them. Every token of the table contains one
(patterns.py), and most texts have few or none. So the literals of forty kinds of tokens are searched in a few words,
not in the whole text, and an expression runs only around a word that contains its literal.

The words are found in two passes at memory speed: translate every character to `a` or blank, then find twenty `a`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from wakelog.model.late_value import LateValue
from wakelog.redaction.patterns import Pattern

LONG = 20
BEFORE = 40
"""How many characters before a word are searched for the literals of `where="before"`."""

_RUN = b"a" * LONG
_FLAT = bytes(97 if chr(b) in "-_" or (b < 128 and chr(b).isalnum()) else 32 for b in range(256))
_PLAIN = "abcdefghijklmnopqrstuvwxyz_-"
# Base64 of something big, such as an image. No token is that long, and it contains many words.
_BLOB = re.compile(rb"[A-Za-z0-9+/]{2048,}+")
_JOINTS = (b"+", b"/")
# A match may start before its word, at a URL or a scheme, and continue after it, like a JWT.
_AROUND, _AFTER = 64, 1 << 16
_REST = re.compile(r"""[^\s"'`<>\\]*""")

Place = tuple[int, int]


def find_long_words(text: str, raw: bytes) -> list[Place]:
    """Returns start and end of each long word. `raw` is the text as ASCII, one byte per character."""
    flat = raw.translate(_FLAT)
    at = flat.find(_RUN)
    words = []
    while at >= 0:
        end = flat.find(b" ", at)
        if end < 0:
            end = len(flat)
        if text[at:end].strip(_PLAIN):
            if raw[end : end + 1] in _JOINTS and (blob := _BLOB.match(raw, at)):
                end = blob.end()
            else:
                words.append((at, end))
        at = flat.find(_RUN, end)
    return words


class WordPatterns:
    """Patterns to try around long words."""

    def __init__(self, patterns: Iterable[Pattern], *, before: int = 0) -> None:
        self._before = before
        self._patterns = tuple(patterns)
        self._literals = [(literal, n) for n, pattern in enumerate(self._patterns) for literal in pattern.literals]

    @LateValue
    def _gate(self) -> re.Pattern[str]:
        """One expression for all literals: faster than many searches on short text."""
        literals = {literal for literal, _ in self._literals}
        return re.compile(_any_of(sorted(literals)) if literals else r"(?!)")

    def around(self, text: str, words: list[Place]) -> Iterator[tuple[Pattern, int, int]]:
        """Yields each pattern to try, with the range of text to try it on."""
        before = self._before
        if before:
            places = ["\n" + text[at - before if at > before else 0 : at] for at, _ in words]
        else:
            places = ["\n" + text[at:end] for at, end in words]
        done: dict[int, int] = {}
        for number in self._holders(places):
            place, (at, end) = places[number], words[number]
            for index in sorted({n for literal, n in self._literals if literal in place}):
                # Ranges of neighbouring words overlap; each part is searched once.
                if end > done.get(index, -1):
                    rest = _REST.match(text, end, end + _AFTER)
                    done[index] = stop = rest.end() if rest else end
                    yield self._patterns[index], max(0, at - _AROUND), stop + 1

    def _holders(self, places: list[str]) -> Iterable[int]:
        """Returns the indexes of the places that contain a literal. They are joined and searched once: most have
        none."""
        joined = "".join(places)
        match = self._gate.search(joined)
        if match is None:
            return ()
        if not match[0]:  # a pattern without literals is tried everywhere
            return range(len(places))
        ends = list(accumulate(map(len, places)))
        results: list[int] = []
        while match is not None:
            number = bisect_right(ends, match.start())
            results.append(number)
            match = self._gate.search(joined, ends[number])
        return results


def _any_of(literals: list[str]) -> str:
    """Returns an expression for any of some texts. Common beginnings are shared, so that fewer alternatives are
    tried."""
    if "" in literals:
        return ""
    rests: dict[str, list[str]] = {}
    for literal in literals:
        rests.setdefault(literal[0], []).append(literal[1:])
    parts = [re.escape(first) + _any_of(rest) for first, rest in rests.items()]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
