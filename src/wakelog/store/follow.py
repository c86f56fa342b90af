"""Follows a whole store: the engine's feed names the sessions that changed, and each is read from its mark.

The cursor is taken before the sessions are listed. What is written in between appears in both, but is yielded once,
because each session has a mark: the last event that was yielded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from wakelog.engine import end_of
from wakelog.errors import NotFoundError
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq, SessionId
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.store import Store

PAGE = 1000
NEWS_S = 0.5
"""How long to wait for news before polling the feed."""


def follow(
    store: Store, after: Mapping[SessionId, Seq] | None, timeout_s: float | None
) -> Iterator[tuple[Session[Any], Entry]]:
    """See `Store.follow`. Starts at this call, not when the first event is requested."""
    cursor = end_of(store.engine)
    heads = {head.session: head.seq for head in store.sessions()}
    marks = dict(heads if after is None else after)
    behind = [session for session, seq in heads.items() if seq > marks.get(session, 0)]
    return _follow(store, cursor, behind, marks, timeout_s)


def _follow(
    store: Store, cursor: str, moved: Iterable[SessionId], marks: dict[SessionId, Seq], timeout_s: float | None
) -> Iterator[tuple[Session[Any], Entry]]:
    until = _until(timeout_s)
    while True:
        for session in moved:
            for found in _news(store, session, marks):
                yield found
                until = _until(timeout_s)
        changes = store.engine.changes(cursor, PAGE)
        moved = dict.fromkeys(change.session for change in changes)
        if changes:
            cursor = changes[-1].cursor
            continue
        left = NEWS_S if until is None else min(NEWS_S, until - time.monotonic())
        if left <= 0:
            return
        store.engine.wait(None, after=0, timeout_s=left)


def _until(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


def _news(store: Store, id: SessionId, marks: dict[SessionId, Seq]) -> Iterator[tuple[Session[Any], Entry]]:
    """Yields a session's events after its mark; for a new fork, its own events."""
    try:
        session = store.resume(id)
    except NotFoundError:
        return  # deleted meanwhile
    fork = session.head.fork
    for entry in session.log.entries(after=marks.get(id, fork.at if fork else 0)):
        marks[id] = entry.seq
        yield session, entry
