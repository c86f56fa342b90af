"""Counts the sessions of all namespaces for /metrics, not more often than it is worth.

A namespace that cannot be opened or counted leaves the old numbers, and their time: an alert on that time says so.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from wakelog.errors import WakelogError
from wakelog.http.metrics import Metrics
from wakelog.maintenance.fleet_counts import FleetCounter, add_up

if TYPE_CHECKING:
    from wakelog.http.namespaces import Spaces
    from wakelog.log.append import Clock

EVERY_US = 5_000_000
_log = logging.getLogger("wakelog.http")


class FleetLook:
    def __init__(self, spaces: Spaces, clock: Clock) -> None:
        self._spaces, self._clock = spaces, clock
        self._counters: dict[str, FleetCounter] = {}
        self._last = 0
        self._lock = threading.Lock()

    def refresh(self, metrics: Metrics) -> None:
        """Counts again unless that was just done. Of several who ask at once, one counts."""
        now = self._clock()
        if (self._last and now - self._last < EVERY_US) or not self._lock.acquire(blocking=not self._last):
            return
        try:
            names = self._spaces.names()
            self._counters = {name: self._counters.get(name) or self._counter(name) for name in names}
            metrics.tell_fleet(add_up(counter.count() for counter in self._counters.values()), now)
            self._last = now
        except WakelogError as exc:
            _log.warning("fleet not counted", extra={"why": exc.kind})
        finally:
            self._lock.release()

    def _counter(self, name: str) -> FleetCounter:
        return FleetCounter(self._spaces.get(name).store)
