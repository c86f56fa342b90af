"""Holds: while a session has one, nothing of it can be erased, pruned or deleted.

A hold is the label `hold` in the session's own log, with the reason as its value. So it is an event like any other, it
is exported and verified with the session, and every process respects it. The check itself is in log/removal.py, below
every surface. A rewind does not remove a hold; a fork inherits it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.codec.envelope import DELETED
from wakelog.diff.writers import Writers
from wakelog.errors import CorruptLogError, InvalidInputError, NotFoundError, UnsupportedError
from wakelog.model.document import HOLD_LABEL
from wakelog.model.ids import Seq, SessionId
from wakelog.session import Session
from wakelog.store import Store


class Hold(msgspec.Struct, frozen=True):
    """A hold: its reason, since when, and by which event."""

    session: SessionId
    name: str
    reason: str
    since: int
    seq: Seq


def place_hold(session: Session[Any], reason: str) -> Seq:
    """Puts the session under a hold, or changes the reason of the existing one."""
    if not reason.strip():
        raise InvalidInputError("a hold needs a reason", kind="no-reason", hint="say who asked for it and why")
    return session.label({HOLD_LABEL: reason}, why=reason)


def lift_hold(session: Session[Any], *, why: str = "") -> Seq:
    """Lifts the hold. Raises NotFoundError if there is none."""
    if hold_of(session) is None:
        raise NotFoundError(f"{session} is not under a hold", kind="no-hold", hint="wakelog hold ls")
    return session.label({HOLD_LABEL: None}, why=why)


def hold_of(session: Session[Any]) -> Hold | None:
    """Returns the session's hold, or None."""
    reason = session.log.state()["labels"].get(HOLD_LABEL)
    if reason is None:
        return None
    pointer = f"/labels/{HOLD_LABEL}"
    writer = Writers(session.log).feed(session.log.entries(), pointer).who(pointer)
    return Hold(session.id, session.name, str(reason), writer.at if writer else 0, writer.seq if writer else 0)


class Holds(msgspec.Struct, frozen=True):
    """All holds, and the sessions whose state cannot be read: they may be under a hold."""

    found: tuple[Hold, ...]
    unreadable: tuple[SessionId, ...]


def list_holds(store: Store) -> Holds:
    """Lists the holds with the help of the index, and opens only sessions with the label. `unreadable` are those that
    the index could not read completely."""
    sessions = (store.resume(info.id) for info in store.index.every_session(label=HOLD_LABEL) if not info.damaged)
    holds = tuple(hold for session in sessions if (hold := hold_of(session)) is not None)
    is_whole = not store.index.sessions(limit=1).as_of.damaged
    damaged = () if is_whole else tuple(info.id for info in store.index.every_session() if info.damaged)
    return Holds(holds, damaged)


def find_holds(store: Store) -> Holds:
    """Lists the holds without the index: opens every session of a store."""
    holds: list[Hold] = []
    unreadable: list[SessionId] = []
    for head in store.sessions():
        try:
            hold = hold_of(store.resume(head.session))
        except (CorruptLogError, UnsupportedError, NotFoundError) as exc:
            if exc.kind == DELETED:
                continue  # its key was deleted: nothing is left to hold
            unreadable.append(head.session)
            continue
        if hold is not None:
            holds.append(hold)
    return Holds(tuple(holds), tuple(unreadable))
