"""Sessions that nobody ended: their transcript was quiet for long, so an import closed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.log.deleted_origins import ORIGIN

if TYPE_CHECKING:
    from wakelog.session.session import Session

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
