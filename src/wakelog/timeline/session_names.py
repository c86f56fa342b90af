"""Looks up the names of other sessions in the same store."""

from __future__ import annotations

from wakelog.errors import WakelogError
from wakelog.log import Log
from wakelog.model.ids import SessionId, is_session_id


def name_of_session(log: Log, id: str) -> str:
    """The name of another session in the same store; its id if it has no name or does not exist."""
    try:
        return (log.engine.head(SessionId(id)).name if is_session_id(id) else "") or id
    except WakelogError:
        return id
