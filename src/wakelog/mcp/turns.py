"""Who owns a turn: a turn that a client started belongs to this process until it ends. Another client of the same
session gets an error, and can neither end the turn nor write into it.

Clients that share one server over HTTP are distinguished by their names. A turn that another program holds can only be
ended by that program, but an agent may record into it, so an agent can work inside a program that manages the turns.
"""

from __future__ import annotations

import threading
from typing import Any

from wakelog.errors import ConflictError, NotFoundError
from wakelog.log.holder import TurnHold, TurnHolder, living_turn
from wakelog.model.ids import SessionId
from wakelog.session import Session
from wakelog.session.turn import end_turn, start_turn
from wakelog.timeline.points import attempts_of

_PREFIX = "mcp:"


class Turns:
    """The open turns of the clients of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[SessionId, tuple[TurnHold, str]] = {}

    def start(self, session: Session[Any], client: str, text: str) -> None:
        """Starts a turn for a client. If the client left its last turn open, that one is recorded as interrupted."""
        with self._lock:
            self._refuse(session, client)
            self._release(session.id)
            hold = TurnHold(session.log)
            try:
                start_turn(session, text, actor="agent", source=f"{_PREFIX}{client}", trust="unverified", hold=hold)
            except BaseException:
                hold.release()
                raise
            self._held[session.id] = hold, client

    def end(self, session: Session[Any], client: str, outcome: Any) -> None:
        with self._lock:
            self._refuse(session, client)
            end_turn(session, outcome)
            self._release(session.id)

    def refuse_to_record(self, session: Session[Any], client: str) -> None:
        """ConflictError if another client has the open turn."""
        self._refuse(session, client, only=_PREFIX)

    def busy(self, session: Session[Any], client: str) -> str:
        """A sentence about another holder of the session's turn; empty if there is none."""
        holder = self._other_holder(session, client)
        return _describe(session, holder) if holder is not None else ""

    def _refuse(self, session: Session[Any], client: str, only: str = "") -> None:
        holder = self._other_holder(session, client)
        if holder is not None and _source(session).startswith(only):
            raise ConflictError(
                _describe(session, holder),
                kind="leased",
                hint="fork it and continue there, or wait until that turn is over",
            )

    def _other_holder(self, session: Session[Any], client: str) -> TurnHolder | None:
        holder = living_turn(session.log)
        if holder is None:
            return None
        mine = self._held.get(session.id)
        is_mine = mine is not None and mine[0].text == str(holder) and mine[1] == client
        return None if is_mine else holder

    def _release(self, session: SessionId) -> None:
        held = self._held.pop(session, None)
        if held is not None:
            held[0].release()


def _source(session: Session[Any]) -> str:
    """The source of the open turn's first event: `mcp:NAME` for a client."""
    try:
        return session.log.entry(attempts_of(session.log, session.head.turn)[-1].first).header.source
    except NotFoundError:
        return ""


def _describe(session: Session[Any], holder: TurnHolder) -> str:
    seconds = max(0, session.log.clock() - holder.since) // 1_000_000
    since = f"{seconds // 60} min" if seconds >= 120 else f"{seconds} s"
    who = _source(session).removeprefix(_PREFIX)
    client = f"{who}, " if who else ""
    return (
        f"turn @{session.head.turn} of {session} belongs to {client}{holder.name}, which is still running"
        f" and started it {since} ago"
    )
