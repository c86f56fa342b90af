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
    """In whose name something is taken. Without a key, in nobody's, who is somebody too."""

    key: str
    space: str


class Share:
    """How much of one thing is in use."""

    def __init__(self, most: int, what: str) -> None:
        self.most = most
        self.of_key = max(1, -(-most // 2))
        self.of_space = max(1, -(-most * 3 // 4))
        self._what = what
        self.used = 0
        self._keys: Counter[str] = Counter()
        self._spaces: Counter[str] = Counter()

    def check(self, who: Requester, amount: int = 1) -> None:
        """UnavailableError when there is not so much left for them."""
        if self._keys[who.key] + amount > self.of_key:
            raise share_used(self._what, "this key", self.of_key)
        if who.space and self._spaces[who.space] + amount > self.of_space:
            raise share_used(self._what, "this namespace", self.of_space)
        if self.used + amount > self.most:
            raise busy()

    def fits(self, who: Requester) -> bool:
        return (
            self.used < self.most
            and self._keys[who.key] < self.of_key
            and (not who.space or self._spaces[who.space] < self.of_space)
        )

    def add(self, who: Requester, amount: int) -> None:
        self.used += amount
        for count, name in ((self._keys, who.key), (self._spaces, who.space)):
            count[name] += amount
            if not count[name]:
                del count[name]

    def hold(self, who: Requester) -> ShareGrant:
        return ShareGrant(self, who)


class ShareGrant:
    """What one request has of a share; given back in the end."""

    __slots__ = ("_amount", "_share", "_who")

    def __init__(self, share: Share, who: Requester) -> None:
        self._share, self._who, self._amount = share, who, 0

    def add(self, amount: int) -> None:
        """Takes more, if there is as much left."""
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
    """A share that is waited for: first come first served, but those whose share is used are passed over."""

    def __init__(self, most: int) -> None:
        self._share = Share(most, "threads")
        self._line: deque[tuple[Requester, asyncio.Future[None]]] = deque()

    async def enter(self, who: Requester) -> None:
        if self._share.fits(who):
            self._share.add(who, 1)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((who, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._line.remove((who, future))
            else:
                self.leave(who)  # it was just let in
            raise

    def leave(self, who: Requester) -> None:
        self._share.add(who, -1)
        # One left, so one at most fits now.
        for place, (waiting, future) in enumerate(self._line):
            if self._share.fits(waiting) and not future.done():
                del self._line[place]
                self._share.add(waiting, 1)
                future.set_result(None)
                return
