"""The one workload: a coding-agent session, the same on every machine because it is made from a seed.

A turn is a message (600 B), three tool calls (input 200 B, output 2 KB, summary 120 B), one file out of 200, a decision
every third turn, and one pending action pushed while the previous turn's is popped: about 8.2 KB as JSON. Everybody
stores all of it. The state is what a program keeps of it to go on: everything but the inputs and outputs of the calls.
It is folded here in a few obvious lines, and every contender's answer is held against this fold.

This file knows nothing of wakelog, so that no contender's process has to load it.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

Turn = dict[str, Any]
"""One turn as plain JSON data: `n`, `message`, `tools`, `file`, `decision`, `push`, `pop`."""

State = dict[str, Any]
"""What turns add up to: `turn`, `messages`, `tools_used`, `files_modified`, `decisions`, `pending_actions`."""

CACHE = Path(__file__).with_name(".cache")
BLOCK = 1000
_FEW = 100
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
    return read_turns(1, count, cache)


def read_turns(first: int, last: int, cache: Path = CACHE) -> list[Turn]:
    """Turns `first` to `last`, both included."""
    if last <= _FEW:
        return [make_turn(n) for n in range(first, last + 1)]
    turns: list[Turn] = []
    start = (first - 1) // BLOCK * BLOCK + 1
    for begin in range(start, last + 1, BLOCK):
        turns += _cached_block(cache / f"turns-{begin}.msgpack", begin)
    return turns[first - start : last - start + 1]


@functools.lru_cache(maxsize=1)
def _cached_block(path: Path, first: int) -> list[Turn]:
    try:
        kept: list[Turn] = msgspec.msgpack.decode(path.read_bytes())
        if kept[0] == make_turn(first):  # else it was made by another version of this file
            return kept
    except (FileNotFoundError, msgspec.DecodeError):
        pass
    made = [make_turn(n) for n in range(first, first + BLOCK)]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(msgspec.msgpack.encode(made))
    partial.replace(path)
    return made


# What it adds up to


def new_state() -> State:
    lists: State = {"messages": [], "tools_used": [], "files_modified": [], "decisions": [], "pending_actions": []}
    return {"turn": 0, **lists}


def delta(turn: Turn) -> dict[str, Any]:
    """The part of a turn that changes the state."""
    kept = {key: turn[key] for key in ("n", "message", "file", "decision", "push", "pop")}
    return {**kept, "tools_used": [used(call, turn["n"]) for call in turn["tools"]]}


def used(call: dict[str, Any], n: int) -> dict[str, Any]:
    """A call as the state remembers it."""
    return {"turn": n, "id": call["id"], "name": call["name"], "summary": call["summary"]}


def bulk(turn: Turn) -> list[dict[str, Any]]:
    """The part that is stored but never in the state."""
    return [{"id": call["id"], "input": call["input"], "output": call["output"]} for call in turn["tools"]]


def apply(state: State, change: dict[str, Any]) -> State:
    """Folds one delta into the state, in place."""
    state["turn"] = change["n"]
    state["messages"].append(change["message"])
    state["tools_used"] += change["tools_used"]
    state["files_modified"].append(change["file"])
    if change["decision"]:
        state["decisions"].append(change["decision"])
    pending = [*state["pending_actions"], change["push"]]
    state["pending_actions"] = [action for action in pending if action["id"] != change["pop"]]
    return state


def fold(turns: Iterable[Turn]) -> State:
    """The reference, and what a bare loop does to get its state back."""
    state = new_state()
    for turn in turns:
        apply(state, delta(turn))
    return state


def differences(a: State, b: State) -> dict[str, Any]:
    """What a program has to do that gets two states where it wanted a diff: which parts gained and lost what."""
    found: dict[str, Any] = {}
    for part, before in a.items():
        after = b[part]
        if before == after:
            continue
        if not isinstance(before, list):
            found[part] = [before, after]
        elif after[: len(before)] == before:
            found[part] = {"added": after[len(before) :]}
        else:
            lost, gained = [x for x in before if x not in after], [x for x in after if x not in before]
            found[part] = {"removed": lost, "added": gained}
    return found
