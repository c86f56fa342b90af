"""Keeps an adapter from writing into sessions that it did not create.

Sessions that an adapter creates have the label `framework`. A name may already belong to a session of another
framework, or to one made by hand. The adapter cannot read its history and must not add to it, so the session is
refused. A session in which nothing has happened yet has no owner: the first adapter that writes to it sets its label.
"""

from __future__ import annotations

from typing import Any

from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.names import name_of_id
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

_BLANK = frozenset({"session.opened", "labels.set", "budget.set", "goal.set"})
"""The kinds of events in a session in which nothing has happened yet."""
_BLANK_MAX = 8
ELSEWHERE = "use another id, or another store"


def own_session(store: Store, framework: str, id: str, **labels: str) -> Session[Any]:
    """The session for a framework's id, created if there is none. Empty labels are left out."""
    filled = {label: value for label, value in labels.items() if value}
    session = store.session(name_of_id(id), agent=framework, labels={"framework": framework, **filled})
    refuse_foreign(session.log, framework)
    return session


def refuse_foreign(log: Log, framework: str, *, is_written: bool = True) -> None:
    """InvalidInputError if a session belongs to somebody else. A session without an owner becomes the framework's, if
    it is about to be written to."""
    labels = log.part("labels")
    if labels.get("framework") == framework or any(label.startswith(f"{framework}.") for label in labels):
        return
    if "framework" in labels or not _is_blank(log):
        other = str(labels.get("framework") or labels.get("agent") or "")
        raise InvalidInputError(foreign_message(str(log), framework, other), kind="foreign-session", hint=ELSEWHERE)
    if is_written:
        log.append(EventDraft(ev.LabelsSet(labels={"framework": framework}), actor="runtime"))


def is_foreign(log: Log, framework: str) -> bool:
    """True if a session belongs to somebody else. Lists skip it then."""
    try:
        refuse_foreign(log, framework, is_written=False)
    except InvalidInputError:
        return True
    return False


def foreign_message(name: str, framework: str, other: str = "") -> str:
    whose = f"was made by {other}" if other else "has a history of its own"
    return f"session {name!r} {whose}, and is not a session of {framework}: nothing was written to it"


def _is_blank(log: Log) -> bool:
    if log.head().seq > _BLANK_MAX or log.state()["data"]:
        return False
    return all(entry.kind in _BLANK for entry in log.entries())
