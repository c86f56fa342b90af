"""Checks before anything else: the host of a request, its origin, and its rate.

**Host.** A web page can reach a server on the user's own machine through a name that resolves to it (DNS rebinding). It
cannot choose the Host header, so the server answers only requests for its allowed host names.

**Origin.** A browser says which page a request comes from. Requests from other pages are refused, unless their origin
is trusted. Programs send no Origin.

**Rate.** There is a token bucket for each key, and one for each address without a valid key.

**Connections.** One address may have so many connections at once, whatever is asked on them. Everybody behind a proxy
on this machine comes from loopback, so loopback may have more.
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
    """The host names and origins that are let in."""

    def __init__(self, hosts: Iterable[str] = LOOPBACK, origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check(self, host: str, origin: str) -> None:
        """NotAllowedError unless the request was meant for this server and comes from no strange page."""
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
        """Whether a page is this server's own, or one of those it was told to trust."""
        origin = origin.lower()
        return origin in (f"http://{host.lower()}", f"https://{host.lower()}") or origin in self.origins


def _without_port(host: str) -> str:
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


class ConnectionCount:
    """How many connections each address has open: at most `most`, from this machine LOOPBACK_TIMES as many; 0 is no
    limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> int:
        """Counts one more; 0, or how many there are already when there may be no more."""
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
    except ValueError:  # a socket in the file system has no address, and is on this machine
        return True
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


class Rates:
    """Token buckets, one for each name: `rate` a second, and up to `burst` at once. A rate of 0 lets everything
    through."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Takes one token; 0 when there was one, else how many seconds to wait."""
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
