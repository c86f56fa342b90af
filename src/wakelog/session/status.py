"""A session's current condition: what it waits for, whether it needs a person, and whether it was just left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from wakelog.errors import CorruptLogError
from wakelog.log.deleted_origins import ORIGIN
from wakelog.model.ids import Seq
from wakelog.model.records import Head
from wakelog.model.values import Value

if TYPE_CHECKING:
    from wakelog.session.session import Session

MONITOR, STALL = "monitor", "stall"
"""The actor of flags raised by rules, and the flag of a session that went silent."""
FLAGS_SKIPPED = 32
"""How many of the newest events may be flags when looking for the last real work."""
STUCK_S = 300
"""A turn or call that is open this long without news, and without a living writer, is stuck."""

Need = Literal["waiting", "uncertain", "stuck", "over-budget", "paused", "running", "idle", "ended"]
"""What a session needs, most urgent first."""
NEEDS: tuple[Need, ...] = get_args(Need)
URGENT = NEEDS[:4]
"""Needs that a person should look at."""

PARTS = ("status", "turn", "goal", "labels", "budget", "view", "trust", "pending_actions", "flags", "last_error")
"""The parts of the state that tell a condition. The others can be large."""


class SessionCondition(msgspec.Struct, frozen=True):
    """A session's condition at a point."""

    head: Head
    seq: Seq
    at: int
    document: dict[str, Value]
    """The state, at least PARTS of it."""
    holder: str
    needs: tuple[str, ...]
    """What it needs, most urgent first; never empty."""

    @property
    def status(self) -> str:
        return str(self.document["status"])

    @property
    def need(self) -> str:
        return self.needs[0]

    @property
    def pending(self) -> dict[str, Any]:
        pending: dict[str, Any] = self.document["pending_actions"]
        return pending


def read_condition(session: Session[Any], at: Seq | None = None, head: Head | None = None) -> SessionCondition:
    """Reads a session's head and state. It costs O(state), however long the history is. A caller that has just opened
    the session passes its `head`."""
    with session.log.one_look():
        return _read_condition(session, at, session.head if head is None else head)


def _read_condition(session: Session[Any], at: Seq | None, head: Head) -> SessionCondition:
    document = _document(session, head) if at is None else session.log.state(at)
    holder = session.log.living_holder() if at is None else ""
    # Only importers say when something happened; else it is when it was stored, and the head tells that.
    is_live = at is None and document["status"] not in ("closed", "archived") and ORIGIN not in document["labels"]
    when = head.at if is_live else _happened(session, at or head.seq, head.at)
    if document["flags"]:
        when = _last_work(session, at or head.seq, when)
    is_over = any(use.is_reached for use in session.budget.spent(at))
    needs = _needs(document, holder, session.log.clock() - when, is_over)
    return SessionCondition(head, at or head.seq, when, document, holder, needs)


def _document(session: Session[Any], head: Head) -> dict[str, Value]:
    """Returns the state at the head. Usually that is the cached newest state, which saves a read, and PARTS of it."""
    log = session.log
    seq, document = log.parts(*PARTS) if not log.even_damaged else (0, {})
    return document if seq == head.seq else log.state(head.seq)


def _happened(session: Session[Any], seq: Seq, otherwise: int) -> int:
    """Returns when an event was written, or for an import, when its newest record happened; `otherwise` if it cannot be
    read."""
    try:
        entry = session.log.entry(seq)
    except CorruptLogError:
        return otherwise
    return entry.happened_at if entry.kind in ("records.imported", "session.closed") else entry.header.at


def _last_work(session: Session[Any], upto: Seq, when: int) -> int:
    """Returns when something last happened, ignoring flags: a flag about silence is not activity."""
    newest = list(session.log.entries(after=max(0, upto - FLAGS_SKIPPED), upto=upto))
    return next((e.happened_at for e in reversed(newest) if e.header.actor != MONITOR), when)


def _needs(document: Mapping[str, Value], holder: str, silent_us: int, is_over: bool) -> tuple[str, ...]:
    states = {p.get("status") for p in document["pending_actions"].values()}
    if document["status"] in ("closed", "archived", "deleted"):
        return ("uncertain", "ended") if "uncertain" in states else ("ended",)
    is_busy = document["turn"]["status"] == "open" or bool(states & {"requested", "running"})
    holds = {
        "waiting": "waiting" in states,
        "uncertain": "uncertain" in states,
        "stuck": is_busy and (STALL in document["flags"] or (not holder and silent_us > STUCK_S * 1_000_000)),
        "over-budget": is_over,
        "paused": document["status"] == "paused",
        "running": is_busy or bool(holder),
    }
    return tuple(need for need in NEEDS if holds.get(need)) or ("idle",)


CLOSE_LOOK_BACK = 100
"""How many of the newest events to search for the one that closed the session."""


def was_left(session: Session[Any]) -> bool:
    """Whether a session was closed only because it was idle. Then it may be continued without asking."""
    if session.status != "closed" or ORIGIN not in session.log.part("labels"):
        return False
    last = session.head.seq
    for entry in reversed(list(session.log.entries(after=max(0, last - CLOSE_LOOK_BACK), upto=last))):
        if entry.kind == "session.closed":
            return entry.body.get("outcome") == ""
    return False
