"""What a model call works with: the model, the system prompt and the list of tools, as labels.

The first call of a session says them itself. When a later one differs, a `labels.set` says so, just before it. An agent
may use several models by turns: what was used in a turn before is no change in it.
"""

from __future__ import annotations

from typing import Any

from wakelog.codec.canonical import hash_value
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.model.values import Value

_SYSTEM = ("system", "instructions", "system_instruction")
_TOOLS = ("tools", "functions")
_MESSAGES = ("messages", "input")
_ROLES = ("system", "developer")


def labels_of(model: str, told: dict[str, Value]) -> dict[str, str]:
    """The labels of a call with these arguments, as plain values. Prompt and tools are there as hashes."""
    system = next((told[name] for name in _SYSTEM if told.get(name)), None)
    if system is None:
        messages = next((m for name in _MESSAGES if isinstance(m := told.get(name), list)), [])
        system = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") in _ROLES]
    tools = next((told[name] for name in _TOOLS if told.get(name)), None)
    found = {"model": model, **{name: hash_value(v) for name, v in (("system_prompt", system), ("tools", tools)) if v}}
    return {name: value for name, value in found.items() if value}


class ModelLabels:
    """What the calls of one session work with, as far as this process knows."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._used: set[tuple[str, str]] = set()
        self._turn: Any = None

    def changes(self, log: Log, labels: dict[str, str], turn: Any) -> list[EventDraft]:
        """The event that says what a call changes, if it does. `turn` is the one that is open."""
        if not labels:
            return []
        if turn is not self._turn:
            self._turn, self._used = turn, set()
        known = {name: value for name, value in log.part("labels").items() if name in labels}
        self._now |= known
        new: dict[str, str | None] = {
            name: value
            for name, value in labels.items()
            if self._now.get(name, value) != value and (name, value) not in self._used
        }
        before = {name: self._now[name] for name in new if name not in known}
        self._used |= labels.items()
        self._now = {**labels, **self._now, **{name: labels[name] for name in new}}
        return [EventDraft(ev.LabelsSet(labels=new, before=before), actor="runtime")] if new else []
