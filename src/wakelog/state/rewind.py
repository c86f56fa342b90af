"""The delta of a rewind: which parts of the state are restored, and which never are.

Goal, labels, decisions, facts, working set, file view, artefacts and `data` are restored. Status, turn numbers, budget
spent, flags, checkpoints, dead ends, open actions, sub-agents, lease and trust stay: money is not refunded, effects are
not unsent. A hold stays too: a rewind must not lift what forbids destruction.
"""

from __future__ import annotations

from wakelog.model.document import HOLD_LABEL, REWOUND_PARTS
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta


def restore(now: dict[str, Value], then: dict[str, Value]) -> Delta:
    """The delta that brings the restorable parts of `now` back to what they are in `then`."""
    delta: Delta = []
    for part in REWOUND_PARTS:
        a, b = now[part], then[part]
        if part == "labels":
            a, b = _without_hold(a), _without_hold(b)
        delta += diff(a, b, f"/{part}")
    # A goal is restored together with its origin, which is present only when the goal is not trusted.
    names = [doc.get("goal_from") for doc in (now, then)]
    if names[0] != names[1]:
        put: dict[str, Value] = {"op": "add", "path": "/goal_from", "value": names[1]}
        delta.append(put if names[1] is not None else {"op": "remove", "path": "/goal_from"})
    return delta


def _without_hold(labels: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in labels.items() if name != HOLD_LABEL}


def rewind_delta(now: dict[str, Value], then: dict[str, Value], *, seq: int, to: int) -> Delta:
    """The whole delta of a rewind event at `seq` that goes back to `to`."""
    return [*restore(now, then), {"op": "add", "path": "/view", "value": {"rewound": seq, "to": to}}]
