"""Metrics for Prometheus. They count over all namespaces together: no label names a namespace or a session."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One server's numbers, in a registry of their own."""

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

        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered. Looking up labels costs more than counting, so it is done once."""
        key = (method, route, status)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.requests.labels(*key), self.seconds.labels(method, route)
        found[0].inc()
        if not route.endswith("/tail"):  # which lasts as long as somebody looks
            found[1].observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
