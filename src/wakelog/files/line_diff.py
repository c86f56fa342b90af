"""Compares texts line by line: counts added and removed lines, and makes unified diffs.

Finding the smallest diff takes quadratic time. Equal lines at both ends are cut off first. If the rest is still too
long, lines are counted regardless of order, and the diff shows the whole rest as replaced: correct, but longer than
needed.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from typing import Any

LINES_MAX = 3000
"""Differing parts up to this many lines on each side are compared in full."""
CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"


def split(text: str) -> list[str]:
    """The lines of a text as git counts them: only a line feed ends one. The last may have none."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def counts(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = _Lines(split(before), split(after))
    if lines.is_long:
        were, are = Counter(lines.old), Counter(lines.new)
        return sum((are - were).values()), sum((were - are).values())
    changes = [code for code in lines.get_opcodes() if code[0] != "equal"]
    return sum(j2 - j1 for *_, j1, j2 in changes), sum(i2 - i1 for _, i1, i2, *_ in changes)


def unified_hunks(before: str, after: str) -> Iterator[str]:
    """The hunks of a unified diff, without the two lines that name the files."""
    a, b = split(before), split(after)
    for group in _Lines(a, b).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from _signed(" ", a[i1:i2])
            else:
                yield from _signed("-", a[i1:i2])
                yield from _signed("+", b[j1:j2])


class _Lines(difflib.SequenceMatcher[str]):
    """Two lists of lines, of which only the part between the equal ends is compared."""

    def __init__(self, a: list[str], b: list[str]) -> None:
        self._start, self._end = _same_ends(a, b)
        self._sizes = len(a), len(b)
        self.old, self.new = a[self._start : len(a) - self._end], b[self._start : len(b) - self._end]
        self.is_long = len(self.old) > LINES_MAX or len(self.new) > LINES_MAX
        super().__init__(None, self.old, self.new, autojunk=False)

    def get_opcodes(self) -> list[Any]:
        """The operations that turn the first list into the second, with positions in the whole lists."""
        start, end, (size_a, size_b) = self._start, self._end, self._sizes
        codes: list[Any] = [("equal", 0, start, 0, start)] if start else []
        if self.is_long:
            codes.append(("replace", start, size_a - end, start, size_b - end))
        else:
            codes += [(tag, *(place + start for place in places)) for tag, *places in super().get_opcodes()]
        return [*codes, ("equal", size_a - end, size_a, size_b - end, size_b)] if end else codes


def _signed(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_NEWLINE


def _span(start: int, end: int) -> str:
    size = end - start
    return f"{start + 1}" if size == 1 else f"{start + (size > 0)},{size}"


def _same_ends(a: list[str], b: list[str]) -> tuple[int, int]:
    """How many lines are the same at the start and at the end."""
    most = min(len(a), len(b))
    start = 0
    while start < most and a[start] == b[start]:
        start += 1
    end = 0
    while end < most - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return start, end
