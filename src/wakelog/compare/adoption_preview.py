"""What adopting a fork would do, before it is done: what is taken over, what leaves the view, what stays."""

from __future__ import annotations

from collections import Counter

import msgspec

from wakelog.compare.divergence import telling
from wakelog.diff.rewind_preview import Beyond, effects_between
from wakelog.diff.turn_diff import Change, turn_diff
from wakelog.log import Log
from wakelog.log.adoption import plan_adoption
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq, SessionId


class AdoptionPreview(msgspec.Struct, frozen=True):
    """All a person needs to know before saying yes."""

    session: SessionId
    head: Seq
    fork: SessionId
    left: Seq
    """Where the fork left the session."""
    at: Seq
    """How far the fork is taken."""
    to: Seq
    """Where the view goes back to: `left`, unless the fork itself went back further."""
    copied: dict[str, int]
    """Events that are copied, by kind."""
    gone: int
    """Events that cannot be: their content was erased or pruned."""
    leaving: int
    """Turns of the session that leave the view."""
    changes: tuple[Change, ...]
    """What becomes different in the state."""
    effects: tuple[Beyond, ...]
    """Calls with effects that the fork made: they happened, and stay its own."""
    cost: ev.Cost = ev.Cost()
    """What the fork spent that will count for the session, too."""


def _is_taken(change: Change) -> bool:
    """Whether adopting makes a change: it restores what a rewind does, and brings the fork's dead ends."""
    part = change.pointer.split("/")[1]
    return part in (*REWOUND_PARTS, "goal_from") or (part == "dead_ends" and change.how == "added")


def preview_adoption(log: Log, fork: Log, at: Seq | None = None, *, force: bool = False) -> AdoptionPreview:
    """What `adopt` would do now. Raises as the adoption itself would."""
    plan = plan_adoption(log, fork, at, why="", force=force)
    rewound, adopted = (step.draft.event for step in plan.steps[:2])
    assert isinstance(rewound, ev.HistoryRewound)
    assert isinstance(adopted, ev.HistoryAdopted)
    point = fork.head().fork
    assert point is not None
    turns = {
        entry.header.turn
        for low, high in log.view(plan.head)
        if high > rewound.to
        for entry in log.entries(after=max(low - 1, rewound.to), upto=high)
    }
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
        changes=tuple(c for c in telling(turn_diff(log, plan.head, fork, adopted.at)) if _is_taken(c)),
        effects=effects_between(fork, point.at, adopted.at),
        cost=adopted.cost,
    )
