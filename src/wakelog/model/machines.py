"""The three state machines, as tables: session, turn, action.

The log enforces them on append (log/seal.py), and the docs draw them from these tables. An illegal move is an error
that names the legal ones.

While a session is paused, nothing new takes effect, but outcomes of calls that began before are accepted, and so is
whatever an operator does. After the session is closed, only events that add knowledge or change its status are
accepted. `action.evidence` is always accepted: what really happened is never thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# kind → (statuses it may come in, status it leads to). "" is a session that was not opened.
SESSION: Final[dict[str, tuple[frozenset[str], str]]] = {
    "session.opened": (frozenset({""}), "open"),
    "session.forked": (frozenset({"open", "active", "paused", "closed", "archived"}), "open"),
    "turn.started": (frozenset({"open", "active"}), "active"),
    "session.paused": (frozenset({"open", "active"}), "paused"),
    "session.resumed": (frozenset({"open", "active", "paused"}), "active"),
    "session.closed": (frozenset({"open", "active", "paused"}), "closed"),
    "session.reopened": (frozenset({"closed", "archived"}), "active"),
    "session.archived": (frozenset({"closed"}), "archived"),
    "session.deleted": (frozenset({"open", "active", "paused", "closed", "archived"}), "deleted"),
}

# Accepted in any status but deleted.
ALWAYS: Final = frozenset(
    {
        "action.evidence",
        "action.reconciled",
        "checkpoint.named",
        "flag.cleared",
        "flag.raised",
        "gap.noted",
        "git_commit.linked",
        "knowledge.recalled",
        "labels.set",
        "lease.released",
        "lease.taken",
        "note.added",
        "payload.erased",
        "payload.redacted",
        "range.pruned",
        "step.invalidated",
        "trust.endorsed",
    }
)

# Accepted while paused, besides ALWAYS: outcomes of what began before, and what an operator does.
WHILE_PAUSED: Final = frozenset(
    {
        "action.abandoned",
        "action.approved",
        "action.denied",
        "action.failed",
        "action.succeeded",
        "action.timed_out",
        "action.uncertain",
        "budget.reached",
        "budget.set",
        "budget.spent",
        "context.evicted",
        "context.restored",
        "file.changed",
        "history.rewound",
        "input.answered",
        "message.added",
        "subagent.returned",
        "turn.ended",
    }
)

# kind → (turn statuses it may come in, status it leads to). "ended" stands for the outcome that turn.ended names.
TURN: Final[dict[str, tuple[frozenset[str], str]]] = {
    "turn.started": (frozenset({"", "completed", "failed", "interrupted"}), "open"),
    "turn.ended": (frozenset({"open"}), "ended"),
}

# kind → (action statuses it may come in, status it leads to). "" is no such action; "done" leaves the pending list.
# action.requested with approval=True leads to "waiting" instead; action.failed and action.timed_out with retry=True
# lead back to "requested".
ACTION: Final[dict[str, tuple[frozenset[str], str]]] = {
    "action.requested": (frozenset({""}), "requested"),
    "action.recorded": (frozenset({""}), "done"),
    "action.approved": (frozenset({"waiting"}), "requested"),
    "action.denied": (frozenset({"waiting", "requested"}), "done"),
    "action.started": (frozenset({"requested"}), "running"),
    "action.succeeded": (frozenset({"requested", "running", "uncertain"}), "done"),
    "action.failed": (frozenset({"requested", "running", "uncertain"}), "done"),
    "action.timed_out": (frozenset({"requested", "running"}), "done"),
    "action.uncertain": (frozenset({"requested", "running"}), "uncertain"),
    "action.reconciled": (frozenset({"uncertain"}), "done"),
    "action.abandoned": (frozenset({"waiting", "requested", "running", "uncertain"}), "done"),
}

OF_ACTIONS: Final[frozenset[str]] = frozenset({*ACTION, "action.evidence"})
"""Every kind that names an action."""


def allowed_in(status: str, kind: str) -> bool:
    """Whether an event of this kind may be appended to a session in this status."""
    move = SESSION.get(kind)
    if move is not None:
        return status in move[0]
    if status in ("active", "open"):
        return True
    if status == "paused":
        return kind in ALWAYS or kind in WHILE_PAUSED
    return status in ("closed", "archived") and kind in ALWAYS


def legal_in(status: str) -> tuple[str, ...]:
    """Returns the session moves that are legal in this status, for the error message."""
    return tuple(
        sorted(kind for kind, (origins, _) in SESSION.items() if status in origins and kind != "session.forked")
    )


def legal_for_action(status: str) -> tuple[str, ...]:
    return tuple(sorted(kind for kind, (origins, _) in ACTION.items() if status in origins))


_LATE: Final = ALWAYS | {"session.reopened", "session.archived", "session.deleted"}


def are_late(kinds: Iterable[str]) -> bool:
    """Whether a closed session accepts events of these kinds, in the order in which each first comes."""
    for kind in kinds:
        if kind not in _LATE:
            return False
        if kind == "session.reopened":
            break  # what follows is of a session that is active
    return True
