"""Looks up the names of other sessions in the same store."""

from __future__ import annotations

from wakelog.errors import NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.model.ids import SessionId, is_session_id


def name_of_session(log: Log, id: str) -> str:
    """The name of another session in the same store; its id if it has no name. One that does not exist, as a sub-agent
    without a transcript, is called `ID (not in this store)`."""
    try:
        head = log.engine.head(SessionId(id)) if is_session_id(id) else None
    except NotFoundError:
        head = None
    except WakelogError:
        return id  # it is there, and cannot be read
    if head is None or not head.seq:
        return f"{id} (not in this store)"
    return head.name or id
