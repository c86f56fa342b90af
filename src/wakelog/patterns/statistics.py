"""The few statistics that patterns need, in plain Python.

`wilson` bounds a rate, `cochran_mantel_haenszel` compares two rates within strata, `permutation_test` does the same for
small strata, and `benjamini_hochberg` says which of many findings to keep.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

Z95 = 1.959963984540054

Counts = tuple[int, int, int, int]
"""One stratum: successes and failures with the pattern, successes and failures without it."""


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % bounds of a rate; (0, 1) without trials."""
    if trials <= 0:
        return 0.0, 1.0
    rate, z = successes / trials, Z95
    middle = rate + z * z / (2 * trials)
    spread = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def common_odds(strata: Sequence[Counts]) -> float:
    """The common odds ratio of the strata (Mantel–Haenszel); half a case is added if a sum is zero."""
    up = sum(a * d / n for a, b, c, d in strata if (n := a + b + c + d))
    down = sum(b * c / n for a, b, c, d in strata if (n := a + b + c + d))
    if not up or not down:
        up, down = up + 0.5, down + 0.5
    return up / down


def cochran_mantel_haenszel(strata: Sequence[Counts]) -> float:
    """The two-sided p-value for "pattern and success are independent in every stratum". A stratum in which one of them
    never varies adds nothing."""
    variance = total_variance(strata)
    excess = sum(a - (a + b) * (a + c) / total for a, b, c, d in strata if (total := a + b + c + d))
    if variance <= 0:
        return 1.0
    # Continuity correction: counts are whole numbers.
    distance = max(0.0, abs(excess) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def permutation_test(strata: Sequence[Counts], rounds: int = 2000) -> float:
    """Like `cochran_mantel_haenszel`, by shuffling outcomes within each stratum. For strata too small for the
    formula."""
    dice = random.Random(0)
    varying = [s for s in strata if sum(s) > 1 and 0 < s[0] + s[1] < sum(s) and 0 < s[0] + s[2] < sum(s)]
    if not varying:
        return 1.0
    expected = sum((a + b) * (a + c) / (a + b + c + d) for a, b, c, d in varying)
    observed = abs(sum(s[0] for s in varying) - expected)
    as_extreme = 0
    for _ in range(rounds):
        drawn = sum(_draw_hypergeometric(dice, a + b, a + c, a + b + c + d) for a, b, c, d in varying)
        as_extreme += abs(drawn - expected) >= observed - 1e-9
    return (as_extreme + 1) / (rounds + 1)


def _draw_hypergeometric(dice: random.Random, row: int, column: int, total: int) -> int:
    """How many of `row` cases are among `column` successes, drawn at random."""
    drawn, left = 0, total
    for _ in range(row):
        if dice.random() * left < column:
            drawn += 1
            column -= 1
        left -= 1
    return drawn


def total_variance(strata: Sequence[Counts]) -> float:
    """The variance in the formula. Below about five, use the permutation test."""
    out = 0.0
    for a, b, c, d in strata:
        total = a + b + c + d
        row, column = a + b, a + c
        if total >= 2:
            out += row * (total - row) * column * (total - column) / (total * total * (total - 1))
    return out


def benjamini_hochberg(chances: Sequence[float], rate: float = 0.05) -> list[bool]:
    """Which of many findings to keep, so that at most `rate` of those kept are expected to be false."""
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
    return statistics.median(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """The median absolute deviation, scaled to a standard deviation."""
    middle = median(values)
    return 1.4826 * median([abs(value - middle) for value in values])
