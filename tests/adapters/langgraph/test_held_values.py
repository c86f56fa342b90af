"""Values that were handed out may be handed out again: whatever was done to them in between, a run gets what is stored,
and nobody's values change under their hands."""

import gc
import operator
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from tests.adapters.command_line import command
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.adapters.langgraph.held_items import held_places
from wakelog.errors import WakelogError

THREAD: Any = {"configurable": {"thread_id": "t"}}


@dataclass
class Task:
    number: int
    status: str = field(default="open", compare=False)


class Kept(TypedDict):
    items: Annotated[list[Any], operator.add]
    given: int


def keeping(saver: Any, item: Callable[[int], Any], touch: Callable[[list[Any]], None] = lambda items: None) -> Any:
    """A graph that adds an item a turn, after `touch` was given all."""

    def work(state: Any) -> Any:
        touch(state.get("items", []))
        return {"items": [item(state["given"])]}

    builder = StateGraph(Kept)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    return builder.compile(checkpointer=saver)


def message(n: int) -> AIMessage:
    return AIMessage(f"text {n}", id=f"m{n}", tool_calls=[{"name": "look", "args": {"q": n}, "id": f"c{n}"}])


def change(item: Any) -> None:
    if isinstance(item, BaseMessage):
        item.content = "changed"
    else:
        item["text"] = "changed"


def change_inside(item: Any) -> None:
    inside = item.tool_calls[0]["args"] if isinstance(item, BaseMessage) else item["deep"]
    inside["more"] = "changed"


ITEMS: dict[str, Callable[[int], Any]] = {
    "rows": lambda n: {"text": f"text {n}", "n": n},
    "nested": lambda n: {"text": f"text {n}", "deep": {"n": [n]}},
    "messages": message,
}
any_items = pytest.mark.parametrize("kind", ITEMS)


def plain(items: list[Any]) -> list[Any]:
    return [(each.content, each.tool_calls) if isinstance(each, BaseMessage) else each for each in items]


def expected(kind: str, count: int) -> list[Any]:
    return plain([ITEMS[kind](n) for n in range(count)])


def turns(graph: Any, first: int, last: int) -> Any:
    found = None
    for n in range(first, last):
        found = graph.invoke({"given": n}, THREAD)
    return found


@any_items
@pytest.mark.parametrize("is_kept", [False, True])
def test_what_a_program_does_to_a_result_is_not_in_the_next_run(tmp_path: Path, kind: str, is_kept: bool) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        graph = keeping(saver, ITEMS[kind])
        for upto in (3, 6, 9):
            result = turns(graph, upto - 3, upto)
            change(result["items"][0])
            if kind != "rows":
                change_inside(result["items"][1])
            result["items"].append("more")
            if not is_kept:
                del result
            assert plain(graph.get_state(THREAD).values["items"]) == expected(kind, upto)
        assert plain(turns(graph, 9, 10)["items"]) == expected(kind, 10)
        assert plain(keeping(other, ITEMS[kind]).get_state(THREAD).values["items"]) == expected(kind, 10)


@any_items
def test_what_a_program_holds_does_not_change_when_a_node_changes_its_state(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        held: Any = turns(keeping(saver, ITEMS[kind]), 0, 5)["items"][2:4]
        inside: Any = held.pop() if kind == "rows" else None
        if kind == "nested":
            inside = held.pop()["deep"]
        elif kind == "messages":
            inside = held.pop().tool_calls[0]["args"]
        told = repr((held, inside))

        def touch(items: list[Any]) -> None:
            for item in items[:5]:
                change(item)
                if kind != "rows":
                    change_inside(item)

        result = turns(keeping(saver, ITEMS[kind], touch), 5, 6)
        assert repr((held, inside)) == told
        stored = keeping(other, ITEMS[kind]).get_state(THREAD).values["items"]  # as with LangGraph's own savers
        assert plain(stored) == plain(result["items"])
        assert "changed" in repr(stored[0])


@any_items
def test_two_states_that_were_read_share_nothing(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = keeping(saver, ITEMS[kind])
        turns(graph, 0, 4)
        gc.collect()
        first, second = (graph.get_state(THREAD).values["items"] for _ in range(2))
        change(first[0])
        assert plain(second) == plain(graph.get_state(THREAD).values["items"]) == expected(kind, 4)


@any_items
def test_savers_that_write_in_turn_see_each_other(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as one, WakelogSaver(tmp_path) as other:
        for n in range(6):
            result = turns(keeping((one, other)[n % 2], ITEMS[kind]), n, n + 1)
            assert plain(result["items"]) == expected(kind, n + 1)


@any_items
def test_a_rewind_or_a_fork_from_the_command_line_is_seen(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = keeping(saver, ITEMS[kind])
        turns(graph, 0, 4)
        command("fork", "t@3", "--name", "copy", "--store", str(tmp_path))
        assert plain(graph.get_state(THREAD).values["items"]) == expected(kind, 4)
        command("rewind", "t@2", "--yes", "--store", str(tmp_path))
        assert plain(graph.get_state(THREAD).values["items"]) == expected(kind, 2)
        assert plain(turns(graph, 2, 4)["items"]) == expected(kind, 4)


@any_items
def test_a_thread_that_was_deleted_begins_anew(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        graph = keeping(saver, ITEMS[kind])
        for deleted_by in (saver, other):
            turns(graph, 0, 3)
            deleted_by.delete_thread("t")
            assert graph.get_state(THREAD).values == {}
        assert plain(turns(graph, 0, 2)["items"]) == expected(kind, 2)


@any_items
def test_a_thread_that_was_pruned_goes_on(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = keeping(saver, ITEMS[kind])
        turns(graph, 0, 3)
        saver.prune(["t"])
        assert plain(turns(graph, 3, 5)["items"]) == expected(kind, 5)


@any_items
def test_a_checkpoint_that_could_not_be_stored_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = keeping(saver, ITEMS[kind])
        turns(graph, 0, 3)
        bad = keeping(saver, lambda n: {"culprit": lambda: n}, touch=lambda items: change(items[0]))
        with pytest.raises(WakelogError, match="cannot be stored"):
            bad.invoke({"given": 3}, THREAD, durability="sync")
        assert plain(graph.get_state(THREAD).values["items"]) == expected(kind, 3)
        assert plain(turns(graph, 3, 5)["items"]) == expected(kind, 5)


def test_only_items_that_nobody_else_holds_are_handed_out_again() -> None:
    def held(items: list[Any]) -> list[int] | None:
        return held_places(items, are_rows=False)

    assert held(["a", "b", 1, None]) == []
    rows = [{"n": n} for n in range(3)]
    assert held(rows) == []
    one = rows[1]
    assert held(rows) == [1]
    assert one in rows
    nested: list[Any] = [{"deep": {"n": [n]}} for n in range(3)]
    assert held(nested) == []
    inside = nested[2]["deep"]["n"]
    assert held(nested) is None
    del inside
    messages = [message(n) for n in range(3)]
    assert held(messages) == []
    fields = messages[0].__dict__
    assert held(messages) is None
    del fields
    arguments = messages[0].tool_calls[0]["args"]
    assert held(messages) is None
    del arguments
    most = messages[1:]
    assert held(messages) is None
    assert len(most) == 2


def test_writes_that_come_after_the_next_checkpoint_are_stored_without_reading_the_log(tmp_path: Path) -> None:
    def place(id: str) -> Any:
        return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}}

    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        for parent, id in (("", "a"), ("a", "b"), ("b", "c")):
            checkpoint: Any = {**empty_checkpoint(), "id": id, "channel_values": {"x": id}}
            saver.put(place(parent), checkpoint, {"source": "loop", "step": 0}, {})
            if parent:
                saver.put_writes(place(parent), [("x", f"after {parent}")], "late")
                saver.put_writes(place(parent), [("x", "not taken twice"), ("y", 1)], "late")
        thread = saver._thread("t")
        assert thread is not None
        assert thread._index is None
        saver.put_writes(place("a"), [("x", "no"), ("y", "no"), ("z", 2)], "late")
        for reader in (saver, other):
            for id in "ab":
                found = reader.get_tuple(place(id))
                assert found is not None
                more = [("late", "z", 2)] if id == "a" else []
                assert found.pending_writes == [("late", "x", f"after {id}"), ("late", "y", 1), *more]


@pytest.mark.parametrize(
    "item",
    [lambda n: frozenset({n}), lambda n: uuid.UUID(int=n), lambda n: Send("work", {"given": n})],
    ids=["sets", "ids", "sends"],
)
def test_items_without_fields_can_be_read_again_and_again(tmp_path: Path, item: Callable[[int], Any]) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = keeping(saver, item)
        turns(graph, 0, 3)
        gc.collect()
        for _ in range(3):
            assert graph.get_state(THREAD).values["items"] == [item(n) for n in range(3)]


@pytest.mark.parametrize(
    "item",
    [
        lambda n: {"done": 0, "share": 1.0},
        lambda n: {"text": f"{n}", "deep": {"done": 0, "share": 1.0}},
        lambda n: {"deep": {"done": 0, "share": 1.0}, "more": uuid.UUID(int=n)},
    ],
    ids=["rows", "nested", "with an id"],
)
def test_a_number_that_becomes_an_equal_one_of_another_type_is_stored(
    tmp_path: Path, item: Callable[[int], Any]
) -> None:
    def touch(items: list[Any]) -> None:
        for each in items:
            each.get("deep", each).update(done=False, share=1)

    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        result = turns(keeping(saver, item, touch), 0, 4)
        assert "'done': False, 'share': 1}" in repr(result["items"][2])
        stored = keeping(other, item).get_state(THREAD).values["items"]
        assert repr(stored) == repr(result["items"])


def test_a_change_that_an_object_does_not_compare_is_stored(tmp_path: Path) -> None:
    def touch(items: list[Any]) -> None:
        for each in items:
            each["task"].status = "done"

    with WakelogSaver(tmp_path) as saver, WakelogSaver(tmp_path) as other:
        turns(keeping(saver, lambda n: {"task": Task(n)}, touch), 0, 3)
        stored = keeping(other, lambda n: None).get_state(THREAD).values["items"]
        assert [each["task"].status for each in stored] == ["done", "done", "open"]
