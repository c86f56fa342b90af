"""Finds secrets in text, fast, and replaces them with markers.

Almost no text has a secret, so the speed depends on how fast that is known. Three checks are made:

    name endings       three searches in the lower-case text for endings of names that mean "secret" (assignments.py)
    long words         two passes find words that may be tokens; only those are searched for literals (words.py)
    `@`, `Q~`, `sig=`  URLs with a login or a signature; such short strings are found at memory speed

Measured with CPython 3.11 on 400 different texts of 2 KB, code and prose, on a busy machine with two cores: 14 to 17
µs. One search for a short literal takes 1.7 µs there, so this costs as much as nine searches. Searching for each
literal of the table would take ten times as long, and would not find assignments. JSON full of ids takes up to five
times as long; 200 bytes take 2.5 µs.

The native core, if present, makes the three checks first, at memory speed. A check that found a sign is repeated here,
and only the Python code decides what is a secret.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable

from wakelog.errors import InvalidInputError
from wakelog.native import core
from wakelog.redaction import values
from wakelog.redaction.assignments import NAMES, Stop, find_assigned, find_stops
from wakelog.redaction.patterns import PATTERNS, Pattern
from wakelog.redaction.plausible import MARKER, secret_span
from wakelog.redaction.values import NAMED
from wakelog.redaction.words import BEFORE, WordPatterns, find_long_words

Span = tuple[int, int, str]

_SHORTEST = 12  # pwd=12345678
_ROUNDS = 16
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PLACES = ("word", "before", "text")
# What the native scanner found: an ending of a name, a literal near a long word, a literal anywhere.
_STOP, _LONG_WORD, _ALL_SIGNS = 1, 2, 7
_MARKERS = re.compile(re.escape(MARKER) + r"[a-z0-9\-]+\]")


class Redactor:
    """Finds secrets with a set of patterns. Immutable: `without`, `only` and `adding` return a changed copy."""

    __slots__ = ("_assigned", "_keyword", "_rank", "_text", "_word", "names", "patterns", "scanner")

    def __init__(self, patterns: Iterable[Pattern] = PATTERNS, *, names: Iterable[str] | None = None) -> None:
        """`names` are the patterns in use; by default, all."""
        self.patterns = tuple(patterns)
        known = tuple(dict.fromkeys([*(p.name for p in self.patterns), *NAMES, NAMED]))
        wanted = set(known if names is None else names)
        _check(self.patterns, wanted, known)
        self.names: tuple[str, ...] = tuple(name for name in known if name in wanted)
        self._rank = {name: rank for rank, name in enumerate(known)}
        used = [p for p in self.patterns if p.name in wanted]
        self._text = [
            (_rarest(literal), literal, p) for p in used if p.where == "text" for literal in p.literals or ("",)
        ]
        self._word = (
            WordPatterns([p for p in used if p.where == "word"]),
            WordPatterns([p for p in used if p.where == "before"], before=BEFORE),
        )
        self._keyword = [p for p in used if p.where == "keyword"]
        self._assigned = wanted.intersection(NAMES)
        self.scanner = None if core is None else core.Scanner(*(_literals(used, w) for w in _PLACES), BEFORE)

    def without(self, *names: str) -> Redactor:
        _check((), set(names), self.names)
        return Redactor(self.patterns, names=[name for name in self.names if name not in names])

    def only(self, *names: str) -> Redactor:
        return Redactor(self.patterns, names=names)

    def adding(self, *patterns: Pattern) -> Redactor:
        """Adds your own patterns. They come first: if a built-in pattern matches the same text, yours gives the
        name."""
        return Redactor((*patterns, *self.patterns), names=[*(p.name for p in patterns), *self.names])

    def redact_text(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Returns `text` with each secret replaced by its marker, and the markers' names in order; the same object if
        there is none."""
        spans = self.find(text)
        if not spans:
            return text, ()
        results: list[tuple[int, str]] = []
        # A secret right after another may only be found when the first one is replaced, so search again.
        for _ in range(_ROUNDS):
            text, results = _replace(text, spans, results)
            spans = self.find(text)
            if not spans:
                break
        return text, tuple(name for _, name in results)

    redact_event = values.redact_event
    are_clean = values.are_clean

    def find(self, text: str) -> list[Span]:
        """Returns start, end and name of each secret in `text`, in order and without overlaps."""
        if len(text) < _SHORTEST:
            return []
        signs = self._signs(text)
        if not signs:
            return []
        raw = text.encode("ascii", "replace")  # one byte per character, so that positions are the same
        spans = self._look(text, raw, find_stops(raw.lower()) if signs & _STOP else [], signs)
        if spans and MARKER in text:
            markers = [(*match.span(), "") for match in _MARKERS.finditer(text)]
            spans = [span for span in spans if not _overlaps(markers, span)]
        return spans

    def suspects(self, text: str) -> bool:
        """Whether `find` may find something: also true if only a name suggests a secret."""
        signs = self._signs(text)
        if not signs:
            return False
        raw = text.encode("ascii", "replace")
        stops = find_stops(raw.lower()) if signs & _STOP else []
        return bool(stops) or bool(self._look(text, raw, stops, signs))

    def _signs(self, text: str) -> int:
        """Returns which checks may find something: all, if there is no native scanner or the text has a lone
        surrogate."""
        if self.scanner is None:
            return _ALL_SIGNS
        try:
            return self.scanner.look(text)  # type: ignore[no-any-return]
        except UnicodeEncodeError:
            return _ALL_SIGNS

    def _look(self, text: str, raw: bytes, stops: list[Stop], signs: int) -> list[Span]:
        spans: list[Span] = []
        if stops and not all(stop.separator for stop in stops):
            for pattern in self._keyword:
                _find(pattern, text, 0, len(text), spans)
        words = find_long_words(text, raw) if signs & _LONG_WORD else []
        if words:
            for patterns in self._word:
                for pattern, start, end in patterns.around(text, words):
                    _find(pattern, text, start, end, spans)
        for sign, literal, pattern in self._text:
            # A single character is found at memory speed, and most texts do not have it.
            if sign in text and literal in text:
                _find(pattern, text, 0, len(text), spans)
        if spans:
            spans = self._merge(spans)
        if not stops or not self._assigned:
            return spans
        # A name does not say where its value ends, so a pattern that matches most of the value wins.
        assigned = [span for span in find_assigned(text, stops) if span[2] in self._assigned]
        assigned = [span for span in assigned if 2 * _overlaps(spans, span) <= span[1] - span[0]]
        return self._merge([*spans, *assigned]) if assigned else spans

    def _merge(self, spans: list[Span]) -> list[Span]:
        """Sorts spans and merges overlapping ones. The pattern that comes first in the table gives the name."""
        merged: list[Span] = []
        for start, end, name in sorted(spans):
            if merged and start < merged[-1][1]:
                first, last, other = merged[-1]
                merged[-1] = (first, max(last, end), min(name, other, key=self._rank.__getitem__))
            else:
                merged.append((start, end, name))
        return merged


def _rarest(literal: str) -> str:
    """Returns the rarest character of a literal: one that is not a letter or digit, or else the literal."""
    return next((sign for sign in literal if not sign.isalnum()), literal)


def _literals(patterns: Iterable[Pattern], where: str) -> list[str]:
    """Returns the literals that the scanner searches for. A pattern without literals is tried everywhere."""
    return [literal for p in patterns if p.where == where for literal in p.literals or ("",)]


def _replace(text: str, spans: list[Span], results: list[tuple[int, str]]) -> tuple[str, list[tuple[int, str]]]:
    """Returns the text with markers, and position and name of each marker, including those `results` before."""
    parts, now, at, size = [], [], 0, 0
    earlier = deque(results)
    for start, end, name in [*spans, (len(text), len(text), "")]:
        while earlier and earlier[0][0] < start:
            place, other = earlier.popleft()
            now.append((size + place - at, other))
        marker = f"{MARKER}{name}]" if name else ""
        parts += [text[at:start], marker]
        size += start - at
        if name:
            now.append((size, name))
        size += len(marker)
        at = end
    return "".join(parts), now


def _find(pattern: Pattern, text: str, start: int, end: int, spans: list[Span]) -> None:
    check = pattern.check
    for match in pattern.regex.finditer(text, start, end):
        if check is None or check(match):
            first, last = secret_span(match)
            if first < last:
                spans.append((first - pattern.lead, last, pattern.name))


def _overlaps(known: list[Span], span: Span) -> int:
    """Counts the characters of `span` that are also in `known`, which is sorted and has no overlaps."""
    start, end, _ = span
    at = bisect_right(known, start, key=_end)
    size = 0
    while at < len(known) and known[at][0] < end:
        size += min(known[at][1], end) - max(known[at][0], start)
        at += 1
    return size


def _end(span: Span) -> int:
    return span[1]


def _check(patterns: Iterable[Pattern], wanted: set[str], known: Iterable[str]) -> None:
    for pattern in patterns:
        if not _NAME.fullmatch(pattern.name):
            raise InvalidInputError(
                f"{pattern.name!r} cannot name a pattern: it becomes part of a marker",
                kind="bad-pattern",
                hint="use lower-case letters, digits and hyphens, such as acme-token",
            )
    unknown = sorted(wanted.difference(known))
    if unknown:
        raise InvalidInputError(
            f"no redaction pattern is called {', '.join(map(repr, unknown))}",
            kind="unknown-pattern",
            hint=f"the names are {', '.join(known)}",
        )


DEFAULT = Redactor()
find_secrets, redact_text = DEFAULT.find, DEFAULT.redact_text
redact_event, are_clean = DEFAULT.redact_event, DEFAULT.are_clean
