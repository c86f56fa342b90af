"""The one workload: a coding-agent session, the same on every machine because it is made from a seed.

A turn is a message (600 B), three tool calls (input 200 B, output 2 KB, summary 120 B), one file out of 200, a
decision every third turn, and one pending action pushed while the previous turn's is popped: about 8.2 KB as JSON. The
bare loops store the turn as that JSON; wakelog stores `events_of(turn)`, which holds everything the turn holds.

`Summary` is what a session adds up to, folded here in a few obvious lines. Every contender's state is compared with it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from wakelog.log import Log
from wakelog.model import events as ev

Turn = dict[str, Any]
"""One turn as plain JSON data: `n`, `message`, `tools`, `file`, `decision`, `push`, `pop`."""

CACHE = Path(__file__).with_name(".cache")
COMMITS_FULLY_RECORDED = 8
"""Durable commits of one turn in `full_recording`."""

_BLOCK = 1000
_TEXT = (
    "def return import class self async await None True False error trace test assert "
    "module config session event state delta snapshot commit branch merge rebase index "
    "cursor query schema table column value token parse render build cache lock thread "
    "file path read write open close retry timeout limit offset batch queue worker"
)
_WORDS = _TEXT.split()
_TOOLS = ("read_file", "edit_file", "run_tests", "grep", "bash", "list_dir")
_FILES = [f"src/pkg_{i // 20}/module_{i:03d}.py" for i in range(200)]


def make_turn(n: int, seed: int = 7) -> Turn:
    """Turn `n`, counted from 1."""
    rng = random.Random(seed * 1_000_003 + n)
    tools = []
    for k in range(3):
        call = {
            "id": f"call_{n:06d}_{k}",
            "name": rng.choice(_TOOLS),
            "input": {
                "path": rng.choice(_FILES),
                "pattern": _text(rng, 60),
                "args": _text(rng, 70),
                "line": rng.randrange(5000),
            },
            "output": _text(rng, 2048),
            "summary": _text(rng, 120),
        }
        tools.append(call)
    return {
        "n": n,
        "message": {"role": "user" if n % 2 else "assistant", "text": _text(rng, 600)},
        "tools": tools,
        "file": rng.choice(_FILES),
        "decision": {"what": _text(rng, 60), "why": _text(rng, 200)} if n % 3 == 0 else None,
        "push": {"id": f"act_{n:06d}", "what": _text(rng, 50)},
        "pop": f"act_{n - 1:06d}" if n > 1 else None,
    }


def _text(rng: random.Random, size: int) -> str:
    words: list[str] = []
    length = 0
    while length < size:
        word = rng.choice(_WORDS)
        if rng.random() < 0.15:
            word += str(rng.randrange(10000))
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]


def make_turns(count: int, cache: Path = CACHE) -> list[Turn]:
    """The first `count` turns. Making one takes about 2 ms, so whole blocks are kept on disk."""
    if count <= 100:
        return [make_turn(n) for n in range(1, count + 1)]
    turns: list[Turn] = []
    for first in range(1, count + 1, _BLOCK):
        turns += _cached_block(cache / f"turns-{first}.msgpack", first)
    return turns[:count]


def _cached_block(path: Path, first: int) -> list[Turn]:
    try:
        kept: list[Turn] = msgspec.msgpack.decode(path.read_bytes())
        if kept[0] == make_turn(first):  # else it was made by another version of this file
            return kept
    except (FileNotFoundError, msgspec.DecodeError):
        pass
    made = [make_turn(n) for n in range(first, first + _BLOCK)]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(msgspec.msgpack.encode(made))
    partial.replace(path)
    return made


# As our events


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
    events.append(ev.ActionRequested(action=push["id"], tool="plan", effect="write", input=push["what"]))
    if pop:
        events.append(ev.ActionSucceeded(action=pop))
    events.append(ev.TurnEnded())
    return events


def seq_after(turns: Iterable[Turn]) -> int:
    """Where a session stands after these turns, one commit each; opening it is event 1."""
    return 1 + sum(len(events_of(turn)) for turn in turns)


# What it adds up to


class Summary(msgspec.Struct):
    """The state after some turns, without anything only one contender would keep."""

    turn: int = 0
    tools: dict[str, int] = msgspec.field(default_factory=dict)
    files: dict[str, int] = msgspec.field(default_factory=dict)
    decisions: list[tuple[str, str]] = msgspec.field(default_factory=list)
    pending: list[str] = msgspec.field(default_factory=list)


def fold(turns: Iterable[Turn]) -> Summary:
    """The reference, and what a bare loop does to get its state back."""
    total = Summary()
    tools, files, pending = total.tools, total.files, total.pending
    for turn in turns:
        total.turn = turn["n"]
        for call in turn["tools"]:
            tools[call["name"]] = tools.get(call["name"], 0) + 1
        tools["plan"] = tools.get("plan", 0) + 1
        files[turn["file"]] = files.get(turn["file"], 0) + 1
        if decision := turn["decision"]:
            total.decisions.append((decision["what"], decision["why"]))
        pending.append(turn["push"]["id"])
        if turn["pop"]:
            pending.remove(turn["pop"])
    return total


def summary_of(state: dict[str, Any]) -> Summary:
    """Our state document as a summary."""
    made = sorted(state["decisions_made"].items(), key=lambda item: int(item[0]))
    return Summary(
        turn=state["turn"]["number"],
        tools={name: use["calls"] for name, use in state["tools_used"].items()},
        files={path: use["changes"] for path, use in state["files_modified"].items()},
        decisions=[(decision["choice"], decision["because"]) for _, decision in made],
        pending=list(state["pending_actions"]),
    )
