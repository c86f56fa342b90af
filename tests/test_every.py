"""A test of many cases fails when one of them does, and says which."""

from typing import Any

import pytest

from tests.every import every

SEEN: list[Any] = []


@every("a", [1, 2])
@every("b", "xy")
def test_each_case_is_checked_with_the_fixtures_of_the_test(a: int, b: str, tmp_path: Any) -> None:
    assert tmp_path.is_dir()
    SEEN.append((a, b))
    assert [(1, "x"), (1, "y"), (2, "x"), (2, "y")][: len(SEEN)] == SEEN


def test_the_cases_that_fail_are_named_and_the_others_are_checked_too() -> None:
    tried = []

    @every("case", [1, 2, 3], ids=lambda case: f"number {case}")
    def odd(case: int) -> None:
        tried.append(case)
        assert case % 2
        if case == 3:
            with pytest.raises(ValueError):
                pass

    with pytest.raises(AssertionError) as caught:
        odd()
    assert tried == [1, 2, 3]
    assert "2 of 3" in str(caught.value)
    assert "number 2: " in str(caught.value)
    assert "number 3: Failed" in str(caught.value)


def test_no_case_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        every("case", [])
