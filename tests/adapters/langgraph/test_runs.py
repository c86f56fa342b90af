"""Real graphs give the same with ours as with LangGraph's checkpointer in memory, in every durability."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langgraph.checkpoint.memory import InMemorySaver

import wakelog
from tests.adapters.langgraph.graphs import RUNS, THREAD, agent, history, plain
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.http.server import serving
from wakelog.http.state import Settings


def outcomes(name: str, saver: Any, durability: str, *, is_async: bool) -> list[Any]:
    make, run = RUNS[name]
    graph = make(saver)

    def invoke(given: Any, config: Any) -> Any:
        if is_async:
            return asyncio.run(graph.ainvoke(given, config, durability=durability))
        return graph.invoke(given, config, durability=durability)

    return run(invoke, graph)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "asyncio"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("name", RUNS)
def test_a_graph_runs_as_with_the_checkpointer_in_memory(tmp_path: Path, name: str, durability: str, is_async) -> None:
    with WakelogSaver(tmp_path) as saver:
        ours = outcomes(name, saver, durability, is_async=is_async)
    assert ours == outcomes(name, InMemorySaver(), durability, is_async=is_async)


@pytest.mark.parametrize("kind", ["http", ON_POSTGRES])
@pytest.mark.parametrize("name", RUNS)
def test_a_graph_runs_the_same_on_a_shared_store(request, tmp_path: Path, name: str, kind: str) -> None:
    with ExitStack() as stack:
        if kind == "http":
            server = stack.enter_context(serving(Settings(url=str(tmp_path), rate=0)))
            store = stack.enter_context(wakelog.open(server.url, key=server.key))
        else:
            store = stack.enter_context(wakelog.open(postgres_url(request, tmp_path)))
        ours = outcomes(name, WakelogSaver(store), "async", is_async=False)
    assert ours == outcomes(name, InMemorySaver(), "async", is_async=False)


def test_threads_are_listed_together_newest_first(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        for name in ("a", "b", "a"):
            agent(saver).invoke({"messages": [("user", "x")]}, {"configurable": {"thread_id": name}}, durability="exit")
        found = [each.config["configurable"] for each in saver.list(None)]
        assert [each["thread_id"] for each in found] == ["a", "b", "a"]
        assert [each["thread_id"] for each in (t.config["configurable"] for t in saver.list(None, limit=2))] == [
            "a",
            "b",
        ]


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_thread_goes_on_in_another_process(tmp_path: Path, durability: str) -> None:
    with WakelogSaver(tmp_path) as first:
        agent(first).invoke({"messages": [("user", "apples")]}, THREAD, durability=durability)
    with WakelogSaver(tmp_path) as second:
        there = agent(second).get_state(THREAD)
        assert plain(there.values["messages"])[-1] == ("ai", "it is found apples")
        assert there.values["count"] == 2
        state = agent(second).invoke({"messages": [("user", "pears")]}, THREAD, durability=durability)
    assert [kind for kind, _ in plain(state["messages"])] == ["human", "ai", "tool", "ai"] * 2


def test_a_rewind_of_the_session_is_a_rewind_of_the_graph(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "apples")]}, THREAD)
        graph.invoke({"messages": [("user", "pears")]}, THREAD)
        saver.session("t").rewind("@1")
        assert len(graph.get_state(THREAD).values["messages"]) == 4
        state = graph.invoke({"messages": [("user", "plums")]}, THREAD)
    assert [text for kind, text in plain(state["messages"]) if kind == "human"] == ["apples", "plums"]


def test_a_copied_thread_lives_on_when_the_first_is_deleted(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "apples")]}, THREAD)
        saver.copy_thread("t", "copy")
        saver.delete_thread("t")
        copy: Any = {"configurable": {"thread_id": "copy"}}
        assert graph.get_state(THREAD).values == {}
        state = graph.invoke({"messages": [("user", "pears")]}, copy)
        assert len(state["messages"]) == 8
        assert len(list(graph.get_state_history(copy))) == 10
        graph.invoke({"messages": [("user", "anew")]}, THREAD)
        assert len(graph.get_state(THREAD).values["messages"]) == 4


def test_threads_of_another_checkpointer_go_on_here(tmp_path: Path) -> None:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    with sqlite.SqliteSaver.from_conn_string(str(tmp_path / "theirs.db")) as theirs, WakelogSaver(tmp_path) as ours:
        before = agent(theirs)
        before.invoke({"messages": [("user", "apples")]}, THREAD)
        told = history(before)
        assert ours.copy_from(theirs) == len(told)
        assert ours.copy_from(theirs) == 0
        after = agent(ours)
        assert history(after) == told
        state = after.invoke({"messages": [("user", "pears")]}, THREAD)
        assert len(state["messages"]) == 8
        assert ours.session("t").state().turn.number == 2


def test_what_a_prune_keeps_names_no_parent_that_it_removed(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        graph = agent(saver)
        graph.invoke({"messages": [("user", "x")]}, THREAD)
        assert graph.get_state(THREAD).parent_config is not None
        saver.prune(["t"])
        assert [each.parent_config for each in saver.list(THREAD)] == [None]
        assert graph.get_state(THREAD).parent_config is None


def test_one_id_without_a_list_is_refused(tmp_path: Path) -> None:
    with WakelogSaver(tmp_path) as saver:
        agent(saver).invoke({"messages": [("user", "x")]}, THREAD)
        for remove in (saver.prune, saver.delete_for_runs):
            with pytest.raises(TypeError, match="are a sequence, not a str: pass \\['t'\\]"):
                remove("t")
        assert saver.get_tuple(THREAD) is not None
