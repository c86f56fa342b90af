"""Reads ahead from an engine that needs round trips.

A projector reads one session after another and works in between. Meanwhile this reads the next sessions: the head
first, then the commits from the watermark. The result is the same as reading later, unless something was removed in
between. So after a removal the projector calls `forget`, and everything is read again.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from wakelog.engine import Engine
from wakelog.errors import WakelogError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head

if TYPE_CHECKING:
    from concurrent.futures import Future

THREADS = 4
SESSIONS_AHEAD = 32
"""How many sessions are read ahead."""
COMMITS_AHEAD = 20
"""How many commits of each; the rest is read on demand."""

_Read = tuple[Head, Seq, list[Commit], Iterator[Commit]]


def reading_ahead(engine: Engine, sessions: int) -> AbstractContextManager[Any]:
    """The engine for a pass over some sessions: it reads ahead if it is far and there are several."""
    return ReadAheadEngine(engine) if engine.abilities.is_far and sessions > 1 else contextlib.nullcontext(engine)


class ReadAheadEngine:
    """An engine that reads ahead, for one pass over many sessions."""

    def __init__(self, engine: Engine) -> None:
        from concurrent.futures import ThreadPoolExecutor  # slow to load, and only remote engines need it

        self._engine = engine
        self._pool = ThreadPoolExecutor(THREADS, "wakelog ahead")
        self._read: OrderedDict[SessionId, Future[_Read]] = OrderedDict()

    def expect(self, session: SessionId, after: Seq | None) -> None:
        """Starts reading a session that is needed soon, after its watermark (None: it is new)."""
        if session not in self._read and len(self._read) < SESSIONS_AHEAD:
            self._read[session] = self._pool.submit(self._fetch, session, after)

    def forget(self) -> None:
        """Discards everything that was read ahead, because something was removed."""
        self._read.clear()

    def _fetch(self, session: SessionId, after: Seq | None) -> _Read:
        head = self._engine.head(session)
        if after is None:
            after = head.fork.at if head.fork else 0
        commits = self._engine.read(session, after=after, payloads=True)
        return head, after, list(itertools.islice(commits, COMMITS_AHEAD)), commits

    def head(self, session: SessionId) -> Head:
        with contextlib.suppress(WakelogError):  # the direct call raises it again
            if session in self._read:
                return self._read[session].result()[0]
        return self._engine.head(session)

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        with contextlib.suppress(WakelogError):
            if session in self._read and payloads and upto is None:
                _, begins, commits, rest = self._read.pop(session).result()
                if begins == after:
                    return itertools.chain(commits, rest)
        return self._engine.read(session, after=after, upto=upto, payloads=payloads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __enter__(self) -> ReadAheadEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
