"""The state document: the result of folding a session's events.

It is typed for readers and published as JSON Schema; the fold itself works on plain JSON (state/). It uses maps by name
or seq instead of lists, so that a change of one entry costs one entry. Messages are not part of it: they are read from
the log.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.payloads import is_erased
from wakelog.model.values import Value


class Erased(msgspec.Struct, frozen=True):
    """Stands where a value was erased; names the event whose content it was."""

    seq: int = msgspec.field(name="$erased")


Text = str | Erased
"""Text that a person or a model wrote, and that can be erased."""


class TurnState(msgspec.Struct, frozen=True, omit_defaults=True):
    number: int
    attempt: int
    status: str
    holder: str = ""
    """The process that owns the turn while it is open."""


class View(msgspec.Struct, frozen=True):
    """The newest rewind in effect and the point it went back to; zeros if there is none."""

    rewound: int
    to: int


class Lease(msgspec.Struct, frozen=True):
    epoch: int
    holder: str


class ToolUse(msgspec.Struct, frozen=True):
    calls: int
    errors: int
    last: int


class FileUse(msgspec.Struct, frozen=True):
    changes: int
    last: int
    change: str


class Decision(msgspec.Struct, frozen=True):
    choice: Text
    turn: int
    because: Text = ""
    alternatives: tuple[Text, ...] = ()
    assumptions: tuple[Text, ...] = ()
    evidence: tuple[int | Text, ...] = ()


class PendingAction(msgspec.Struct, frozen=True):
    """A call without an outcome yet, or a question to a person (then `tool` is "input")."""

    tool: str
    status: Literal["waiting", "requested", "running", "uncertain"]
    effect: str
    seq: int
    turn: int
    attempt: int = 0
    key: Text = ""
    input_hash: Text = ""
    prompt: Text = ""


class Fact(msgspec.Struct, frozen=True):
    value: Value
    seq: int
    trust: str = "trusted"


class WorkingSet(msgspec.Struct, frozen=True):
    files: dict[str, int]
    apps: dict[str, int]
    data_sources: dict[str, int]


class Budget(msgspec.Struct, frozen=True):
    limits: dict[str, int]
    spent: dict[str, int]


class GoalFrom(msgspec.Struct, frozen=True):
    """The event that set a goal which is not trusted."""

    seq: int
    trust: str
    source: str = ""


class State(msgspec.Struct, frozen=True):
    """The whole document. Numbers called `seq` or `last` are positions in the log."""

    status: str
    turn: TurnState
    view: View
    lease: Lease
    goal: Text | None
    labels: dict[str, Text]
    tools_used: dict[str, ToolUse]
    files_modified: dict[str, FileUse]
    decisions_made: dict[str, Decision]
    pending_actions: dict[str, PendingAction]
    facts: dict[str, Fact]
    dead_ends: dict[str, dict[str, Value]]
    artefacts: dict[str, dict[str, Value]]
    subagents: dict[str, dict[str, Value]]
    working_set: WorkingSet
    evicted_keys: dict[str, dict[str, Value]]
    last_error: dict[str, Value] | None
    budget: Budget
    flags: dict[str, dict[str, Value]]
    checkpoints: dict[str, int]
    trust: dict[str, dict[str, Value]]
    data: dict[str, Value]
    goal_from: GoalFrom | None = None
    """Where the goal came from, if it is not trusted."""

    def _repr_html_(self) -> str:
        from wakelog.model.html import box, tree

        return box("state", [tree(msgspec.to_builtins(self))], "wakelog state")


def empty_document() -> dict[str, Value]:
    """Returns the document before `session.opened` fills it."""
    return {
        "status": "open",
        "turn": {"number": 0, "attempt": 1, "status": ""},
        "view": {"rewound": 0, "to": 0},
        "lease": {"epoch": 0, "holder": ""},
        "goal": None,
        "labels": {},
        "tools_used": {},
        "files_modified": {},
        "decisions_made": {},
        "pending_actions": {},
        "facts": {},
        "dead_ends": {},
        "artefacts": {},
        "subagents": {},
        "working_set": {"files": {}, "apps": {}, "data_sources": {}},
        "evicted_keys": {},
        "last_error": None,
        "budget": {"limits": {}, "spent": {}},
        "flags": {},
        "checkpoints": {},
        "trust": {},
        "data": {},
    }


def is_key(text: str) -> bool:
    """Whether a text is a JSON Pointer into the state: its first token is a part of the document."""
    return text.startswith("/") and text[1:].partition("/")[0] in empty_document()


REWOUND_PARTS = (
    "goal",
    "labels",
    "tools_used",
    "files_modified",
    "decisions_made",
    "facts",
    "artefacts",
    "working_set",
    "evicted_keys",
    "last_error",
    "data",
)
"""The parts that a rewind restores. The others stay: money is not refunded, and effects are not undone."""

KEPT_BY_ADAPTERS = "/data/$"
"""Keys of `data` that start with `$` belong to an adapter; they say nothing about what the agent did."""

HOLD_LABEL = "hold"
"""The label that forbids erasing, pruning and deleting; its value is the reason. A rewind does not lift it."""


def agent_ops(delta: Value) -> list[dict[str, Value]]:
    """Returns the operations of a patch that show what the agent did."""
    ops = delta if type(delta) is list else []
    return [op for op in ops if type(op) is dict and not str(op.get("path")).startswith(KEPT_BY_ADAPTERS)]


def agent_data(data: dict[str, Value]) -> dict[str, Value]:
    """Returns the session's data without the keys that belong to an adapter."""
    return {key: value for key, value in data.items() if key[:1] != "$"}


def name_objects(value: Value) -> Value:
    """Shortens what an adapter stored in its own form, for a line of text: a message with its class under `$object`
    becomes `{"HumanMessage": "hello"}`, and a number under `$exact` its digits."""
    if type(value) is list:
        return [name_objects(item) for item in value]
    if type(value) is not dict:
        return value
    match value.get("$exact"):
        case ["int" | "float", str(digits)]:
            return digits
    fields = {name: name_objects(item) for name, item in value.items() if name != "$object"}
    if type(kind := value.get("$object")) is not str:
        return fields if "$object" not in value else value
    filled = {name: item for name, item in fields.items() if item not in (None, "", [], {})}
    return {kind.rpartition(".")[2]: filled.get("content", filled)}


def decision_words(decision: Value) -> str:
    """Describes a decision: chose … instead of … because …"""
    if type(decision) is not dict:
        return "a decision"
    text = f"chose {_text(decision.get('choice'))}"
    if alternatives := decision.get("alternatives"):
        text += f" instead of {', '.join(map(_text, alternatives))}"
    if because := decision.get("because"):
        text += f" because {_text(because)}"
    return text


def _text(value: Value) -> str:
    return value if type(value) is str else "(erased)" if is_erased(value) else str(value)
