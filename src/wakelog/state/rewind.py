"""The delta of going back: which parts return to what they were, and which never do.

Goal, labels, decisions, facts, working set, file view, artefacts and `data` are restored. Status, turn numbers, budget
spent, flags, checkpoints, dead ends, open actions, sub-agents, lease and trust stay: money is not refunded, effects are
not unsent.
"""

from __future__ import annotations

from wakelog.model.document import REWOUND_PARTS
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta


def restore(now: dict[str, Value], then: dict[str, Value]) -> Delta:
    """The delta that brings the restorable parts of `now` back to what they are in `then`."""
    delta: Delta = []
    for part in REWOUND_PARTS:
        delta += diff(now[part], then[part], f"/{part}")
    return delta


def rewind_delta(now: dict[str, Value], then: dict[str, Value], *, seq: int, to: int) -> Delta:
    """The whole delta of a rewind event at `seq` that goes back to `to`."""
    return [*restore(now, then), {"op": "add", "path": "/view", "value": {"rewound": seq, "to": to}}]
