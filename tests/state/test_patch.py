"""JSON Patch as RFC 6902 has it: the public test vectors, and another library as a second opinion."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from wakelog.errors import InvalidInputError
from wakelog.state.patch import equal, escape, get, resolve, tokens_of
from wakelog.testing.strategies import keys, objects, values

VECTORS = Path(__file__).parents[1] / "vectors" / "json-patch"
VECTOR_CASES: list[tuple[str, dict[str, Any]]] = [
    (f"{name}-{number}", case)
    for name in ("tests", "spec_tests")
    for number, case in enumerate(json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8")))
    if not case.get("disabled")
]
GOOD_CASES = [(name, case) for name, case in VECTOR_CASES if "error" not in case]


def test_all_enabled_vectors_are_run() -> None:
    assert len(VECTOR_CASES) == 108


@every("vector", VECTOR_CASES, ids=lambda vector: vector[0])
def test_vector(vector: tuple[str, dict[str, Any]]) -> None:
    _, case = vector
    before = deepcopy(case["doc"])
    if "error" in case:
        with pytest.raises(InvalidInputError) as refused:
            resolve(case["doc"], case["patch"])
        assert refused.value.kind == "bad-patch"
        assert equal(case["doc"], before)
        return
    result, delta = resolve(case["doc"], case["patch"])
    if "expected" in case:
        assert equal(result, case["expected"])
    assert equal(case["doc"], before)
    _check_stored_form(before, delta, result)


@every("vector", GOOD_CASES, ids=lambda vector: vector[0])
def test_vector_comes_out_as_with_another_library(vector: tuple[str, dict[str, Any]]) -> None:
    _, case = vector
    result, _ = resolve(case["doc"], case["patch"])
    try:
        other = jsonpatch.apply_patch(case["doc"], case["patch"])
    except jsonpatch.JsonPatchException:
        return  # the other library does not follow the standard here
    assert equal(result, other)


def _check_stored_form(doc: Any, delta: list[dict[str, Any]], result: Any) -> None:
    """A stored delta is plain, resolved, and does the same in anybody's hands."""
    assert all(op["op"] in ("add", "remove", "replace") for op in delta)
    assert all(not isinstance(_parent_of(op, doc, delta), list) or not op["path"].endswith("/-") for op in delta)
    again, same = resolve(doc, delta)
    assert equal(again, result)
    assert equal(same, delta)
    assert equal(jsonpatch.apply_patch(doc, delta), result)


def _parent_of(op: dict[str, Any], doc: Any, delta: list[dict[str, Any]]) -> Any:
    before, _ = resolve(doc, delta[: delta.index(op)])
    return get(before, op["path"].rpartition("/")[0])


@given(doc=objects, data=st.data())
def test_a_patch_that_fails_half_way_changes_nothing(doc: dict[str, Any], data: st.DataObject) -> None:
    before = deepcopy(doc)
    key = data.draw(keys)
    patch: list[Any] = [{"op": "add", "path": f"/{escape(key)}", "value": 1}, {"op": "test", "path": "", "value": "no"}]
    with pytest.raises(InvalidInputError):
        resolve(doc, patch)
    assert equal(doc, before)


@given(doc=objects, value=values, key=keys)
def test_the_result_shares_nothing_with_what_was_passed_in(doc: dict[str, Any], value: Any, key: str) -> None:
    path = f"/{escape(key)}"
    result, _ = resolve(doc, [{"op": "add", "path": path, "value": [value]}])
    before = deepcopy(doc)
    result[key].append("more")
    result.clear()
    assert equal(doc, before)


@given(st.lists(keys))
def test_tokens_survive_escaping(tokens: list[str]) -> None:
    assert tokens_of("".join(f"/{escape(token)}" for token in tokens)) == tokens


@pytest.mark.parametrize("pointer", ["a", "a/b", "/~", "/~2", "/a~", "/~0~"])
def test_a_malformed_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(InvalidInputError):
        tokens_of(pointer)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (0, False), (1, 1.0), (0, None), ("", None), ([], {}), ([1], [True]), ({"a": 1}, {"a": 1.0})],
)
def test_values_of_different_types_are_different(a: Any, b: Any) -> None:
    assert not equal(a, b)
    assert not equal(b, a)


@given(values)
def test_every_value_equals_its_copy(value: Any) -> None:
    assert equal(value, deepcopy(value))


@pytest.mark.parametrize(
    "patch",
    [
        {},
        "text",
        [1],
        [{}],
        [{"op": "add"}],
        [{"path": "/a"}],
        [{"op": "add", "path": "/a"}],
        [{"op": "add", "path": 1, "value": 1}],
        [{"op": ["add"], "path": "/a", "value": 1}],
        [{"op": "move", "path": "/a"}],
        [{"op": "copy", "path": "/a", "from": 1}],
        [{"op": "spam", "path": "/a"}],
        [{"op": "add", "path": "/l/01", "value": 1}],
        [{"op": "add", "path": "/l/+1", "value": 1}],
        [{"op": "add", "path": "/l/٣", "value": 1}],
        [{"op": "replace", "path": "/l/-", "value": 1}],
        [{"op": "remove", "path": "/l/-"}],
        [{"op": "move", "path": "/o/p/q", "from": "/o"}],
    ],
)
def test_what_is_no_patch_is_refused(patch: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        resolve({"l": [1], "o": {"p": {}}}, patch)
    assert refused.value.kind == "bad-patch"
