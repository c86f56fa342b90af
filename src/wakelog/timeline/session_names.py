"""Looks up the names of other sessions in the same store."""

from __future__ import annotations

from wakelog.errors import NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.model.ids import SessionId, is_session_id


def is_known_session(log: Log, id: str) -> bool:
    """Whether the same store has a session with this id. False for a sub-agent whose transcript was not imported."""
    try:
        return is_session_id(id) and bool(log.engine.head(SessionId(id)).seq)
    except NotFoundError:
        return False
    except WakelogError:
        return True  # it is there, and cannot be read


def name_of_session(log: Log, id: str) -> str:
    """The name of another session in the same store; its id if it has no name or does not exist."""
    try:
        return (log.engine.head(SessionId(id)).name if is_session_id(id) else "") or id
    except WakelogError:
        return id
