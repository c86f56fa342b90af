"""The few statistics that claims rest on, in plain Python: exact where tables are small.

`wilson` bounds a rate, `cochran_mantel_haenszel` compares two rates within strata, `permuted` does the same for small
strata, and `benjamini_hochberg` says which of many findings to keep.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Z95 = 1.959963984540054

Counts = tuple[int, int, int, int]
"""Of one stratum: with the pattern succeeded and failed, without it succeeded and failed."""


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The bounds of a rate (95 %): (0, 1) when nothing was tried."""
    if trials <= 0:
        return 0.0, 1.0
    rate, z = successes / trials, Z95
    middle = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def common_odds(strata: Sequence[Counts]) -> float:
    """The odds ratio that strata have in common (Mantel–Haenszel); half a case is added where a sum is zero."""
    up = sum(a * d / n for a, b, c, d in strata if (n := a + b + c + d))
    down = sum(b * c / n for a, b, c, d in strata if (n := a + b + c + d))
    if not up or not down:
        up, down = up + 0.5, down + 0.5
    return up / down


def cochran_mantel_haenszel(strata: Sequence[Counts]) -> float:
    """The two-sided probability that a pattern and success have nothing to do with each other in any stratum. A stratum
    in which one of both never varies says nothing, and adds nothing."""
    variance = telling_size(strata)
    excess = sum(a - (a + b) * (a + c) / total for a, b, c, d in strata if (total := a + b + c + d))
    if variance <= 0:
        return 1.0
    # Half a case is taken off, because counts go in whole steps.
    distance = max(0.0, abs(excess) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def permuted(strata: Sequence[Counts], rounds: int = 2000) -> float:
    """As `cochran_mantel_haenszel`, by shuffling outcomes within each stratum: for strata too small for the formula."""
    dice = random.Random(0)
    telling = [s for s in strata if sum(s) > 1 and 0 < s[0] + s[1] < sum(s) and 0 < s[0] + s[2] < sum(s)]
    if not telling:
        return 1.0
    expected = sum((a + b) * (a + c) / (a + b + c + d) for a, b, c, d in telling)
    seen = abs(sum(s[0] for s in telling) - expected)
    worse = 0
    for _ in range(rounds):
        drawn = 0
        for a, b, c, d in telling:
            drawn += _hypergeometric(dice, a + b, a + c, a + b + c + d)
        worse += abs(drawn - expected) >= seen - 1e-9
    return (worse + 1) / (rounds + 1)


def _hypergeometric(dice: random.Random, row: int, column: int, total: int) -> int:
    """How many of `row` cases are among `column` successes, drawn at random."""
    drawn, left = 0, total
    for _ in range(row):
        if dice.random() * left < column:
            drawn += 1
            column -= 1
        left -= 1
    return drawn


def telling_size(strata: Sequence[Counts]) -> float:
    """The variance that the formula rests on: below five it is better to shuffle."""
    out = 0.0
    for a, b, c, d in strata:
        total = a + b + c + d
        row, column = a + b, a + c
        if total >= 2:
            out += row * (total - row) * column * (total - column) / (total * total * (total - 1))
    return out


def benjamini_hochberg(chances: Sequence[float], rate: float = 0.05) -> list[bool]:
    """Which of many findings to keep, so that of those kept at most `rate` are expected to be chance."""
    order = sorted(range(len(chances)), key=lambda i: (chances[i], i))
    last = -1
    for rank, place in enumerate(order, 1):
        if chances[place] <= rate * rank / len(chances):
            last = rank
    kept = [False] * len(chances)
    for place in order[: max(0, last)]:
        kept[place] = True
    return kept


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return 0.0
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def deviation(values: Sequence[float]) -> float:
    """The median of how far values lie from their median, scaled to a standard deviation."""
    middle = median(values)
    return 1.4826 * median([abs(value - middle) for value in values])
