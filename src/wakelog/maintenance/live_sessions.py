"""The fleet: sessions that are live, waiting or in trouble, the most urgent first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index.results import SessionInfo
from wakelog.model.ids import SessionId
from wakelog.session import Session
from wakelog.session.status import NEEDS, SessionCondition, read_condition
from wakelog.store import Store

RECENT_S = 3600
"""After this time, an idle session without a flag is no longer listed."""
FAILED = ("failed", "interrupted")
IDLE_MAX = 200
"""How many idle sessions are listed by default."""


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
    found: list[LiveSession] = []
    unreadable: list[tuple[SessionInfo, str]] = []
    wanted = frozenset(needs)
    at_rest = hidden = 0
    most = 0 if wanted else idle
    oldest = store.clock() - RECENT_S * 1_000_000
    is_alive = _liveness_check(store)
    for info in _not_closed(store, newest):
        if failed and info.outcome not in FAILED:
            continue
        # Spending is not in the index: to find sessions over budget, every session is read.
        is_old = info.last_at < oldest and not everything and "over-budget" not in wanted
        is_enough = most is not None and at_rest >= most and "over-budget" not in wanted
        if (is_old or is_enough) and _is_at_rest(info) and not is_alive(SessionId(info.id)):
            hidden += not is_old and not wanted
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
        found.append(LiveSession(session, condition, info))
    found.sort(key=lambda live: (NEEDS.index(live.condition.need), -live.condition.at))
    return Fleet(tuple(found), hidden, tuple(unreadable))


def _not_closed(store: Store, newest: int) -> Iterator[SessionInfo]:
    if newest:
        with store.newest_index(newest) as index:
            yield from index.sessions(live=True, limit=newest)
    else:
        yield from store.index.every_session(live=True)


def _is_at_rest(info: SessionInfo) -> bool:
    """Whether a session is idle, as far as the index knows."""
    return not (info.status == "paused" or info.pending or info.flags or (info.turn and not info.outcome))


def _liveness_check(store: Store) -> Callable[[SessionId], bool]:
    """Returns a function that says whether a session's heartbeat is still valid. If the engine can, all heartbeats are
    read at once."""
    now, engine = store.clock(), store.engine
    if (heard := engine.abilities.heard) is not None:
        return frozenset(heard(now)).__contains__

    def is_alive(session: SessionId) -> bool:
        beat = engine.last_beat(session)
        return beat is not None and beat.until >= now

    return is_alive
