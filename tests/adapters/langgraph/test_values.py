"""Values come back as LangGraph's own serializer gives them back, or are refused with their place."""

import operator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send

from tests.adapters.langgraph.graphs import THREAD, agent, plain
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.errors import InvalidInputError
from wakelog.model.values import check_value


@dataclass
class Point:
    x: int
    y: float


deep: Any = 1
for _ in range(70):
    deep = [deep]

VALUES = [
    None,
    1,
    2**60,
    1.0,
    1.5,
    float("inf"),
    True,
    "text",
    b"\x00\xff",
    [1, 1.0, True, None],
    {"a": {"b": [1.0]}},
    {1: "one", "two": 2},
    {"$int": "no tag", "$x": 1},
    {"$payload": "reserved"},
    (1, 2),
    {3, 4},
    datetime(2026, 1, 2, tzinfo=UTC),
    Decimal("1.10"),
    UUID(int=7),
    Point(1, 2.0),
    Send("node", {"a": 1}),
    HumanMessage("hello", id="1"),
    AIMessage([{"type": "text", "text": "x"}], tool_calls=[{"name": "t", "args": {"n": 1.0}, "id": "c"}]),
    ToolMessage("found", tool_call_id="c", artifact={"raw": b"1"}),
    deep,
]


def serializer() -> JsonPlusSerializer:
    try:
        return JsonPlusSerializer(allowed_msgpack_modules=[Point])
    except TypeError:  # releases before 1.1 build every class, and take no list of those that are allowed
        return JsonPlusSerializer()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_the_serializer_gives_it(value: Any) -> None:
    serde = serializer()
    codec = ValueCodec(serde)
    stored = check_value(codec.encode({"v": value}, "here"))
    expected = serde.loads_typed(serde.dumps_typed({"v": value}))
    assert repr(codec.decode(stored)) == repr(expected)
    assert repr(codec.copy({"v": value})) == repr(expected)


class AnyState(TypedDict):
    x: Annotated[list[Any], operator.add]
    extra: Any


def one_node(saver: Any, node: Any, state: Any = AnyState) -> Any:
    builder = StateGraph(state)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=saver)


def values_of(saver: WakelogSaver) -> dict[str, Any]:
    found = saver.get_tuple(THREAD)
    assert found is not None
    values: dict[str, Any] = found.checkpoint["channel_values"]
    return values


def test_what_cannot_be_stored_is_refused_with_its_place(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = one_node(saver, lambda state: {"extra": {"deep": [1, {"culprit": lambda: 0}]}})
        with pytest.raises(InvalidInputError, match=r"extra\.deep\[1\]\.culprit \(function\) cannot be stored") as told:
            graph.invoke({"x": []}, THREAD)
        assert told.value.kind == "not-a-value"


def test_nothing_is_pickled(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path, serde=JsonPlusSerializer(pickle_fallback=True)) as saver:
        graph = one_node(saver, lambda state: {"extra": {"made": slice(1)}})
        with pytest.raises(InvalidInputError, match=r"extra\.made \(slice\) cannot be stored: it would have to be"):
            graph.invoke({"x": []}, THREAD)


def test_an_item_that_a_node_changed_in_place_is_stored(tmp_path: Path) -> None:
    def node(state: Any) -> Any:
        state["x"][0]["seen"] = state["x"][0].get("seen", 0) + 1
        return {"x": [{"n": len(state["x"])}]}

    with WakelogSaver(tmp_path) as saver:
        for _ in range(3):
            one_node(saver, node).invoke({"x": [{"n": -1}]}, THREAD)
    with WakelogSaver(tmp_path) as saver:
        assert values_of(saver)["x"][0] == {"n": -1, "seen": 3}


def test_a_message_changed_in_place_or_removed_is_stored_so(tmp_path: Path) -> None:
    def node(state: Any) -> Any:
        if len(state["messages"]) == 3:
            return {"messages": [RemoveMessage(id=state["messages"][0].id)]}
        state["messages"][0].content = "changed"
        return {"messages": [AIMessage("ok")]}

    with WakelogSaver(tmp_path) as saver:
        graph = one_node(saver, node, MessagesState)
        graph.invoke({"messages": [("user", "one")]}, THREAD)
        assert plain(values_of(saver)["messages"])[0] == ("human", "changed")
        graph.invoke({"messages": [("user", "two")]}, THREAD)
    with WakelogSaver(tmp_path) as saver:
        found = values_of(saver)["messages"]
        assert plain(found) == [("ai", "ok"), ("human", "two")]


def test_what_was_given_out_can_be_changed_without_changing_the_thread(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "apples")]}, THREAD)
        graph.get_state(THREAD).values["messages"][0].content = "mine"
        values_of(saver)["messages"].clear()
        assert graph.get_state(THREAD).values["messages"][0].content == "apples"


class Reversed:
    """A serializer of the user's own."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        kind, data = JsonPlusSerializer().dumps_typed(value)
        return f"{kind}+reversed", bytes(data)[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return JsonPlusSerializer().loads_typed((data[0].removesuffix("+reversed"), data[1][::-1]))


class ReversedToo(Reversed, JsonPlusSerializer):
    """The same, made from LangGraph's."""


@pytest.mark.parametrize("serializer", [Reversed, ReversedToo])
def test_with_a_serializer_of_ones_own_no_content_is_readable(tmp_path: Path, serializer) -> None:
    with WakelogSaver(tmp_path, serde=serializer()) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "confidential")]}, THREAD)
        graph.invoke({"messages": [("user", "pears")]}, THREAD)
    with WakelogSaver(tmp_path, serde=serializer()) as saver:
        assert len(agent(saver).get_state(THREAD).values["messages"]) == 8
        session = saver.session("t")
        assert session.state().turn.number == 2
        assert not [e for e in session.events() if "confidential" in e.record.body.decode()]


@pytest.mark.parametrize("serializer", [JsonPlusSerializer, Reversed])
def test_a_dict_whose_keys_change_is_stored_with_any_serializer(tmp_path: Path, serializer) -> None:
    with WakelogSaver(tmp_path, serde=serializer()) as saver:
        graph = one_node(saver, lambda state: {"extra": {"same": "s", f"k{len(state['x'])}": 1}})
        for turn in range(1, 4):
            graph.invoke({"x": [turn]}, THREAD)
            assert values_of(saver)["extra"] == {f"k{len(values_of(saver)['x'])}": 1, "same": "s"}
    with WakelogSaver(tmp_path, serde=serializer()) as saver:
        assert values_of(saver)["extra"] == {"k3": 1, "same": "s"}


def test_delta_channels_are_made_whole_again_also_after_a_prune(tmp_path: Path) -> None:
    delta = pytest.importorskip("langgraph.channels.delta")

    def joined(state: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*state, *(item for write in writes for item in write)]

    class Deltas(TypedDict):
        x: Annotated[list[Any], delta.DeltaChannel(joined)]

    with WakelogSaver(tmp_path) as saver:
        graph = one_node(saver, lambda state: {"x": [f"n{len(state['x'])}"]}, Deltas)
        for turn in range(3):
            graph.invoke({"x": [f"in{turn}"]}, THREAD)
        whole = ["in0", "n1", "in1", "n3", "in2", "n5"]
        assert graph.get_state(THREAD).values["x"] == whole
        saver.prune(["t"])
        assert len(list(graph.get_state_history(THREAD))) == 1
    with WakelogSaver(tmp_path) as saver:
        assert one_node(saver, lambda state: {"x": []}, Deltas).get_state(THREAD).values["x"] == whole
