"""The fleet: sessions that are live, waiting or in trouble, the most urgent first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from wakelog.engine import find_live_sessions
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index import Index
from wakelog.index.questions import AskResting
from wakelog.index.results import SessionInfo
from wakelog.session import Session
from wakelog.session.status import NEEDS, SessionCondition, read_condition
from wakelog.store import Store

RECENT_S = 3600
"""After this time, an idle session without a flag is no longer listed."""
FAILED = ("failed", "interrupted")
IDLE_MAX = 200
"""How many idle sessions are listed by default, and how many sessions are asked for at once."""


class LiveSession(msgspec.Struct, frozen=True):
    """A session, its condition, and what the index knows of it."""

    session: Session[Any]
    condition: SessionCondition
    info: SessionInfo


class Fleet(msgspec.Struct, frozen=True):
    """The sessions found, the most urgent first."""

    found: tuple[LiveSession, ...]
    resting: int
    """How many more idle sessions there are."""
    unreadable: tuple[tuple[SessionInfo, str], ...]
    """Sessions that could not be read, and why."""


def find_live(
    store: Store,
    needs: Collection[str] = (),
    *,
    everything: bool = False,
    idle: int | None = IDLE_MAX,
    newest: int = 0,
    failed: bool = False,
) -> Fleet:
    """Lists the sessions that are not closed: with `needs`, those that need one of these; with `everything`, also old
    idle ones; with `failed`, those of any age whose last turn failed or was interrupted. At most `idle` idle ones are
    listed (None: all). With `newest`, only that many are read, the last written: for a first answer while the index is
    far behind."""
    everything, idle = everything or failed, None if failed else idle
    sessions: list[LiveSession] = []
    unreadable: list[tuple[SessionInfo, str]] = []
    wanted = frozenset(needs)
    at_rest = 0
    most = 0 if wanted else idle
    now = store.clock()
    oldest = now - RECENT_S * 1_000_000

    def wants_resting(info: SessionInfo) -> bool:
        # Spending is not in the index: to find sessions over budget, every session is read.
        if "over-budget" in wanted:
            return True
        return (everything or info.last_at >= oldest) and (most is None or at_rest < most)

    with store.newest_index(newest) if newest else contextlib.nullcontext(store.index) as index:
        candidates = _Candidates(index, _beating(store, now), wants_resting)
        for info in candidates:
            if failed and info.outcome not in FAILED:
                continue
            try:
                session: Session[Any] = store.resume(info.id)
                condition = read_condition(session, head=session.log.opened_at)
            except NotFoundError:
                continue  # deleted while we looked
            except CorruptLogError as exc:
                unreadable.append((info, exc.message))
                continue
            if wanted and not wanted.intersection(condition.needs):
                continue
            is_quiet = condition.need == "idle" and condition.at < oldest and not condition.document["flags"]
            if condition.need == "ended" or (is_quiet and not everything):
                continue
            at_rest += condition.need == "idle"
            sessions.append(LiveSession(session, condition, info))
        resting = 0 if wanted else candidates.count_skipped(0 if everything else oldest)
    sessions.sort(key=lambda live: (NEEDS.index(live.condition.need), -live.condition.at))
    return Fleet(tuple(sessions), resting, tuple(unreadable))


class _Candidates:
    """The sessions that are not closed, the last active first. From the first that is refused by `wants_resting`, those
    at rest are skipped by the index, except those in `beating`, whose heartbeat is valid."""

    def __init__(self, index: Index, beating: tuple[str, ...], wants_resting: Callable[[SessionInfo], bool]) -> None:
        self._index = index
        self._beating = beating
        self._wants_resting = wants_resting
        self._skipped_after: str | None = None

    def __iter__(self) -> Iterator[SessionInfo]:
        after, busy = "", None
        while True:
            page = self._index.sessions(live=True, busy=busy, after=after, limit=IDLE_MAX)
            for info in page:
                if busy is None and not self._wants_resting(info):
                    busy, self._skipped_after = self._beating, after
                    break
                yield info
                after = f"{info.last_at}:{info.id}"
            else:
                if not page.next:
                    return

    def count_skipped(self, since: int) -> int:
        """How many at rest were skipped that were active since a time."""
        if self._skipped_after is None:
            return 0
        return self._index.ask(AskResting(busy=self._beating, after=self._skipped_after, since=since))


def _beating(store: Store, now: int) -> tuple[str, ...]:
    """The sessions whose heartbeat is still valid."""
    engine = store.engine
    live_sessions = engine.abilities.live_sessions
    return tuple(find_live_sessions(engine, now) if live_sessions is None else live_sessions(now))
