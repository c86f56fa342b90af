"""What the log says about a graph: turns, calls, messages, questions, cost; and threads by any id."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import HumanMessage
from langgraph.types import Command

import wakelog
from tests.adapters.command_line import command
from tests.adapters.langgraph.graphs import THREAD, agent, asking
from wakelog.adapters.langgraph import WakelogSaver
from wakelog.adapters.langgraph.interrupts import question_text
from wakelog.errors import InvalidInputError


@pytest.fixture
def saver(tmp_path: Path):
    with WakelogSaver(tmp_path / "store") as made:
        yield made


def kinds(session: Any, **where: Any) -> list[str]:
    return [entry.kind for entry in session.events(**where) if entry.kind != "state.patched"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_an_invocation_is_a_turn_with_its_calls(saver: WakelogSaver, durability: str) -> None:
    agent(saver).invoke({"messages": [HumanMessage("apples")]}, THREAD, durability=durability)
    session = saver.session("t")
    assert kinds(session, turn=1) == [
        "turn.started",
        "action.recorded",
        "action.requested",
        "action.succeeded",
        "action.recorded",
        "turn.ended",
    ]
    started, model, asked, found, *_ = [e for e in session.events(turn=1) if e.kind != "state.patched"]
    assert started.body["input"] == "apples"
    assert model.body["output"]["content"][0] == {"type": "text", "text": "let me look"}
    assert model.body["cost"]["tokens_in"] == 10
    assert (asked.body["tool"], asked.body["input"]) == ("look", {"q": "apples"})
    assert asked.body["group"] == model.body["action"]
    assert found.body["output"] == "found apples"
    assert found.header.trust == "unverified"
    state = session.state()
    assert state.turn.status == "completed"
    assert state.tools_used["look"].calls == 1
    assert state.budget.spent["tokens"] == 30
    assert [m["type"] for m in session.log.state()["data"]["messages"]] == ["human", "ai", "tool", "ai"]


def test_a_diff_tells_of_channels_and_not_of_bookkeeping(saver: WakelogSaver) -> None:
    graph = agent(saver)
    graph.invoke({"messages": [("user", "apples")]}, THREAD)
    graph.invoke({"messages": [("user", "pears")]}, THREAD)
    changed = [change.pointer for change in saver.session("t").diff("@2").changes if change.pointer.startswith("/data")]
    assert changed == ["/data/messages/4", "/data/messages/5", "/data/messages/6", "/data/messages/7", "/data/count"]


def test_a_failing_tool_is_a_failed_call(saver: WakelogSaver) -> None:
    agent(saver).invoke({"messages": [("user", "bad")]}, THREAD)
    assert "action.failed" in kinds(saver.session("t"))


def test_an_interrupt_is_a_question_and_the_resume_its_answer(saver: WakelogSaver) -> None:
    graph = asking(saver)
    graph.invoke({"x": ["in"], "about": {}}, THREAD)
    session = saver.session("t")
    (question,) = [p for p in session.state().pending_actions.values() if p.tool == "input"]
    assert question.prompt == '{"q":"ok?"}'
    assert session.state().turn.status == "open"
    graph.invoke(Command(resume="yes"), THREAD)
    graph.invoke(Command(resume="sure"), THREAD)
    answers = [entry.body["answer"] for entry in session.events(kind="input.answered")]
    assert answers == ["yes", "sure"]
    state = session.state()
    assert (state.turn.number, state.turn.status) == (1, "completed")
    assert not state.pending_actions


def test_a_task_that_fails_fails_the_turn_and_a_resume_goes_on_with_it(saver: WakelogSaver) -> None:
    from langgraph.graph import START, MessagesState, StateGraph

    broken = [True]

    def node(state: Any) -> Any:
        if broken:
            raise ValueError("not yet")
        return {"messages": [("ai", "done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="not yet"):
        graph.invoke({"messages": [("user", "go")]}, THREAD)
    session = saver.session("t")
    (ended,) = session.events(kind="turn.ended")
    assert ended.body["outcome"] == "failed"
    assert ended.body["error"]["type"] == "ValueError"
    broken.clear()
    graph.invoke(None, THREAD)
    state = session.state()
    assert (state.turn.number, state.turn.attempt, state.turn.status) == (1, 2, "completed")


def test_time_travel_is_a_rewind(saver: WakelogSaver) -> None:
    graph = agent(saver)
    graph.invoke({"messages": [("user", "apples")]}, THREAD)
    graph.invoke({"messages": [("user", "pears")]}, THREAD)
    first = next(s for s in graph.get_state_history(THREAD) if len(s.values["messages"]) == 4 and not s.next)
    graph.invoke({"messages": [("user", "plums")]}, first.config)
    session = saver.session("t")
    assert [entry.kind for entry in session.events(kind="history.rewound")] == ["history.rewound"]
    said = [message.text for message in session.messages() if message.role == "user"]
    assert said == ["apples", "plums"]


@pytest.mark.parametrize(
    "thread", ["e86", "@5", "cp:x", "turn:3", "-x", "a..b", " x ", "", "s_" + "0" * 26, "ü/€ 1\n", "y" * 400, "plain-1"]
)
def test_any_thread_id_has_a_session_and_is_found_again(saver: WakelogSaver, thread: str) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    agent(saver).invoke({"messages": [("user", "hello")]}, config)
    session = saver.session(thread)
    assert session.name == thread or session.name.startswith("langgraph-")
    assert {found.config["configurable"]["thread_id"] for found in saver.list(None)} == {thread}
    assert saver.store.resume(session.name).id == session.id


def test_a_session_of_somebody_else_is_not_written_to(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "other") as store:
        store.session("t", data={"mine": 1})
        with pytest.raises(InvalidInputError, match="not a session of LangGraph") as refused:
            agent(WakelogSaver(store)).invoke({"messages": [("user", "hello")]}, THREAD)
        assert refused.value.kind == "not-a-thread"


@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ({"id": "1f"}, "checkpoint '1f' has no channel_values and no channel_versions and no versions_seen"),
        ({"id": "1f", "channel_versions": {}, "versions_seen": {}}, "checkpoint '1f' has no channel_values"),
        ({"channel_values": {}}, "what was given as a checkpoint has no id"),
        (None, "what was given as a checkpoint has no id"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused_by_what_it_lacks(
    saver: WakelogSaver, checkpoint: Any, said: str
) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with pytest.raises(InvalidInputError, match=said) as refused:
        saver.put(config, checkpoint, {"source": "input", "step": -1}, {})
    assert refused.value.kind == "bad-checkpoint"
    assert saver.get_tuple(config) is None


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("Go on?", "Go on?"),
        ({"question": "Go on?", "draft": "…"}, "Go on?"),
        ({"action_requests": [{"name": "pay", "args": {}, "description": "Pay 5 EUR?"}]}, "Pay 5 EUR?"),
        ({"draft": 1}, '{"draft":1}'),
    ],
)
def test_the_prompt_of_a_question_is_what_a_person_is_asked(asked: Any, shown: str) -> None:
    assert question_text(asked) == shown


def test_commands_show_messages_by_their_words(saver: WakelogSaver, tmp_path: Path) -> None:
    agent(saver).invoke({"messages": [("user", "apples")]}, THREAD)
    place = str(tmp_path / "store")
    assert '{"HumanMessage":"apples"}' in command("diff", "t@1", "--store", place)
    brief = command("brief", "t", "--store", place)
    assert '{"HumanMessage":"apples"}' in brief
    assert "$langgraph" not in brief
