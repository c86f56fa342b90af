"""How a session stands: what it waits for, whether it needs somebody, and whether it was only left."""

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
"""Who raises flags by rule, and the flag of a session that fell silent."""
FLAGS_SKIPPED = 32
STUCK_S = 300
"""A turn or call that is open this long without news, and without a living writer, is stuck."""

Need = Literal["waiting", "uncertain", "stuck", "over-budget", "paused", "running", "idle", "ended"]
"""What a session needs, most urgent first."""
NEEDS: tuple[Need, ...] = get_args(Need)
URGENT = NEEDS[:4]
"""Those that somebody should look at."""


class Standing(msgspec.Struct, frozen=True):
    """How a session stands at a point."""

    head: Head
    seq: Seq
    at: int
    document: dict[str, Value]
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


def standing(session: Session[Any], at: Seq | None = None) -> Standing:
    """Reads a session's head and state; O(state), whatever the length of the history."""
    with session.log.one_look():
        return _standing(session, at)


def _standing(session: Session[Any], at: Seq | None) -> Standing:
    head = session.head
    document = _document(session, head) if at is None else session.log.state(at)
    holder = session.log.living_holder() if at is None else ""
    when = _happened(session, at or head.seq, head.at)
    if document["flags"]:
        when = _last_work(session, at or head.seq, when)
    is_over = any(use.is_reached for use in session.budget.spent(at))
    needs = _needs(document, holder, session.log.clock() - when, is_over)
    return Standing(head, at or head.seq, when, document, holder, needs)


def _document(session: Session[Any], head: Head) -> dict[str, Value]:
    """The state at the head; mostly that is the newest one, which takes one question less."""
    log = session.log
    seq, document = log.now() if not log.even_damaged else (0, {})
    return document if seq == head.seq else log.state(head.seq)


def _happened(session: Session[Any], seq: Seq, otherwise: int) -> int:
    """When an event was written. After an import, that is when the newest record happened. `otherwise` when it cannot
    be read."""
    try:
        entry = session.log.entry(seq)
    except CorruptLogError:
        return otherwise
    return entry.happened_at if entry.kind in ("records.imported", "session.closed") else entry.header.at


def _last_work(session: Session[Any], upto: Seq, when: int) -> int:
    """When something last happened, flags aside: that a session was found silent is no news from it."""
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


NEAR = 100
"""So many events before the end, a closed session says how it ended."""


def was_left(session: Session[Any]) -> bool:
    """Whether a session is closed and no more than left: whoever goes on with it need not ask first."""
    if session.status != "closed" or ORIGIN not in session.log.part("labels"):
        return False
    last = session.head.seq
    for entry in reversed(list(session.log.entries(after=max(0, last - NEAR), upto=last))):
        if entry.kind == "session.closed":
            return entry.body.get("outcome") == ""
    return False
