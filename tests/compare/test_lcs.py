"""The longest common subsequence: as long as in the textbook algorithm, in order, and the same from both sides."""

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.compare import lcs
from wakelog.compare.lcs import common

items = st.lists(st.integers(0, 4), max_size=24)


def length(a: Sequence[int], b: Sequence[int]) -> int:
    """The textbook algorithm."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(before[j + 1], row[j])
    return row[-1]


def check(a: Sequence[int], b: Sequence[int]) -> None:
    pairs = common(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(x[0] < y[0] and x[1] < y[1] for x, y in itertools.pairwise(pairs))
    assert len(pairs) == length(a, b)
    assert common(b, a) == [(j, i) for i, j in pairs]


@given(items, items)
def test_it_is_as_long_as_can_be_and_the_same_from_both_sides(a: list[int], b: list[int]) -> None:
    check(a, b)


@given(items, items, st.integers(1, 40))
def test_halving_gives_as_much(a: list[int], b: list[int], bits: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lcs, "_KEEP_BITS", bits)
        check(a, b)


@given(items)
def test_with_itself_everything_is_common(a: list[int]) -> None:
    assert common(a, a) == [(i, i) for i in range(len(a))]


@pytest.mark.parametrize("kinds", [3, 1000])
def test_ten_thousand_items_are_not_many(kinds: int) -> None:
    dice = random.Random(kinds)
    a = [dice.randrange(kinds) for _ in range(10_000)]
    b = [dice.randrange(kinds) for _ in range(10_000)]
    pairs = common(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert len(pairs) > (6_500 if kinds == 3 else 500)
