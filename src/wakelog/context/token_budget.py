"""Fits the parts of a text into a budget of tokens. What is cut is counted, never dropped silently.

Parts come in order of usefulness. First each gets one line, then each its share by weight, so that ten thousand
decisions do not crowd out two facts. What is left goes to the parts in order. Lines are made lazily: those that do not
fit cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from wakelog.context.token_count import Count
from wakelog.model.events import Trust
from wakelog.model.ids import Seq


class SectionLine(msgspec.Struct, frozen=True):
    """One entry of a part, as Markdown; `seq` is the event behind it, or 0."""

    text: str
    seq: Seq = 0
    trust: Trust = "trusted"
    source: str = ""


class Section(msgspec.Struct, frozen=True):
    """The lines of a part that are shown; `rest` is the command that shows all of it."""

    name: str
    title: str
    total: int
    lines: tuple[SectionLine, ...]
    rest: str


class Part:
    """A part with its lines, the most useful first."""

    def __init__(
        self,
        name: str,
        title: str,
        total: int,
        lines: Iterator[SectionLine],
        rest: str,
        *,
        weight: int = 1,
        first: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.total = total
        self.rest = rest
        self.weight = weight
        self.comes_first = first
        """True if it may take half of the room before the others get a line."""
        self.taken: list[SectionLine] = []
        self.used = 0
        self._lines = lines
        self._next: SectionLine | None = next(lines, None)

    def take(self, room: int, count: Count, *, most: int | None = None) -> int:
        """Takes lines while they fit, including the line that counts the rest; returns the tokens used."""
        before = self.used
        while self._next is not None and (most is None or len(self.taken) < most):
            own = self.used - self._closing(count) if self.taken else count(f"\n\n## {self.title}") + 1
            self.taken.append(self._next)
            used = own + count(self._next.text) + 1 + self._closing(count)
            if used - before > room:
                self.taken.pop()
                break
            self.used, self._next = used, next(self._lines, None)
        return self.used - before

    def give_back(self) -> None:
        """Gives back the last line."""
        self.taken.pop()
        self._next = None

    def _closing(self, count: Count) -> int:
        missing = self.total - len(self.taken)
        return count(self._counted(missing)) + 1 if missing else 0

    def _counted(self, missing: int) -> str:
        return f"- +{missing:,} more: {self.rest}"

    def section(self) -> Section:
        return Section(self.name, self.title, self.total, tuple(self.taken), self.rest)

    def text(self) -> str:
        """The part as Markdown, with the count of lines not shown; empty if none is shown."""
        if not self.taken:
            return ""
        missing = self.total - len(self.taken)
        lines = [line.text for line in self.taken] + ([self._counted(missing)] if missing > 0 else [])
        return "\n".join([f"\n\n## {self.title}", *lines])


class Fitted(msgspec.Struct, frozen=True):
    text: str
    sections: tuple[Section, ...]
    tokens: int


def fit(head: str, parts: Sequence[Part], budget: int, count: Count, *, rest: str) -> Fitted:
    """The head, and as much of the parts as fits. `rest` is the command that shows everything. The result exceeds the
    budget only if the head and the line that counts all parts do."""
    parts = [p for p in parts if p.total]
    room = budget - count(head) - 1
    for part in parts:
        if part.comes_first:
            room -= part.take(max(0, room) // 2, count)
    for part in parts:
        room -= part.take(max(0, room), count, most=1)
    weights = sum(p.weight for p in parts)
    for part in parts:
        room -= part.take(max(0, room) * part.weight // weights, count)
        weights -= part.weight
    for part in parts:
        room -= part.take(max(0, room), count)
    while True:
        text = head + "".join(p.text() for p in parts) + _not_shown([p for p in parts if not p.taken], rest)
        tokens = count(text)
        loser = _loser(parts)
        if tokens <= budget or loser is None:
            return Fitted(text, tuple(p.section() for p in parts), tokens)
        # The tokens of the pieces do not add up to those of the whole: give back lines until the whole fits.
        loser.give_back()


def _loser(parts: Sequence[Part]) -> Part | None:
    """The part that gives back a line: the one with the most, or the least useful if all have one."""
    fullest = max(parts, key=lambda p: len(p.taken) * (not p.comes_first), default=None)
    if fullest is not None and len(fullest.taken) > 1:
        return fullest
    return next((p for p in reversed(parts) if p.taken), None)


def _not_shown(parts: Sequence[Part], rest: str) -> str:
    if not parts:
        return ""
    return "\n\nNot shown: " + ", ".join(f"{p.title.lower()} ({p.total:,})" for p in parts) + f": {rest}"
