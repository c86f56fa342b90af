"""Checks before anything else: the host of a request, its origin, and its rate.

**Host.** A web page can reach a server on the user's own machine through a name that resolves to it (DNS rebinding). It
cannot choose the Host header, so the server answers only requests for its allowed host names.

**Origin.** A browser says which page a request comes from. Requests from other pages are refused, unless their origin
is trusted. Programs send no Origin.

**Rate.** There is a token bucket for each key, and one for each address without a valid key.

**Connections.** Each address may have a limited number of open connections. Everybody behind a proxy on this machine
comes from loopback, so loopback may have more.
"""

from __future__ import annotations

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable

from wakelog.errors import NotAllowedError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOOPBACK_TIMES = 8
_BUCKETS_MAX = 10_000


class HostGuard:
    """The allowed host names and origins."""

    def __init__(self, hosts: Iterable[str] = LOOPBACK, origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, host: str, origin: str) -> None:
        """NotAllowedError if the host is not one of this server's, or the origin is not trusted."""
        if "*" not in self._hosts and _without_port(host) not in self._hosts:
            raise NotAllowedError(
                f"host {host!r} is not allowed",
                kind="wrong-host",
                hint=f"wakelog serve --host-name {_without_port(host) or 'NAME'} allows it",
            )
        if origin and not self.trusts(host, origin):
            raise NotAllowedError(
                f"origin {origin} is not allowed",
                kind="wrong-origin",
                hint=f"wakelog serve --trusted-origin {origin} allows it",
            )

    def trusts(self, host: str, origin: str) -> bool:
        """Whether a page is this server's own, or of a trusted origin."""
        origin = origin.lower()
        return origin in (f"http://{host.lower()}", f"https://{host.lower()}") or origin in self.origins


def _without_port(host: str) -> str:
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


class ConnectionCount:
    """Counts the open connections of each address. The limit is `most`, and LOOPBACK_TIMES as many from this machine; 0
    means no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> int:
        """Counts one more connection and returns 0; at the limit, counts nothing and returns the limit."""
        most = self._most * (LOOPBACK_TIMES if _is_loopback(address) else 1)
        if most and self._open[address] >= most:
            return most
        self._open[address] += 1
        return 0

    def leave(self, address: str) -> None:
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has no address, and is on this machine
        return True
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


class Rates:
    """Token buckets, one for each name: `rate` per second, and up to `burst` at once. A rate of 0 means no limit."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Takes one token and returns 0; if there is none, returns the seconds to wait."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, at = self._buckets.get(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1.0:
            return (1.0 - left) / self._rate
        self._buckets[name] = (left - 1.0, now)
        self._buckets.move_to_end(name)
        while len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        return 0.0
