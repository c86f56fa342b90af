"""The turns of the workload as our events: what wakelog is given where others are given the turn itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from benchmarks.turns import CACHE, State, Turn, make_turn, make_turns, used
from wakelog.log import Log
from wakelog.model import events as ev

__all__ = [
    "CACHE",
    "COMMITS_FULLY_RECORDED",
    "Summary",
    "Turn",
    "events_of",
    "full_recording",
    "lists_of",
    "make_turn",
    "make_turns",
    "parts_of",
    "seq_after",
    "summarise",
    "summary_of",
]

COMMITS_FULLY_RECORDED = 8
"""Durable commits of one turn in `full_recording`."""
_PUSHED = "plan"
"""The tool whose calls are the workload's pending actions."""


def events_of(turn: Turn) -> list[ev.Event]:
    """The turn as events, to be appended as one durable commit."""
    calls = [
        ev.ActionRecorded(
            action=call["id"],
            tool=call["name"],
            effect="read",
            input=call["input"],
            output=call["output"],
            output_summary=call["summary"],
        )
        for call in turn["tools"]
    ]
    return [*_opening(turn), *calls, *_ending(turn)]


def full_recording(log: Log, turn: Turn) -> None:
    """The turn as it is recorded live: each call's intent is durable before it runs, its outcome after."""
    log.append(*_opening(turn))
    for call in turn["tools"]:
        action = call["id"]
        request = ev.ActionRequested(action=action, tool=call["name"], effect="read", input=call["input"])
        log.append(request, ev.ActionStarted(action=action))
        log.append(ev.ActionSucceeded(action=action, output=call["output"], output_summary=call["summary"]))
    log.append(*_ending(turn))


def parts_of(turn: Turn) -> list[Any]:
    """The same turn cut at the same places as `full_recording`, for a bare loop."""
    parts: list[Any] = [{"n": turn["n"], "message": turn["message"]}]
    for call in turn["tools"]:
        parts.append({"id": call["id"], "name": call["name"], "input": call["input"]})
        parts.append({"id": call["id"], "output": call["output"], "summary": call["summary"]})
    parts.append({key: turn[key] for key in ("n", "file", "decision", "push", "pop")})
    return parts


def _opening(turn: Turn) -> list[ev.Event]:
    message = turn["message"]
    return [ev.TurnStarted(), ev.MessageAdded(role=message["role"], content=message["text"])]


def _ending(turn: Turn) -> list[ev.Event]:
    push, pop, decision = turn["push"], turn["pop"], turn["decision"]
    events: list[ev.Event] = [ev.FileChanged(path=turn["file"])]
    if decision:
        events.append(ev.DecisionMade(choice=decision["what"], because=decision["why"]))
    events.append(ev.ActionRequested(action=push["id"], tool=_PUSHED, effect="write", input=push["what"]))
    if pop:
        events.append(ev.ActionSucceeded(action=pop))
    events.append(ev.TurnEnded())
    return events


def seq_after(turns: Iterable[Turn]) -> int:
    """Where a session stands after these turns, one commit each; opening it is event 1."""
    return 1 + sum(len(events_of(turn)) for turn in turns)


# Our answers beside the reference's


class Summary(msgspec.Struct):
    """What our state document and the reference state both tell. The document is bounded: it counts calls and changes
    by name, where the reference lists them."""

    turn: int
    tools: dict[str, int]
    files: dict[str, int]
    decisions: list[tuple[str, str]]
    pending: list[str]


def summarise(state: State) -> Summary:
    """The reference state as a summary."""
    return Summary(
        turn=state["turn"],
        tools=dict(Counter(call["name"] for call in state["tools_used"])),
        files=dict(Counter(state["files_modified"])),
        decisions=[(made["what"], made["why"]) for made in state["decisions"]],
        pending=[action["id"] for action in state["pending_actions"]],
    )


def summary_of(document: dict[str, Any]) -> Summary:
    """Our state document as a summary."""
    made = sorted(document["decisions_made"].items(), key=lambda item: int(item[0]))
    return Summary(
        turn=document["turn"]["number"],
        tools={name: use["calls"] for name, use in document["tools_used"].items() if name != _PUSHED},
        files={path: use["changes"] for path, use in document["files_modified"].items()},
        decisions=[(decision["choice"], decision["because"]) for _, decision in made],
        pending=list(document["pending_actions"]),
    )


def lists_of(log: Log, document: dict[str, Any], upto: int | None = None) -> State:
    """The reference state out of our log: one pass over it for the lists that our document does not keep."""
    state: State = {"turn": document["turn"]["number"]}
    messages, calls, files = [], [], []
    for entry in log.entries(upto=upto):
        body = entry.body
        match entry.kind:
            case "message.added":
                messages.append({"role": body["role"], "text": log.value(entry, body["content"])})
            case "action.recorded":
                call = {"id": body["action"], "name": body["tool"], "summary": body["output_summary"]}
                calls.append(used(call, entry.header.turn))
            case "file.changed":
                files.append(body["path"])
    made = sorted(document["decisions_made"].items(), key=lambda item: int(item[0]))
    decisions = [{"what": decision["choice"], "why": decision["because"]} for _, decision in made]
    pending = []
    for name, action in document["pending_actions"].items():
        request = log.entry(action["seq"])
        pending.append({"id": name, "what": log.value(request, request.body["input"])})
    lists: State = {"messages": messages, "tools_used": calls, "files_modified": files}
    return {**state, **lists, "decisions": decisions, "pending_actions": pending}
