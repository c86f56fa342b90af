"""Where chance comes from: the same every time in `make test` and `make test-all`, fresh in `make test-fuzz`.

Hypothesis takes its seed from the profile (tests/conftest.py). Tests that roll their own dice take `SEED` from here and
are marked `seeded`. What a fresh seed finds becomes an explicit example, or a seed of its own in a parametrised test.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

FIXED = 20_260_101
SEED = int(os.environ.get("WAKELOG_TEST_SEED") or FIXED)
EXAMPLES = 60
"""How many examples a property gets that asks for no other number."""


def examples(number: int) -> int:
    """So many examples in a whole run, a quarter in a quick one, and as many times more as the profile has when
    searching."""
    return max(1, number * settings().max_examples // EXAMPLES)


def some(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """The first cases for every run, and the others, which are more of the same, for `make test-all`."""
    listed = list(cases)
    return [*listed[:quick], *map(_slow, listed[quick:])]


def _slow(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
