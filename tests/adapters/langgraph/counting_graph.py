"""A graph of two nodes that keeps a list, and counts."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph


class Counted(TypedDict):
    done: Annotated[list[str], operator.add]
    steps: Annotated[int, operator.add]
    given: str


def counting(saver: Any) -> Any:
    builder = StateGraph(Counted)
    builder.add_node("first", lambda state: {"steps": 1})
    builder.add_node("second", lambda state: {"done": [state["given"]], "steps": 1})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile(checkpointer=saver)


def turn_of(given: str) -> tuple[dict[str, Any], Any]:
    """What `invoke` takes."""
    return {"given": given}, {"configurable": {"thread_id": "t"}}
