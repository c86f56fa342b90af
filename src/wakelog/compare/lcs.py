"""The longest common subsequence of two sequences, exactly, with bit operations.

A row of the usual table is one large integer: bit i is 0 where the length grows from i to i + 1 (Hyyrö's form of the
algorithm of Crochemore and others). Python adds and masks such integers one machine word at a time, so ten thousand
against ten thousand takes a fraction of a second, and nothing is left out. If all rows together are too large to keep,
the problem is halved until they are not (Hirschberg).

Of several equally long answers, the choice does not depend on the order of the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Pairs = list[tuple[int, int]]

_KEEP_BITS = 1 << 29
"""Keep all rows, to walk back through them, if together they take up to 64 MB."""


def common(a: Sequence[Any], b: Sequence[Any]) -> Pairs:
    """As many positions (i, j) with a[i] == b[j] as possible, increasing in both. Items must be hashable and
    sortable."""
    if (len(b), list(b)) < (len(a), list(a)):
        return [(i, j) for j, i in common(b, a)]
    shorter = len(a)
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = _longest(a[head : len(a) - tail], b[head : len(b) - tail])
    pairs = [(i, i) for i in range(head)]
    pairs += [(head + i, head + j) for i, j in middle]
    pairs += [(len(a) - k, len(b) - k) for k in range(tail, 0, -1)]
    return pairs


def _longest(a: Sequence[Any], b: Sequence[Any]) -> Pairs:
    if not a or not b:
        return []
    if len(a) * len(b) <= _KEEP_BITS or len(b) == 1:
        return _walk_back(len(a), _rows(a, b), len(b))
    half = len(b) // 2
    before = _lengths(_rows(a, b[:half], keep=False)[-1], len(a))
    after = _lengths(_rows(a[::-1], b[half:][::-1], keep=False)[-1], len(a))
    cut = max(range(len(a) + 1), key=lambda i: before[i] + after[len(a) - i])
    rest = _longest(a[cut:], b[half:])
    return _longest(a[:cut], b[:half]) + [(cut + i, half + j) for i, j in rest]


def _rows(a: Sequence[Any], b: Sequence[Any], *, keep: bool = True) -> list[int]:
    """The table's rows, one for each item of `b`; without `keep` only the last."""
    places: dict[Any, int] = {}
    for i, item in enumerate(a):
        places[item] = places.get(item, 0) | 1 << i
    full = (1 << len(a)) - 1
    row = full
    rows: list[int] = []
    for item in b:
        grows = row & places.get(item, 0)
        if grows:
            row = ((row + grows) | (row ^ grows)) & full
        if keep:
            rows.append(row)
    return rows if keep else [row]


def _lengths(row: int, size: int) -> list[int]:
    """For each i, the length for the first i items."""
    out, length = [0], 0
    for bit in bin(row | 1 << size)[:2:-1]:
        length += bit == "0"
        out.append(length)
    return out


def _walk_back(i: int, rows: list[int], j: int) -> Pairs:
    pairs: Pairs = []
    while i and j:
        if rows[j - 1] >> (i - 1) & 1:
            i -= 1
        elif j > 1 and not rows[j - 2] >> (i - 1) & 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i, j))
    return pairs[::-1]
