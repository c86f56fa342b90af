"""LangGraph: a graph of two nodes with a checkpointer, one `invoke` a turn.

The lists of the state are channels with a reducer, as the documentation shows; full outputs stand in a channel that the
next turn overwrites, so that they are stored but not carried along. By default every step of the graph writes a whole
checkpoint; `durability="exit"` writes one a turn; delta channels (beta) write what a step added.
"""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self, TypedDict

from benchmarks.protocol import Contender, Settings, pragmas
from benchmarks.turns import State, Turn, bulk, delta, new_state


class LangGraphSqlite(Contender):
    durability = ""
    deltas = False

    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        super().__init__(place, session)
        self.saver: Any = beside.saver if beside else self._open()
        self._turn: Turn = {}
        self._graph = self._compile()
        self._thread = {"configurable": {"thread_id": session}}

    def _open(self) -> Any:
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver(sqlite3.connect(Path(self.place) / "graph.db", check_same_thread=False))

    def _compile(self) -> Any:
        from langgraph.graph import END, START, StateGraph

        builder = StateGraph(_schema(self.deltas))
        builder.add_node("agent", self._agent)
        builder.add_node("tools", self._tools)
        builder.add_edge(START, "agent")
        builder.add_edge("agent", "tools")
        builder.add_edge("tools", END)
        return builder.compile(checkpointer=self.saver)

    def _agent(self, state: dict[str, Any]) -> dict[str, Any]:
        return {"pending_actions": [*state.get("pending_actions", []), self._turn["push"]]}

    def _tools(self, state: dict[str, Any]) -> dict[str, Any]:
        turn, change = self._turn, delta(self._turn)
        decisions = {"decisions": [turn["decision"]]} if turn["decision"] else {}
        return {
            "tools_used": change["tools_used"],
            "files_modified": [turn["file"]],
            "pending_actions": [action for action in state["pending_actions"] if action["id"] != turn["pop"]],
            "last_tool_results": bulk(turn),
            **decisions,
        }

    def append(self, turn: Turn) -> None:
        self._turn, message = turn, turn["message"]
        if self.deltas:  # such a channel takes anything with a "role" for a chat message, and fails on ours
            message = {"who": message["role"], "text": message["text"]}
        options = {"durability": self.durability} if self.durability else {}
        config = {**self._thread, "metadata": {"turn": turn["n"]}}
        self._graph.invoke({"turn": turn["n"], "messages": [message]}, config, **options)

    def load(self, at: int | None = None) -> State:
        return self._state(self._graph.get_state(self._thread) if at is None else self._snapshot(at))

    def _snapshot(self, at: int) -> Any:
        return next(iter(self._graph.get_state_history(self._thread, filter={"turn": at}, limit=1)))

    def _state(self, snapshot: Any) -> State:
        state = {part: snapshot.values.get(part, empty) for part, empty in new_state().items()}
        if self.deltas:
            state["messages"] = [{"role": each["who"], "text": each["text"]} for each in state["messages"]]
        return state

    def fork(self, at: int) -> Callable[[], State]:
        config = self._graph.update_state(self._snapshot(at).config, {"turn": at}, as_node="tools")
        return lambda: self._state(self._graph.get_state(config))

    def settings(self) -> Settings:
        self.saver.setup()
        return pragmas(lambda statement: self.saver.conn.execute(statement).fetchone()[0])

    def close(self) -> None:
        self.saver.conn.close()


class LangGraphExit(LangGraphSqlite):
    durability = "exit"


class LangGraphDeltas(LangGraphSqlite):
    deltas = True


class LangGraphPostgres(LangGraphSqlite):
    def _open(self) -> Any:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row

        connection: Any = psycopg.connect(self.place, autocommit=True, prepare_threshold=0, row_factory=dict_row)
        saver = PostgresSaver(connection)
        saver.setup()
        return saver

    def settings(self) -> Settings:
        return dict(self.saver.conn.execute("show synchronous_commit").fetchone())


class LangGraphPostgresDeltas(LangGraphPostgres):
    deltas = True


def _schema(deltas: bool) -> Any:
    if deltas:
        from langgraph.channels.delta import DeltaChannel

        joined: Any = Annotated[list, DeltaChannel(_concatenate)]
    else:
        joined = Annotated[list, operator.add]
    lists = dict.fromkeys(("messages", "tools_used", "files_modified", "decisions"), joined)
    make: Any = TypedDict
    return make("Schema", {"turn": int, **lists, "pending_actions": list, "last_tool_results": list})


def _concatenate(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    joined = list(state)
    for each in writes:
        joined += each
    return joined
