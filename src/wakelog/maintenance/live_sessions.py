"""The fleet: sessions that are live, waiting or in trouble, those that need somebody first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index.results import SessionInfo
from wakelog.model.ids import SessionId
from wakelog.session import Session
from wakelog.session.status import NEEDS, Standing, standing
from wakelog.store import Store

RECENT_S = 3600
"""An idle session without a flag leaves the list after so long."""
FAILED = ("failed", "interrupted")
MOST = 200
"""So many idle sessions are shown."""


class LiveSession(msgspec.Struct, frozen=True):
    """A session, how it stands, and what the index knows of it."""

    session: Session[Any]
    stand: Standing
    info: SessionInfo


class Fleet(msgspec.Struct, frozen=True):
    """What was found, the most urgent first."""

    found: tuple[LiveSession, ...]
    resting: int
    """How many more there are that only rest."""
    unreadable: tuple[tuple[SessionInfo, str], ...]
    """Sessions that could not be read, and why."""


def find_live(
    store: Store,
    needs: Collection[str] = (),
    *,
    everything: bool = False,
    idle: int | None = MOST,
    newest: int = 0,
    failed: bool = False,
) -> Fleet:
    """The sessions that are not closed. With `needs` only those that need one of these; with `everything` idle ones of
    any age too. At most `idle` idle ones are listed (None: all). With `newest` only so many are looked at, the last
    written: for a first look while the index is far behind. With `failed` only those whose last turn failed or was
    interrupted, of any age."""
    everything, idle = everything or failed, None if failed else idle
    found: list[LiveSession] = []
    unreadable: list[tuple[SessionInfo, str]] = []
    wanted = frozenset(needs)
    at_rest = hidden = 0
    most = 0 if wanted else idle
    oldest = store.clock() - RECENT_S * 1_000_000
    is_heard = _hearing(store)
    for info in _not_closed(store, newest):
        if failed and info.outcome not in FAILED:
            continue
        # What was spent is in no index: who asks for that has every session looked at.
        is_old = info.last_at < oldest and not everything and "over-budget" not in wanted
        is_enough = most is not None and at_rest >= most and "over-budget" not in wanted
        if (is_old or is_enough) and _is_at_rest(info) and not is_heard(SessionId(info.id)):
            hidden += not is_old and not wanted
            continue
        try:
            session: Session[Any] = store.resume(info.id)
            stand = standing(session)
        except NotFoundError:
            continue  # deleted while we looked
        except CorruptLogError as exc:
            unreadable.append((info, exc.message))
            continue
        if wanted and not wanted.intersection(stand.needs):
            continue
        is_quiet = stand.need == "idle" and stand.at < oldest and not stand.document["flags"]
        if stand.need == "ended" or (is_quiet and not everything):
            continue
        at_rest += stand.need == "idle"
        found.append(LiveSession(session, stand, info))
    found.sort(key=lambda each: (NEEDS.index(each.stand.need), -each.stand.at))
    return Fleet(tuple(found), hidden, tuple(unreadable))


def _not_closed(store: Store, newest: int) -> Iterator[SessionInfo]:
    if newest:
        with store.newest_index(newest) as index:
            yield from index.sessions(live=True, limit=newest)
    else:
        yield from store.index.every_session(live=True)


def _is_at_rest(info: SessionInfo) -> bool:
    """Whether a session is idle as far as the index can tell: its state need not be read if nobody heard of it."""
    return not (info.status == "paused" or info.pending or info.flags or (info.turn and not info.outcome))


def _hearing(store: Store) -> Callable[[SessionId], bool]:
    """Tells of a session whether its last sign of life still holds. Asked of all at once, where the engine can."""
    now, engine = store.clock(), store.engine
    if (heard := engine.abilities.heard) is not None:
        return frozenset(heard(now)).__contains__

    def is_heard(session: SessionId) -> bool:
        beat = engine.last_beat(session)
        return beat is not None and beat.until >= now

    return is_heard
