"""The fold moves forward and back, and its running hash is the one from scratch."""

import itertools
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.errors import InvalidInputError
from wakelog.model.document import empty_document
from wakelog.state.diff import diff
from wakelog.state.digest import leaves_at, state_hash, total_of
from wakelog.state.fold import FLOOR_BYTES, Fold, is_due
from wakelog.state.patch import equal, escape
from wakelog.testing.strategies import names, objects, patches, values

ENTRIES = ("facts", "labels", "flags", "pending_actions", "decisions_made")
Doc = dict[str, Any]


@st.composite
def deltas(draw: st.DrawFn, doc: Doc) -> list[Doc]:
    """A delta that fits: whole entries, inside entries, single parts, whole maps, and the user's data."""
    kind = draw(st.sampled_from(["entry", "inside", "single", "map", "working", "data", "data-root", "root"]))
    if kind == "entry":
        part, key = draw(st.sampled_from(ENTRIES)), draw(names)
        path = f"/{part}/{escape(key)}"
        if key in doc[part]:
            op = draw(st.sampled_from(["add", "replace", "remove"]))
            return [{"op": op, "path": path} | ({} if op == "remove" else {"value": draw(values)})]
        return [{"op": "add", "path": path, "value": draw(values)}]
    if kind == "inside":
        part, key = draw(st.sampled_from(ENTRIES)), draw(names)
        path = f"/{part}/{escape(key)}"
        return [
            {"op": "add", "path": path, "value": {"status": 1, "list": [1]}},
            {"op": "add", "path": f"{path}/status", "value": draw(values)},
            {"op": "add", "path": f"{path}/list/1", "value": draw(values)},
        ]
    if kind == "single":
        return [
            {"op": "add", "path": f"/{draw(st.sampled_from(['goal', 'last_error', 'view']))}", "value": draw(values)}
        ]
    if kind == "map":
        return [{"op": "replace", "path": f"/{draw(st.sampled_from(ENTRIES))}", "value": draw(objects)}]
    if kind == "working":
        return [{"op": "add", "path": f"/working_set/files/{escape(draw(names))}", "value": draw(st.integers(1, 9))}]
    if kind == "data-root":
        return [{"op": "replace", "path": "/data", "value": draw(objects)}]
    if kind == "root":
        return [{"op": "replace", "path": "", "value": empty_document() | {"data": draw(objects)}}]
    return draw(patches(doc["data"]))


def fresh() -> Fold:
    doc = empty_document()
    return Fold(doc)


@given(st.data())
def test_the_running_hash_is_the_one_from_scratch(data: st.DataObject) -> None:
    fold = fresh()
    for _ in range(data.draw(st.integers(1, 6))):
        fold.apply(deepcopy(data.draw(deltas(fold.doc))))
        if data.draw(st.booleans()):
            assert fold.state_hash() == state_hash(fold.doc)
    assert fold.total() == total_of(fold.doc)


@given(st.data())
def test_undoing_leaves_document_and_sum_as_they_were(data: st.DataObject) -> None:
    fold = fresh()
    for _ in range(data.draw(st.integers(0, 3))):
        fold.apply(deepcopy(data.draw(deltas(fold.doc))))
    doc, total = deepcopy(fold.doc), fold.total()
    ways_back = []
    for _ in range(data.draw(st.integers(1, 4))):
        ways_back.append(fold.apply(deepcopy(data.draw(deltas(fold.doc)))))
        if data.draw(st.booleans()):
            fold.total()  # settled in between or not: the same
    for way_back in reversed(ways_back):
        fold.undo(way_back)
    assert equal(fold.doc, doc)
    assert fold.total() == total == total_of(doc)


@given(st.data())
def test_moving_on_from_a_document_leaves_it_as_it_was(data: st.DataObject) -> None:
    fold = fresh()
    for _ in range(data.draw(st.integers(0, 3))):
        fold.apply(deepcopy(data.draw(deltas(fold.doc))))
    before, doc, moves = deepcopy(fold.doc), fold.doc, []
    ahead = Fold(deepcopy(fold.doc))
    for _ in range(data.draw(st.integers(0, 4))):
        moves.append(data.draw(deltas(ahead.doc)))
        ahead.apply(deepcopy(moves[-1]))
    assert equal(Fold.onward(doc, deepcopy(moves)).doc, ahead.doc)
    assert equal(doc, before)


def test_moving_on_shares_what_was_not_touched() -> None:
    doc = empty_document() | {"facts": {"a": {"value": [1]}, "b": {"value": [2]}}, "data": {"list": [1]}}
    after = Fold.onward(doc, [[{"op": "add", "path": "/facts/b", "value": {"value": [3]}}]]).doc
    assert after["facts"]["a"] is doc["facts"]["a"]
    assert after["data"] is doc["data"]
    assert diff(doc, after) == [{"op": "replace", "path": "/facts/b/value/0", "value": 3}]


@given(st.data())
def test_a_delta_that_does_not_fit_changes_nothing(data: st.DataObject) -> None:
    fold = fresh()
    fold.apply(deepcopy(data.draw(deltas(fold.doc))))
    doc, total = deepcopy(fold.doc), fold.total()
    wrong: Any = data.draw(
        st.sampled_from(
            [
                {"op": "remove", "path": "/facts/not there"},
                {"op": "replace", "path": "/data/not there", "value": 1},
                {"op": "add", "path": "/facts/not there/value", "value": 1},
                {"op": "add", "path": "/nothing/of/that/name", "value": 1},
                {"op": "remove", "path": "/working_set/files/not there"},
                {"op": "add", "path": "/status/inside/a/text", "value": 1},
                {"op": "replace", "path": "", "value": 1},
                {"op": "add", "path": "/facts/no value"},
                {"op": "add", "path": "no slash", "value": 1},
            ]
        )
    )
    with pytest.raises(InvalidInputError):
        fold.apply([*deepcopy(data.draw(deltas(doc))), wrong])
    assert equal(fold.doc, doc)
    assert fold.total() == total


@given(a=objects, b=objects)
def test_the_hash_tells_nothing_of_the_way(a: Doc, b: Doc) -> None:
    """Straight to `b`, or through `a` and back again in pieces: the same state, the same hash."""
    direct, around = fresh(), fresh()
    direct.apply([{"op": "replace", "path": "/data", "value": deepcopy(b)}])
    around.apply([{"op": "replace", "path": "/data", "value": deepcopy(a)}])
    around.apply(deepcopy(diff(a, b, "/data")))
    assert equal(direct.doc, around.doc)
    assert direct.state_hash() == around.state_hash()


def test_the_order_of_changes_does_not_matter() -> None:
    changes: list[Any] = [
        {"op": "add", "path": "/facts/a", "value": {"value": 1}},
        {"op": "add", "path": "/facts/b", "value": {"value": 2}},
        {"op": "add", "path": "/data/x", "value": [1]},
        {"op": "add", "path": "/goal", "value": "g"},
    ]
    hashes = set()
    for order in itertools.permutations(changes):
        fold = fresh()
        for op in order:
            fold.apply([deepcopy(op)])
        hashes.add(fold.state_hash())
    assert len(hashes) == 1


@given(a=objects, b=objects)
def test_different_states_have_different_hashes(a: Doc, b: Doc) -> None:
    one, other = empty_document() | {"data": a}, empty_document() | {"data": b}
    assert (state_hash(one) == state_hash(other)) == equal(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"x": {}}),
        ({"x": {}}, {"x": []}),
        ({"x": None}, {}),
        ({"x": 1}, {"x": True}),
        ({"x": 1}, {"x": "1"}),
        ({"x": {"y": 1}}, {"x/y": 1}),
        ({"x": {"y": 1}}, {"x": {"y": 1, "": {}}}),
        ({"x": [1, 2]}, {"x": [2, 1]}),
        ({"x": [[1], 2]}, {"x": [1, [2]]}),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({"x": [{}]}, {"x": [{"y": {}}]}),
    ],
)
@pytest.mark.parametrize("part", ["data", "facts"])
def test_states_that_look_alike_are_told_apart(part: str, a: Doc, b: Doc) -> None:
    assert state_hash(empty_document() | {part: a}) != state_hash(empty_document() | {part: b})


def test_where_the_session_looks_does_not_count() -> None:
    doc = empty_document()
    moved = doc | {"view": {"rewound": 9, "to": 3}}
    assert state_hash(doc) == state_hash(moved)
    fold = fresh()
    fold.apply([{"op": "add", "path": "/view", "value": {"rewound": 9, "to": 3}}])
    assert fold.state_hash() == state_hash(doc)


@given(objects)
def test_a_snapshot_is_the_fold_again(data: Doc) -> None:
    fold = fresh()
    fold.apply([{"op": "replace", "path": "/data", "value": deepcopy(data)}])
    again = Fold.load(fold.dump())
    assert equal(again.doc, fold.doc)
    assert again.total() == fold.total()
    for each in (fold, again):
        each.apply([{"op": "add", "path": "/facts/more", "value": 1}])
    assert again.state_hash() == fold.state_hash() == state_hash(fold.doc)


@given(objects)
def test_a_copy_shares_nothing_with_the_fold(data: Doc) -> None:
    fold = fresh()
    fold.apply([{"op": "replace", "path": "/data", "value": deepcopy(data)}])
    before = fold.state_hash()
    taken = fold.copy()
    assert equal(taken, fold.doc)
    taken["data"]["mine"] = 1
    taken["facts"]["mine"] = 1
    taken["turn"]["number"] = 7
    assert state_hash(fold.doc) == before


def test_no_two_leaves_of_a_document_are_the_same() -> None:
    doc = empty_document() | {"data": {"a": {"b": {"c": 1}}, "": {"": {}}, "a/b": {"c": 1}}}
    leaves = leaves_at(doc, [])
    assert len(leaves) == len(set(leaves))


def test_a_snapshot_is_due_by_what_was_written_since_the_last() -> None:
    assert not is_due(FLOOR_BYTES, 0)
    assert is_due(FLOOR_BYTES + 1, 0)
    large = 10 * FLOOR_BYTES
    assert not is_due(large, large)
    assert is_due(10 * large, large)
