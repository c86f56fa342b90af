"""What changed in a channel is told shortly, and in place changes are seen: whatever a list is made of."""

from functools import partial
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from wakelog.adapters.langgraph.channels import ChannelCopy, new_channel
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.errors import InvalidInputError
from wakelog.state.patch import resolve

CODEC = ValueCodec(JsonPlusSerializer())
LISTS: dict[str, Any] = {
    "texts": ["a", "b"],
    "rows and texts": [{"n": 1}, "b"],
    "rows": [{"n": 1, "done": False}, {"n": 2, "done": None}],
    "nested": [{"n": {"deep": [1, 2]}}, {"n": {"deep": [3]}}],
    "messages": [HumanMessage("hello", id="1"), AIMessage("hi", id="2")],
    "mixed": [{"n": 1}, HumanMessage("hello", id="1")],
}


def channel(value: Any) -> ChannelCopy:
    return new_channel(CODEC, value, "/x", "x")[0]


def moved(copy: ChannelCopy, before: Any, value: Any) -> list[dict[str, Any]]:
    """The operations that lead to a value; they do lead there, and the copy of it is that value."""
    fresh, ops = copy.moved_to(value, "/x", "x")
    after, _ = resolve({"x": before}, ops)
    assert after["x"] == CODEC.encode(value, "x")
    assert repr(fresh.hand_out()) == repr(value)
    return ops


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_has_grown_tells_what_was_added(name: str) -> None:
    value = list(LISTS[name])
    before, copy = CODEC.encode(value, "x"), channel(value)
    ops = moved(copy, before, [*value, value[0]])
    assert [(op["op"], op["path"]) for op in ops] == [("add", "/x/2")]


@pytest.mark.parametrize("name", ["texts", "rows", "nested"])
def test_a_list_built_anew_from_equal_data_has_grown_too(name: str) -> None:
    value = list(LISTS[name])
    before, copy = CODEC.encode(value, "x"), channel(value)
    again = CODEC.decode(before)
    assert [op["path"] for op in moved(copy, before, [*again, "more"])] == ["/x/2"]


@pytest.mark.parametrize("handed_out", [False, True])
def test_what_was_changed_in_place_is_told(handed_out: bool) -> None:
    for name in ("rows", "nested"):
        value = CODEC.copy(LISTS[name])
        before, copy = CODEC.encode(value, "x"), channel(value)
        if handed_out:
            value = copy.hand_out()
        value[0]["n"] = "other"
        ops = moved(copy, before, value)
        assert [op["path"] for op in ops] == ["/x/0/n"]


@pytest.mark.parametrize(
    "value",
    [
        [{"n": 0, "text": "a"}, {"n": 1, "text": "b"}],
        [{"text": "a"}, {"text": "b", "n": 1}],
        [{"": 0, "n": 0.5}, {"n": 1}],
        ["a", {"n": 1}, 0],
        [0, 1],
    ],
    ids=repr,
)
def test_a_number_in_a_row_that_becomes_an_equal_one_of_another_type_is_told(value: list[Any]) -> None:
    for other in (bool, float):
        copy = channel(CODEC.copy(value))
        given = copy.hand_out()
        assert copy._still_equals(given)
        for place, row in enumerate(given):
            if isinstance(row, dict):
                row.update((key, other(item)) for key, item in row.items() if item in (0, 1))
            elif isinstance(row, int):
                given[place] = other(row)
        assert given == value
        assert not copy._still_equals(given)
        moved(copy, value, given)


def test_what_is_handed_out_shares_nothing_with_the_copy() -> None:
    for value in LISTS.values():
        copy = channel(value)
        first = copy.hand_out()
        first.append("more")
        if isinstance(first[0], dict):
            first[0]["n"] = "other"
        assert repr(copy.hand_out()) == repr(value)


@pytest.mark.parametrize("name", ["rows", "nested", "messages"])
def test_what_nobody_holds_any_more_is_handed_out_again(name: str) -> None:
    copy = channel(CODEC.copy(LISTS[name]))
    first = [id(item) for item in copy.hand_out()]
    assert [id(item) for item in copy.hand_out()] == first
    held = copy.hand_out()[1]
    assert [id(item) == before for item, before in zip(copy.hand_out(), first, strict=True)] == [True, False]
    assert CODEC.is_same(held, LISTS[name][1])


def test_a_message_with_a_field_that_cannot_be_compared_is_copied() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("compare me elsewhere")

    copy = channel([HumanMessage("hello", id="1")])
    copy.hand_out()
    copy._given[0].additional_kwargs["odd"] = Odd()
    copy._own[0].additional_kwargs["odd"] = Odd()
    assert not copy._still_equals(copy._given)


def test_a_value_that_is_new_for_the_most_part_is_told_whole() -> None:
    before = [{"id": n, "input": {"path": "a", "line": n}, "output": "old"} for n in range(3)]
    after = [{"id": n + 9, "input": {"path": "b", "line": n + 9}, "output": "new"} for n in range(3)]
    assert [op["path"] for op in moved(channel(before), before, after)] == ["/x"]
    nearly = [{**before[0], "output": "new"}, *before[1:]]
    assert [op["path"] for op in moved(channel(before), before, nearly)] == ["/x/0/output"]


def test_what_cannot_be_stored_is_named_by_its_place() -> None:
    culprit = [{"n": lambda: 0}]
    for copy in (None, channel([1]), channel({"n": 1}), channel("text")):
        with pytest.raises(InvalidInputError, match=r"channel x\[0\]\.n \(function\) cannot be stored"):
            (copy.moved_to if copy else partial(new_channel, CODEC))(culprit, "/x", "channel x")


def test_a_channel_read_from_the_log_is_known_again() -> None:
    for value in LISTS.values():
        stored = CODEC.encode(value, "x")
        copy = ChannelCopy(CODEC, stored)
        given = copy.hand_out()
        assert [op["path"] for op in moved(copy, stored, [*given, "more"])] == ["/x/2"]
