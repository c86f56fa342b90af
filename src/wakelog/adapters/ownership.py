"""Whose session it is that an adapter finds under the name it needs.

The sessions that an adapter makes have the label `framework`. Under a name may be another one already: of another
framework, or made by hand. The adapter could not read what is in there, and would mix its own history into it. So it is
refused. A session in which nothing has happened yet is nobody's: the first adapter that writes to it puts its label on.
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
"""What may be in a session in which nothing has happened yet."""
_BLANK_MAX = 8
ELSEWHERE = "use another id, or another store"


def own_session(store: Store, framework: str, id: str, **labels: str) -> Session[Any]:
    """The session of a framework's id, opened where there is none, with the labels that say something."""
    told = {label: value for label, value in labels.items() if value}
    session = store.session(name_of_id(id), agent=framework, labels={"framework": framework, **told})
    refuse_foreign(session.log, framework)
    return session


def refuse_foreign(log: Log, framework: str, *, is_written: bool = True) -> None:
    """InvalidInputError where a session is not of this framework. One that nobody has used becomes its own, if it is
    about to be written to."""
    labels = log.part("labels")
    if labels.get("framework") == framework or any(label.startswith(f"{framework}.") for label in labels):
        return
    if "framework" in labels or not _is_blank(log):
        other = str(labels.get("framework") or labels.get("agent") or "")
        raise InvalidInputError(what_is_foreign(str(log), framework, other), kind="foreign-session", hint=ELSEWHERE)
    if is_written:
        log.append(EventDraft(ev.LabelsSet(labels={"framework": framework}), actor="runtime"))


def is_foreign(log: Log, framework: str) -> bool:
    """Whether a session is not of this framework: for lists, which pass over it."""
    try:
        refuse_foreign(log, framework, is_written=False)
    except InvalidInputError:
        return True
    return False


def what_is_foreign(name: str, framework: str, other: str = "") -> str:
    """What an adapter says of a session that it did not make."""
    whose = f"was made by {other}" if other else "has a history of its own"
    return f"session {name!r} {whose}, and is not a session of {framework}: nothing was written to it"


def _is_blank(log: Log) -> bool:
    if log.head().seq > _BLANK_MAX or log.state()["data"]:
        return False
    return all(entry.kind in _BLANK for entry in log.entries())
