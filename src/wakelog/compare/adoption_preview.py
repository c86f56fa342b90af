"""Shows in advance what adopting a fork would do: what is copied, what leaves the view, what stays."""

from __future__ import annotations

from collections import Counter

import msgspec

from wakelog.compare.divergence import significant_changes
from wakelog.diff.rewind_preview import Beyond, effects_between
from wakelog.diff.turn_diff import Change, turn_diff
from wakelog.log import Log
from wakelog.log.adoption import plan_adoption
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq, SessionId
from wakelog.timeline.points import read_view


class AdoptionPreview(msgspec.Struct, frozen=True):
    """All a person needs to know before saying yes."""

    session: SessionId
    head: Seq
    fork: SessionId
    left: Seq
    """Where the fork left the session."""
    at: Seq
    """The last event of the fork that is adopted."""
    to: Seq
    """Where the view goes back to: `left`, unless the fork itself went back further."""
    copied: dict[str, int]
    """Events that are copied, by kind."""
    gone: int
    """Events that cannot be copied: their content was erased or pruned."""
    leaving: int
    """Turns of the session that leave the view."""
    changes: tuple[Change, ...]
    """What changes in the state."""
    effects: tuple[Beyond, ...]
    """Calls with effects that the fork made. They happened; they stay calls of the fork."""
    cost: ev.Cost = ev.Cost()
    """What the fork spent and the session will count as well."""


def preview_adoption(log: Log, fork: Log, at: Seq | None = None, *, force: bool = False) -> AdoptionPreview:
    """What `adopt` would do now. Raises as the adoption itself would."""
    plan = plan_adoption(log, fork, at, why="", force=force)
    rewound, adopted = (step.draft.event for step in plan.steps[:2])
    assert isinstance(rewound, ev.HistoryRewound)
    assert isinstance(adopted, ev.HistoryAdopted)
    point = fork.head().fork
    assert point is not None
    turns = {entry.header.turn for entry in read_view(log, plan.head, first=rewound.to + 1)}
    return AdoptionPreview(
        session=log.id,
        head=plan.head,
        fork=fork.id,
        left=point.at,
        at=adopted.at,
        to=rewound.to,
        copied=dict(Counter(step.draft.event.kind for step in plan.steps[2:])),
        gone=adopted.gone,
        leaving=len(turns - {0}),
        changes=tuple(c for c in significant_changes(turn_diff(log, plan.head, fork, adopted.at)) if _is_adopted(c)),
        effects=effects_between(fork, point.at, adopted.at),
        cost=adopted.cost,
    )


def _is_adopted(change: Change) -> bool:
    """Whether adopting makes this change: it replaces the parts that a rewind restores, and adds the fork's dead
    ends."""
    part = change.pointer.split("/")[1]
    return part in (*REWOUND_PARTS, "goal_from") or (part == "dead_ends" and change.how == "added")
