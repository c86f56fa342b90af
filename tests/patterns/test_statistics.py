"""The statistics, compared with values computed elsewhere."""

from __future__ import annotations

from wakelog.patterns.statistics import (
    benjamini_hochberg,
    cochran_mantel_haenszel,
    common_odds,
    deviation,
    median,
    permutation_test,
    wilson,
)

# Berkeley admissions by department: with and without the trait, admitted and rejected.
BERKELEY = [
    (512, 313, 89, 19),
    (353, 207, 17, 8),
    (120, 205, 202, 391),
    (138, 279, 131, 244),
    (53, 138, 94, 299),
    (22, 351, 24, 317),
]


def test_wilson_is_the_textbook_interval() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 0) == (0.0, 1.0)


def test_strata_take_away_what_only_looks_like_an_effect() -> None:
    pooled = (
        sum(s[0] for s in BERKELEY),
        sum(s[1] for s in BERKELEY),
        sum(s[2] for s in BERKELEY),
        sum(s[3] for s in BERKELEY),
    )
    assert cochran_mantel_haenszel([pooled]) < 1e-20
    assert 0.2 < cochran_mantel_haenszel(BERKELEY) < 0.25
    assert round(common_odds(BERKELEY), 2) == 0.90


def test_shuffling_agrees_with_the_formula_where_both_hold() -> None:
    strata = [(6, 2, 3, 5)] * 6
    assert abs(permutation_test(strata, rounds=4000) - cochran_mantel_haenszel(strata)) < 0.01
    assert permutation_test([(1, 0, 0, 0)]) == 1.0


def test_of_many_findings_only_those_beyond_chance_are_kept() -> None:
    assert benjamini_hochberg([0.01, 0.02, 0.03, 0.5], 0.05) == [True, True, True, False]
    assert benjamini_hochberg([0.03, 0.5, 0.6, 0.9], 0.05) == [False] * 4
    assert benjamini_hochberg([]) == []


def test_median_and_deviation_shrug_off_an_outlier() -> None:
    assert median([1, 2, 3, 1000]) == 2.5
    assert round(deviation([1, 2, 3, 4, 1000]), 4) == 1.4826
