"""Names of other sessions of the store, by which people know them."""

from __future__ import annotations

from wakelog.errors import WakelogError
from wakelog.log import Log
from wakelog.model.ids import SessionId, is_session_id


def name_beside(log: Log, id: str) -> str:
    """The name of another session of the same store; its id where it has none, or is not there."""
    try:
        return (log.engine.head(SessionId(id)).name if is_session_id(id) else "") or id
    except WakelogError:
        return id
