"""Graphs as people write them, and runs of each that can be done with any checkpointer."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Interrupt, Send, interrupt

THREAD: Any = {"configurable": {"thread_id": "t"}}


@tool
def look(q: str) -> str:
    """Looks something up."""
    if q == "bad":
        raise ValueError("no such thing")
    return f"found {q}"


class AgentState(MessagesState):
    count: Annotated[int, operator.add]


def agent(saver: Any) -> Any:
    """A model that asks for a tool once, and says what it found."""

    def model(state: Any) -> Any:
        last, n = state["messages"][-1], len(state["messages"])
        used = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        about: Any = {"id": f"ai{n}", "usage_metadata": used, "response_metadata": {"model_name": "gpt-4o"}}
        if last.type == "human":
            call = {"name": "look", "args": {"q": last.content}, "id": f"call{n}"}
            return {"count": 1, "messages": [AIMessage("let me look", tool_calls=[call], **about)]}
        return {"count": 1, "messages": [AIMessage(f"it is {last.content}", **about)]}

    builder = StateGraph(AgentState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([look], handle_tool_errors=True))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else END, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


class ListState(TypedDict):
    x: Annotated[list[Any], operator.add]
    about: dict[str, Any]


def asking(saver: Any) -> Any:
    """Two nodes at once, of which one asks; then a subgraph that asks; then sends; then the end."""

    def ask(state: Any) -> Any:
        answer = interrupt({"q": "ok?"})
        return {"x": [f"answer {answer}"], "about": {"answer": answer, "weight": 1.0}}

    def ask_inside(state: Any) -> Any:
        return {"x": [f"inside {interrupt('sure?')}"]}

    inner = StateGraph(ListState)
    inner.add_node("inside", ask_inside)
    inner.add_edge(START, "inside")
    inner.add_edge("inside", END)
    builder = StateGraph(ListState)
    builder.add_node("ask", ask)
    builder.add_node("other", lambda state: {"x": ["other"]})
    builder.add_node("sub", inner.compile())
    builder.add_node("each", lambda given: {"x": [f"each {given['n']}"]})
    builder.add_node("end", lambda state: {"x": ["end"]})
    builder.add_edge(START, "ask")
    builder.add_edge(START, "other")
    builder.add_edge("ask", "sub")
    builder.add_conditional_edges("sub", lambda state: [Send("each", {"n": n}) for n in range(3)], ["each"])
    builder.add_edge("each", "end")
    builder.add_edge("end", END)
    return builder.compile(checkpointer=saver)


def nested(saver: Any) -> Any:
    """A subgraph in a subgraph, with two nodes at once that both ask."""

    def asks(name: str) -> Callable[[Any], Any]:
        return lambda state: {"x": [f"{name} {interrupt(name)}"]}

    inner = StateGraph(ListState)
    for name in ("a", "b"):
        inner.add_node(name, asks(name))
        inner.add_edge(START, name)
    middle = StateGraph(ListState)
    middle.add_node("inner", inner.compile())
    middle.add_node("after", lambda state: {"x": ["after"]})
    middle.add_edge(START, "inner")
    middle.add_edge("inner", "after")
    builder = StateGraph(ListState)
    builder.add_node("middle", middle.compile())
    builder.add_edge(START, "middle")
    return builder.compile(checkpointer=saver)


def run_agent(invoke: Callable[..., Any], graph: Any) -> list[Any]:
    """Two turns, a replay from the middle, an edit of the past, and one turn more."""
    seen = [
        invoke({"messages": [HumanMessage("apples", id="h1")]}, THREAD),
        invoke({"messages": [("user", "bad")]}, THREAD),
    ]
    past = list(graph.get_state_history(THREAD))
    seen += [history(graph), invoke(None, past[len(past) // 2].config), history(graph)]
    edited = graph.update_state(past[-1].config, {"messages": [HumanMessage("pears", id="h9")]}, as_node="__start__")
    seen += [invoke(None, edited), invoke({"messages": [("user", "third")]}, THREAD)]
    return [*map(plain, seen), history(graph)]


def run_asking(invoke: Callable[..., Any], graph: Any) -> list[Any]:
    """Interrupts and resumes, also in a subgraph; a replay from the start; a new turn over an open question."""
    seen = [invoke({"x": ["in"], "about": {}}, THREAD), history(graph)]
    seen += [[task.name for task in graph.get_state(THREAD, subgraphs=True).tasks]]
    for answer in ("yes", "sure"):
        seen += [invoke(Command(resume=answer), THREAD), history(graph)]
    first = list(graph.get_state_history(THREAD))[-1]
    seen += [invoke(None, first.config), history(graph)]
    seen += [invoke(Command(resume="again"), THREAD), invoke({"x": ["second"]}, THREAD)]
    return [*map(plain, seen), history(graph)]


def run_nested(invoke: Callable[..., Any], graph: Any) -> list[Any]:
    """Answers to one question after the other, by its id; then the second once more, from where it was asked."""

    def answer(question: str, config: Any) -> Any:
        open_questions = {each.value: each.id for task in graph.get_state(config).tasks for each in task.interrupts}
        return invoke(Command(resume={open_questions[question]: f"yes {question}"}), config)

    seen = [invoke({"x": ["in"], "about": {}}, THREAD), history(graph)]
    waiting = graph.get_state(THREAD).config
    seen += [answer("a", THREAD), answer("b", THREAD), history(graph)]
    seen += [answer("b", waiting)]
    return [*map(plain, seen), history(graph)]


RUNS: dict[str, tuple[Callable[[Any], Any], Callable[..., list[Any]]]] = {
    "agent": (agent, run_agent),
    "asking": (asking, run_asking),
    "nested": (nested, run_nested),
}


def plain(value: Any) -> Any:
    """A value without what is different in every run: ids, and the order of questions asked at once."""
    if isinstance(value, BaseMessage):
        return value.type, value.content
    if isinstance(value, Interrupt):
        return "interrupt", plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and value and all(isinstance(item, Interrupt) for item in value):
        return sorted(map(plain, value), key=str)
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def history(graph: Any) -> list[Any]:
    """Everything that a thread's history tells."""
    return [
        (
            plain(each.values),
            each.next,
            each.metadata["source"],
            each.metadata["step"],
            [(task.name, plain(task.interrupts), plain(task.result), bool(task.error)) for task in each.tasks],
            each.parent_config is not None,
        )
        for each in graph.get_state_history(THREAD)
    ]
