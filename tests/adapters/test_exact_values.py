"""Values that JSON in a log does not take come back as they were."""

import enum
import math
from collections import OrderedDict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wakelog.adapters.exact_values import from_stored, stored_form, to_stored
from wakelog.model.values import check_value

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
KEYS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["$payload", "$erased", "$redacted", "$exact"]
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)


@given(VALUES)
def test_every_value_comes_back(value) -> None:
    assert from_stored(check_value(to_stored(value))) == value


@given(VALUES | st.floats())
@example({"$exact": ["int", "1"]})
@example([{"a": {"$exact": 1}}])
@example([1.5, 2.0, -0.0, 1e300, float("inf"), 2**53])
def test_a_value_that_is_stored_as_it_is_would_not_be_changed_by_a_closer_look(value) -> None:
    assert repr(stored_form(value, "it")) == repr(check_value(to_stored(value)))
    assert (stored_form(value, "it") is value) == (check_value(to_stored(value)) is value)


def test_nan_comes_back() -> None:
    assert math.isnan(from_stored(to_stored([float("nan")]))[0])


def test_a_value_that_needs_nothing_is_left_as_it_is() -> None:
    value = {"a": [1, 2.5, None, {"b": "c"}]}
    assert to_stored(value) is value


@pytest.mark.parametrize("value", [{"a": [1]}, [{"b": 2**70}]])
def test_what_comes_back_may_be_changed(value) -> None:
    stored = to_stored(value)
    from_stored(stored).clear()
    assert from_stored(stored) == value


class Colour(enum.StrEnum):
    RED = "red"


class Count(int):
    pass


def test_a_class_derived_from_a_json_type_is_written_as_that_type() -> None:
    stored = to_stored({"c": Colour.RED, "n": Count(3), "d": OrderedDict(a=[Colour.RED])})
    assert stored == {"c": "red", "n": 3, "d": {"a": ["red"]}}
    assert check_value(stored) is stored
