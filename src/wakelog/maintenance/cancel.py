"""Cancels a session and its sub-agents.

The session is closed with the outcome `cancelled` and a reason. Calls that never started are abandoned, running calls
become uncertain, and the open turn is recorded as interrupted. The agent's next call or record is refused. A call that
already runs is not stopped; its outcome is kept as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wakelog.errors import NotAllowedError
from wakelog.model.ids import SessionId
from wakelog.session import Session
from wakelog.store import Store


class CancelledSession(msgspec.Struct, frozen=True):
    """A cancelled session. `uncertain` are the calls that were running: their outcome is unknown."""

    session: SessionId
    name: str
    was: str
    head: int
    abandoned: tuple[str, ...]
    uncertain: tuple[str, ...]


def cancel_session(
    store: Store, session: Session[Any], *, why: str, subagents: bool = True
) -> tuple[CancelledSession, ...]:
    """Cancels a session, and then its live sub-agents."""
    if session.status in ("closed", "archived"):
        raise NotAllowedError(
            f"{session.name or session.id} is {session.status} already", kind=f"session-{session.status}"
        )
    # Cancel the parent first, so that it starts no new sub-agent meanwhile.
    cancelled = [_cancel(session, why)]
    for child in _live_subagents(store, session.id) if subagents else ():
        cancelled.append(_cancel(store.resume(child), f"{why} (with {session.name or session.id})"))
    return tuple(cancelled)


def _cancel(session: Session[Any], why: str) -> CancelledSession:
    was, before = session.status, session.calls.pending()
    head = session.life.cancel(why=why)
    after = session.calls.pending()
    return CancelledSession(
        session=session.id,
        name=session.name,
        was=was,
        head=head.seq,
        abandoned=tuple(sorted(action for action in before if action not in after)),
        uncertain=tuple(sorted(after)),
    )


def _live_subagents(store: Store, top: SessionId) -> Iterator[SessionId]:
    """Yields the live sub-agents of a session, and theirs."""
    spawned: dict[str, list[SessionId]] = {}
    for info in store.index.every_session(live=True):
        if info.spawner:
            spawned.setdefault(info.spawner.partition("@")[0], []).append(info.id)
    queue = list(spawned.get(top, ()))
    while queue:
        child = queue.pop(0)
        yield child
        queue += spawned.get(child, ())
