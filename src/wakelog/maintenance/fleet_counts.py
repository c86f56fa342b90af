"""Counts of the fleet for alerts: what sessions need, how many failed, which flags are open.

Counting is cheap, however many sessions there are: a session is read again only if it changed, or if it is at work,
because time alone can make it stuck. No number names a session, a project or a person, so the number of metric series
is fixed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final, get_args

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index.results import SessionInfo
from wakelog.maintenance.live_sessions import FAILED
from wakelog.model.events import Severity
from wakelog.model.ids import Seq, SessionId
from wakelog.model.json_fields import text_in
from wakelog.session.status import NEEDS, read_condition
from wakelog.store import Store

OPEN_NEEDS: Final = tuple(need for need in NEEDS if need != "ended")
SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)


class FleetCounts(msgspec.Struct, frozen=True):
    """Counts of sessions that are not closed. A session that needs several things counts for each."""

    needs: dict[str, int]
    oldest_s: dict[str, float]
    """For each need, the seconds since the last activity of the session that has it longest."""
    failed: int
    """Sessions whose last turn failed or was interrupted."""
    flags: dict[str, int]
    """Open flags, by severity."""
    unreadable: int


class _SessionState(msgspec.Struct):
    head: Seq
    at: int
    needs: tuple[str, ...]
    flags: tuple[str, ...]
    failed: bool
    is_readable: bool = True


class FleetCounter:
    """Counts one store repeatedly."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[SessionId, _SessionState] = {}
        self._lock = threading.Lock()

    def count(self) -> FleetCounts:
        with self._lock:
            known = self._known
            live = self._store.index.every_session(live=True)
            self._known = {info.id: self._read_state(info, known.get(info.id)) for info in live}
            return _sum(self._known.values(), self._store.clock())

    def _read_state(self, info: SessionInfo, known: _SessionState | None) -> _SessionState:
        if known is not None and known.head == info.head and known.needs == ("idle",):
            return known
        failed = info.outcome in FAILED
        try:
            state = read_condition(self._store.resume(info.id))
        except NotFoundError:
            return _SessionState(info.head, info.last_at, (), (), False)  # deleted while we looked
        except CorruptLogError:
            return _SessionState(info.head, info.last_at, (), (), failed, is_readable=False)
        flags = tuple(text_in(flag, "severity") or "warning" for flag in state.document["flags"].values())
        return _SessionState(info.head, state.at, state.needs, flags, failed)


def _sum(states: Iterable[_SessionState], now: int) -> FleetCounts:
    needs: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    failed = unreadable = 0
    for state in states:
        needs.update(state.needs)
        flags.update(state.flags)
        failed += state.failed
        unreadable += not state.is_readable
        for need in state.needs:
            oldest[need] = max(oldest.get(need, 0.0), (now - state.at) / 1e6)
    return FleetCounts(
        {need: needs[need] for need in OPEN_NEEDS},
        {need: oldest.get(need, 0.0) for need in OPEN_NEEDS},
        failed,
        {severity: flags[severity] for severity in SEVERITIES},
        unreadable,
    )


def add_up(counts: Iterable[FleetCounts]) -> FleetCounts:
    """Adds up the counts of several stores."""
    all = list(counts)
    return FleetCounts(
        {need: sum(c.needs[need] for c in all) for need in OPEN_NEEDS},
        {need: max((c.oldest_s[need] for c in all), default=0.0) for need in OPEN_NEEDS},
        sum(c.failed for c in all),
        {severity: sum(c.flags[severity] for c in all) for severity in SEVERITIES},
        sum(c.unreadable for c in all),
    )
