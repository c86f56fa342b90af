"""Labels of a model call: the model, the system prompt and the list of tools.

Each request holds them. When one differs from the previous call, a `labels.set` event just before the request says so.
It is recorded once a turn for each label, because an agent may alternate between models, and some prompts contain the
time of day.

If another process made the previous call, its labels are read from the log. So a replay finds the same changes.
"""

from __future__ import annotations

from typing import Any

from wakelog.codec.canonical import hash_value
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.timeline.points import walk_back

MODEL, PROMPT, TOOLS = "model", "system_prompt", "tools"
LOOK_BACK = 1024
"""How many events to search for the previous call."""
_SYSTEM = ("system", "instructions", "system_instruction")
_TOOLS = ("tools", "functions")
_MESSAGES = ("messages", "input")
_ROLES = ("system", "developer")


def labels_of(model: str, arguments: dict[str, Value], *, is_window: bool = False) -> dict[str, str]:
    """Returns the labels of a call with these arguments; prompt and tools are hashes. Messages from
    `session.context.window` start with our own text, which is not a prompt: `is_window` ignores them."""
    system = next((arguments[name] for name in _SYSTEM if arguments.get(name)), None)
    if system is None and not is_window:
        messages = next((m for name in _MESSAGES if isinstance(m := arguments.get(name), list)), [])
        system = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") in _ROLES]
    tools = next((arguments[name] for name in _TOOLS if arguments.get(name)), None)
    results = {MODEL: model, **{name: hash_value(value) for name, value in ((PROMPT, system), (TOOLS, tools)) if value}}
    return {name: value for name, value in results.items() if value}


class ModelLabels:
    """Tracks the labels of one session's model calls."""

    def __init__(self) -> None:
        self._now: dict[str, str] | None = None
        self._recorded: set[str] = set()
        self._turn: Any = None

    def changes(self, log: Log, labels: dict[str, str], turn: Any) -> list[EventDraft]:
        """Returns the event for the labels that this call changes, if any. `turn` is the open turn."""
        if not labels:
            return []
        if turn is not self._turn:
            self._turn, self._recorded = turn, set()
        known = {name: value for name, value in log.part("labels").items() if name in labels}
        if self._now is None:
            self._now = _labels_before(log)
        now = self._now | known
        new: dict[str, str | None] = {
            name: value
            for name, value in labels.items()
            if now.get(name, value) != value and name not in self._recorded
        }
        before = {name: now[name] for name in new if name not in known}
        self._recorded |= new.keys()
        self._now = {**labels, **now, **{name: labels[name] for name in new}}
        return [EventDraft(ev.LabelsSet(labels=new, before=before), actor="runtime")] if new else []


def _labels_before(log: Log) -> dict[str, str]:
    """Reads the labels of the newest recorded model call."""
    oldest = log.head().seq - LOOK_BACK
    for entry in walk_back(log):
        if entry.seq < oldest:
            break
        body = entry.body
        params = body.get("params")
        if entry.kind != "action.requested" or body.get("effect") != "model" or not isinstance(params, dict):
            continue
        tools: Any = next((params[name] for name in _TOOLS if params.get(name)), None)
        is_hash = isinstance(tools, dict) and tools.keys() == {"hash"}
        results = {
            MODEL: params.get("model"),
            PROMPT: body.get("prompt_hash"),
            TOOLS: tools["hash"] if is_hash else hash_value(tools) if tools else "",
        }
        return {name: value for name, value in results.items() if isinstance(value, str) and value}
    return {}
