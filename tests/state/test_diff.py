"""The difference of two documents leads from one to the other, whoever applies it."""

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.state.diff import diff, diff_lists
from wakelog.state.patch import equal, resolve
from wakelog.testing.strategies import objects, values


@given(a=values, b=values)
def test_applying_the_difference_gives_the_other(a: Any, b: Any) -> None:
    before = deepcopy((a, b))
    delta = diff(a, b)
    assert equal(resolve(a, delta)[0], b)
    assert equal([a, b], list(before))


@given(a=objects, b=objects)
def test_another_library_applies_it_to_the_same_effect(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert equal(jsonpatch.apply_patch(a, diff(a, b)), b)


@given(st.lists(st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2), max_size=7), st.data())
def test_lists_that_share_a_lot_come_out_right(a: list[Any], data: st.DataObject) -> None:
    b = deepcopy(a)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(b)))
        b[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.integers(0, 2), max_size=2))
    delta = diff(a, b)
    assert equal(resolve(a, delta)[0], b)
    assert equal(jsonpatch.apply_patch(a, delta), b)


@given(st.lists(values, max_size=3), st.lists(values, max_size=4), st.lists(values, max_size=4))
def test_the_ends_of_two_lists_are_compared_as_the_whole_lists_are(head: list[Any], a: list[Any], b: list[Any]) -> None:
    assert equal(resolve({"l": [*head, *a]}, diff_lists(a, b, "/l", len(head)))[0], {"l": [*head, *b]})


@given(a=values)
def test_equal_values_have_no_difference(a: Any) -> None:
    assert diff(a, deepcopy(a)) == []


@pytest.mark.parametrize(("a", "b"), [(1, True), (0, False), (1, 1.0), (None, 0), ([], {}), ({}, [])])
def test_a_change_of_type_alone_is_a_difference(a: Any, b: Any) -> None:
    assert diff({"k": a}, {"k": b}) == [{"op": "replace", "path": "/k", "value": b}]


def test_the_difference_is_told_where_it_is() -> None:
    a = {"keep": {"x": 1, "l": [1, 2, 3, 4]}, "gone": 1}
    b = {"keep": {"x": 2, "l": [1, 9, 4]}, "new/": None}
    assert diff(a, b, "/data") == [
        {"op": "remove", "path": "/data/gone"},
        {"op": "replace", "path": "/data/keep/x", "value": 2},
        {"op": "replace", "path": "/data/keep/l/1", "value": 9},
        {"op": "remove", "path": "/data/keep/l/2"},
        {"op": "add", "path": "/data/new~1", "value": None},
    ]


def test_one_item_put_into_a_long_list_is_one_operation() -> None:
    a = [{"n": i} for i in range(100)]
    b = [*a[:50], {"n": "new"}, *a[50:]]
    assert diff(a, b) == [{"op": "add", "path": "/50", "value": {"n": "new"}}]
    assert diff(b, a) == [{"op": "remove", "path": "/50"}]
