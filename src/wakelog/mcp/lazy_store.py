"""The store behind the MCP server, created by the first write. A client that only connects leaves nothing in the user's
folder; until the first write, reads find an empty store.

A server lives as long as its client, and hooks write meanwhile. So what they wrote is taken in before a read, at most
every other second; what cannot be taken in stays where it is, and the read goes on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.store import Store

Opener = Callable[[bool], Store]
"""Opens the store; with True it makes it."""


EVERY_S = 2.0


class LazyStore:
    """A store that is opened when it is needed."""

    def __init__(
        self, opener: Opener, take_in: Callable[[], object] | None = None, *, every_s: float = EVERY_S
    ) -> None:
        self._open = opener
        self._take_in = take_in
        self._every_s = every_s
        self._taken_at = -every_s
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._nothing = Store(MemoryEngine())

    @classmethod
    def of(cls, store: Store) -> LazyStore:
        """The place of a store that is open already."""
        return cls(lambda create: store)

    @property
    def store(self) -> Store:
        """The store to read from, with what hooks wrote so far; an empty one as long as there is none."""
        self._refresh()
        try:
            return self._opened(create=False)
        except NotFoundError as exc:
            if exc.kind != "store-not-found":
                raise
            return self._nothing

    @property
    def written(self) -> Store:
        """The store to write to, made if there is none."""
        return self._opened(create=True)

    def _refresh(self) -> None:
        if self._take_in is None:
            return
        with self._lock:
            now = time.monotonic()
            if now - self._taken_at < self._every_s:
                return
            self._taken_at = now
            with contextlib.suppress(Exception):  # the question is about something else
                self._take_in()

    def _opened(self, *, create: bool) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._open(create)
            return self._store
