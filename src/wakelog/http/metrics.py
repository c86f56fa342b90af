"""Metrics for Prometheus. They count over all namespaces together: no label names a namespace or a session."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from wakelog.errors import WakelogError
from wakelog.maintenance.fleet_counts import FleetCounter, FleetCounts, add_up

if TYPE_CHECKING:
    from wakelog.http.namespaces import NamespaceStores
    from wakelog.log.append import Clock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One server's numbers, in their own registry."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        names = ("method", "route")
        self.requests = Counter("wakelog_http_requests", "Requests answered.", (*names, "status"), registry=registry)
        self.seconds = Histogram(
            "wakelog_http_request_seconds", "Time to answer.", names, registry=registry, buckets=_BUCKETS
        )
        self.pending = Gauge("wakelog_http_pending", "Requests at work or waiting for a thread.", registry=registry)
        self.watchers = Gauge("wakelog_http_watchers", "Open tails.", registry=registry)
        self.commits = Counter("wakelog_commits", "Commits stored for clients.", registry=registry)
        self.sent = Counter("wakelog_tail_bytes", "Bytes sent to watchers.", registry=registry)
        self.refused = Counter(
            "wakelog_http_refused", "Requests turned away at the door.", ("kind",), registry=registry
        )

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"wakelog_{name}", text, labels, registry=registry)

        self._needs = gauge("sessions", "Open sessions, by what they need; one may need several things.", ("needs",))
        self._oldest = gauge("sessions_oldest_seconds", "How long the quietest of them is quiet.", ("needs",))
        self._failed = gauge("sessions_failed", "Open sessions whose last turn failed or was interrupted.")
        self._unreadable = gauge("sessions_unreadable", "Open sessions that cannot be read.")
        self._flags = gauge("flags", "Open flags.", ("severity",))
        self._counted = gauge("fleet_counted_timestamp_seconds", "When sessions and flags were last counted.")

        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts an answered request. Looking up labels costs more than counting, so they are cached."""
        key = (method, route, status)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.requests.labels(*key), self.seconds.labels(method, route)
        found[0].inc()
        if not route.endswith("/tail"):  # which lasts as long as somebody watches
            found[1].observe(seconds)

    def set_fleet(self, counts: FleetCounts, at_us: int) -> None:
        for need, number in counts.needs.items():
            self._needs.labels(need).set(number)
            self._oldest.labels(need).set(counts.oldest_s[need])
        for severity, number in counts.flags.items():
            self._flags.labels(severity).set(number)
        self._failed.set(counts.failed)
        self._unreadable.set(counts.unreadable)
        self._counted.set(at_us / 1e6)

    def text(self) -> bytes:
        return generate_latest(self._registry)


REFRESH_US = 5_000_000
_log = logging.getLogger("wakelog.http")


class FleetMetrics:
    """Counts the sessions of all namespaces for /metrics, at most once per REFRESH_US. If a namespace cannot be opened
    or counted, the old numbers and their timestamp stay, and an alert on the timestamp can report that."""

    def __init__(self, spaces: NamespaceStores, clock: Clock) -> None:
        self._spaces, self._clock = spaces, clock
        self._counters: dict[str, FleetCounter] = {}
        self._last = 0
        self._lock = threading.Lock()

    def refresh(self, metrics: Metrics) -> None:
        """Counts again unless that was just done. Of concurrent callers, one counts."""
        now = self._clock()
        if (self._last and now - self._last < REFRESH_US) or not self._lock.acquire(blocking=not self._last):
            return
        try:
            known, spaces = self._counters, self._spaces
            self._counters = {name: known.get(name) or FleetCounter(spaces.get(name).store) for name in spaces.names()}
            metrics.set_fleet(add_up(counter.count() for counter in self._counters.values()), now)
            self._last = now
        except WakelogError as exc:
            _log.warning("fleet not counted", extra={"why": exc.kind})
        finally:
            self._lock.release()
