"""What the log knows of a call: found by its key through the id of the commit that asked for it, without a search."""

from __future__ import annotations

from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.model.ids import Seq
from wakelog.runtime.recovery import OUTCOMES

_SETTLING = OUTCOMES | {"action.reconciled", "action.abandoned"}


def by_key(log: Log, action: str) -> tuple[Entry | str | None, str]:
    """What is recorded of a keyed action: its outcome, its id while it is open, or nothing; and the id of the next
    commit that may ask for it. That id settles who comes first when two processes ask at once."""
    if action in log.part("pending_actions"):
        return action, ""
    number = 1
    while True:
        commit_id = f"call:{action}:{number}"
        request = _asked_at(log, commit_id)
        if request is None:
            return None, commit_id
        settled = settled_by(log, action, request)
        if settled is None:
            return action, ""
        if has_run(settled):
            return settled, ""
        number += 1  # that one never ran: it may be asked for again


def _asked_at(log: Log, commit_id: str) -> Seq | None:
    for segment in log.segments:
        known = log.engine.known(segment.session, commit_id)
        if known is not None and (segment.last is None or known.head.seq <= segment.last):
            return known.head.seq
    return None


def settled_by(log: Log, action: str, since: Seq = 1) -> Entry | None:
    """The event that settled an action; None while there is none that is durable."""
    for entry in log.entries(after=since - 1):
        if entry.kind in _SETTLING and entry.body.get("action") == action and not entry.body.get("retry"):
            return entry
    return None


def has_run(settled: Entry) -> bool:
    """Whether there is an outcome to give again: not for a call that never ran, or was given up."""
    return settled.kind != "action.abandoned" and settled.body.get("outcome") != "never_ran"
