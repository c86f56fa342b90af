"""Texts line by line: how many came and went, and a unified diff.

Finding the fewest changed lines takes time that grows with the square of what differs. What is equal at both ends is
taken off first; where the rest is still too long, the lines are counted as a heap, and the diff shows the whole of
it as replaced. That is true, only longer than it need be.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

LINES_MAX = 3000
"""Differing parts up to this many lines on each side are compared in full."""
CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"

Opcode = tuple[str, int, int, int, int]


def split(text: str) -> list[str]:
    """The lines of a text as git counts them: only a line feed ends one. The last may lack its end."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def counts(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed."""
    a, b = split(before), split(after)
    start, end = _same_ends(a, b)
    old, new = a[start : len(a) - end], b[start : len(b) - end]
    if len(old) > LINES_MAX or len(new) > LINES_MAX:
        were, are = Counter(old), Counter(new)
        return sum((are - were).values()), sum((were - are).values())
    added = removed = 0
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed, added = removed + i2 - i1, added + j2 - j1
    return added, removed


def unified(before: str, after: str, *, context: int = CONTEXT) -> Iterator[str]:
    """The hunks of a unified diff, without the two lines that name the files."""
    a, b = split(before), split(after)
    for group in _groups(_opcodes(a, b), context):
        first, last = group[0], group[-1]
        yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from _signed(" ", a[i1:i2])
            else:
                yield from _signed("-", a[i1:i2])
                yield from _signed("+", b[j1:j2])


def _signed(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_NEWLINE


def _span(start: int, end: int) -> str:
    size = end - start
    return f"{start + 1}" if size == 1 else f"{start + (size > 0)},{size}"


def _same_ends(a: list[str], b: list[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning, and at the end."""
    most = min(len(a), len(b))
    start = 0
    while start < most and a[start] == b[start]:
        start += 1
    end = 0
    while end < most - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return start, end


def _opcodes(a: list[str], b: list[str]) -> list[Opcode]:
    start, end = _same_ends(a, b)
    old, new = a[start : len(a) - end], b[start : len(b) - end]
    codes: list[Opcode] = []
    if start:
        codes.append(("equal", 0, start, 0, start))
    if len(old) > LINES_MAX or len(new) > LINES_MAX:
        codes.append(("replace", start, len(a) - end, start, len(b) - end))
    elif old or new:
        found = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        codes += [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in found]
    if end:
        codes.append(("equal", len(a) - end, len(a), len(b) - end, len(b)))
    return codes


def _groups(codes: list[Opcode], context: int) -> Iterator[list[Opcode]]:
    """Changes that lie near each other, with some equal lines around."""
    group: list[Opcode] = []
    last = len(codes) - 1
    for number, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        if number == 0:
            group = [(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)]
        elif number == last or i2 - i1 > 2 * context:
            yield [*group, (tag, i1, min(i2, i1 + context), j1, min(j2, j1 + context))]
            group = [(tag, max(i1, i2 - context), i2, max(j1, j2 - context), j2)] if number != last else []
        else:
            group.append((tag, i1, i2, j1, j2))
    if any(tag != "equal" for tag, *_ in group):
        yield group
