"""What a model call works with: the model, the system prompt and the list of tools, as labels.

A call says them itself. When one differs from the call before, a `labels.set` says so, just before it: once a turn for
each label, because an agent may use several models by turns, and some prompts hold the time of day.

What the call before worked with is read from the log where this process did not make it. So a replay finds the same.
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
LOOKED_AT = 1024
"""So many events back a call before is looked for."""
_SYSTEM = ("system", "instructions", "system_instruction")
_TOOLS = ("tools", "functions")
_MESSAGES = ("messages", "input")
_ROLES = ("system", "developer")


def labels_of(model: str, told: dict[str, Value], *, is_window: bool = False) -> dict[str, str]:
    """The labels of a call with these arguments, as plain values. Prompt and tools are there as hashes. The messages of
    a window that was made here begin with words of our own, which are no prompt."""
    system = next((told[name] for name in _SYSTEM if told.get(name)), None)
    if system is None and not is_window:
        messages = next((m for name in _MESSAGES if isinstance(m := told.get(name), list)), [])
        system = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") in _ROLES]
    tools = next((told[name] for name in _TOOLS if told.get(name)), None)
    found = {MODEL: model, **{name: hash_value(value) for name, value in ((PROMPT, system), (TOOLS, tools)) if value}}
    return {name: value for name, value in found.items() if value}


class ModelLabels:
    """What the calls of one session work with."""

    def __init__(self) -> None:
        self._now: dict[str, str] | None = None
        self._told: set[str] = set()
        self._turn: Any = None

    def changes(self, log: Log, labels: dict[str, str], turn: Any) -> list[EventDraft]:
        """The event that says what a call changes, if it does. `turn` is the one that is open."""
        if not labels:
            return []
        if turn is not self._turn:
            self._turn, self._told = turn, set()
        known = {name: value for name, value in log.part("labels").items() if name in labels}
        if self._now is None:
            self._now = _labels_before(log)
        now = self._now | known
        new: dict[str, str | None] = {
            name: value for name, value in labels.items() if now.get(name, value) != value and name not in self._told
        }
        before = {name: now[name] for name in new if name not in known}
        self._told |= new.keys()
        self._now = {**labels, **now, **{name: labels[name] for name in new}}
        return [EventDraft(ev.LabelsSet(labels=new, before=before), actor="runtime")] if new else []


def _labels_before(log: Log) -> dict[str, str]:
    """What the newest recorded model call worked with."""
    oldest = log.head().seq - LOOKED_AT
    for entry in walk_back(log):
        if entry.seq < oldest:
            break
        body = entry.body
        params = body.get("params")
        if entry.kind != "action.requested" or body.get("effect") != "model" or not isinstance(params, dict):
            continue
        tools: Any = next((params[name] for name in _TOOLS if params.get(name)), None)
        is_hash = isinstance(tools, dict) and tools.keys() == {"hash"}
        found = {
            MODEL: params.get("model"),
            PROMPT: body.get("prompt_hash"),
            TOOLS: tools["hash"] if is_hash else hash_value(tools) if tools else "",
        }
        return {name: value for name, value in found.items() if isinstance(value, str) and value}
    return {}
