"""Stopping a session that must not go on, with the sub-agents that work for it.

It is closed with the outcome `cancelled` and a reason. What never started is given up, what is running becomes
uncertain, and the open turn is recorded as interrupted. The agent is refused at its next call or record. What it was
doing at that moment is not stopped: an outcome that comes later is kept as evidence.
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
    """A session that was stopped. `uncertain` are calls that were running: their outcome is not known."""

    session: SessionId
    name: str
    was: str
    head: int
    abandoned: tuple[str, ...]
    uncertain: tuple[str, ...]


def cancel_session(
    store: Store, session: Session[Any], *, why: str, subagents: bool = True
) -> tuple[CancelledSession, ...]:
    """Stops a session, and then the live sub-agents below it."""
    if session.status in ("closed", "archived"):
        raise NotAllowedError(
            f"{session.name or session.id} is {session.status} already", kind=f"session-{session.status}"
        )
    # The one who gives out work is stopped first, so that no new sub-agent is started meanwhile.
    stopped = [_cancel(session, why)]
    for child in _below(store, session.id) if subagents else ():
        stopped.append(_cancel(store.resume(child), f"{why} (with {session.name or session.id})"))
    return tuple(stopped)


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


def _below(store: Store, top: SessionId) -> Iterator[SessionId]:
    """The live sub-agents of a session, and theirs."""
    spawned: dict[str, list[SessionId]] = {}
    for info in store.index.every_session(live=True):
        if info.spawner:
            spawned.setdefault(info.spawner.partition("@")[0], []).append(info.id)
    queue = list(spawned.get(top, ()))
    while queue:
        child = queue.pop(0)
        yield child
        queue += spawned.get(child, ())
