"""Fair shares of a server's limited resources: one client cannot use up all of them.

Request slots, threads, tails and memory for bodies are counted by key and by namespace. One key gets at most half of
each, and all keys of one namespace together at most three quarters. So a client that floods the server, or asks slow
questions, waits or is refused, and others are still answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import NamedTuple

from wakelog.http.problems import busy, share_used


class Requester(NamedTuple):
    """Whose share is used. All requests without a key count as one requester."""

    key: str
    space: str


class Share:
    """How much of one resource is in use."""

    def __init__(self, most: int, what: str) -> None:
        self.most = most
        self.key_max = max(1, -(-most // 2))
        self.space_max = max(1, -(-most * 3 // 4))
        self._what = what
        self.used = 0
        self._keys: Counter[str] = Counter()
        self._spaces: Counter[str] = Counter()

    def check(self, who: Requester, amount: int = 1) -> None:
        """UnavailableError if that much is not left for the requester."""
        if self._keys[who.key] + amount > self.key_max:
            raise share_used(self._what, "this key", self.key_max)
        if who.space and self._spaces[who.space] + amount > self.space_max:
            raise share_used(self._what, "this namespace", self.space_max)
        if self.used + amount > self.most:
            raise busy()

    def fits(self, who: Requester) -> bool:
        return (
            self.used < self.most
            and self._keys[who.key] < self.key_max
            and (not who.space or self._spaces[who.space] < self.space_max)
        )

    def add(self, who: Requester, amount: int) -> None:
        self.used += amount
        for count, name in ((self._keys, who.key), (self._spaces, who.space)):
            count[name] += amount
            if not count[name]:
                del count[name]

    def hold(self, who: Requester, amount: int = 0) -> ShareGrant:
        """Takes an amount for a request; UnavailableError if that much is not left."""
        grant = ShareGrant(self, who)
        if amount:
            grant.add(amount)
        return grant


class ShareGrant:
    """The part of a share that one request uses. Released at its end."""

    __slots__ = ("_amount", "_share", "_who")

    def __init__(self, share: Share, who: Requester) -> None:
        self._share, self._who, self._amount = share, who, 0

    def add(self, amount: int) -> None:
        """Takes more; UnavailableError if that much is not left."""
        self._share.check(self._who, amount)
        self._share.add(self._who, amount)
        self._amount += amount

    def release(self) -> None:
        amount, self._amount = self._amount, 0
        if amount:
            self._share.add(self._who, -amount)

    def __enter__(self) -> ShareGrant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class ThreadQueue:
    """A share of threads that requesters wait for: first come, first served, except that a requester whose share is
    used up is passed over."""

    def __init__(self, most: int) -> None:
        self._share = Share(most, "threads")
        self._waiting: deque[tuple[Requester, asyncio.Future[None]]] = deque()

    async def enter(self, who: Requester) -> None:
        if self._share.fits(who):
            self._share.add(who, 1)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((who, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._waiting.remove((who, future))
            else:
                self.leave(who)  # it was admitted just before
            raise

    def leave(self, who: Requester) -> None:
        self._share.add(who, -1)
        # One left, so one at most fits now.
        for place, (next_up, future) in enumerate(self._waiting):
            if self._share.fits(next_up) and not future.done():
                del self._waiting[place]
                self._share.add(next_up, 1)
                future.set_result(None)
                return
