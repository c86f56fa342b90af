"""The aggregate of the eventsourcing peer. At the top of a module, because the library finds it by its name."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from benchmarks.turns import Turn, new_state

SNAPSHOT_EVENTS = 1000
"""A snapshot about every hundred turns."""


class AgentSession(Aggregate):  # type: ignore[misc]  # the library is not installed where types are checked
    @event("Started")
    def __init__(self, name: str) -> None:
        self.name = name
        self.state = new_state()

    @staticmethod
    def create_id(name: str) -> UUID:
        return uuid5(NAMESPACE_URL, name)

    def play(self, turn: Turn) -> None:
        n = turn["n"]
        self.say(turn["message"])
        for call in turn["tools"]:
            known = {"turn": n, "id": call["id"]}
            self.call_tool({**known, "name": call["name"], "input": call["input"]})
            self.answer({**known, "output": call["output"], "summary": call["summary"]})
        self.modify(turn["file"])
        if turn["decision"]:
            self.decide(turn["decision"])
        self.push(turn["push"])
        if turn["pop"]:
            self.pop(turn["pop"])

    @event("MessageAdded")
    def say(self, message: Any) -> None:
        self.state["turn"] += 1
        self.state["messages"].append(message)

    @event("ToolCalled")
    def call_tool(self, call: Any) -> None:
        known = {"turn": call["turn"], "id": call["id"], "name": call["name"]}
        self.state["tools_used"].append({**known, "summary": None})

    @event("ToolReturned")
    def answer(self, result: Any) -> None:
        self.state["tools_used"][-1]["summary"] = result["summary"]

    @event("FileModified")
    def modify(self, path: str) -> None:
        self.state["files_modified"].append(path)

    @event("DecisionMade")
    def decide(self, decision: Any) -> None:
        self.state["decisions"].append(decision)

    @event("ActionPushed")
    def push(self, action: Any) -> None:
        self.state["pending_actions"].append(action)

    @event("ActionPopped")
    def pop(self, name: str) -> None:
        pending = self.state["pending_actions"]
        self.state["pending_actions"] = [action for action in pending if action["id"] != name]


class App(Application):  # type: ignore[misc]  # as above
    is_snapshotting_enabled = True
    snapshotting_intervals = {AgentSession: SNAPSHOT_EVENTS}  # noqa: RUF012  # read by the library
