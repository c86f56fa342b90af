"""The store behind the MCP server, created by the first write. A client that only connects leaves nothing in the user's
folder; until the first write, reads find an empty store.

Hooks may write while the server runs. So a read first imports what they wrote, at most every two seconds. If that
fails, the read continues without it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.store import Store

Opener = Callable[[bool], Store]
"""Opens the store; with True, creates it if needed."""
EVERY_S = 2.0


class LazyStore:
    """A store that is opened when it is needed."""

    def __init__(
        self, opener: Opener, take_in: Callable[[], object] | None = None, *, every_s: float = EVERY_S
    ) -> None:
        self._open = opener
        self._take_in = take_in
        self._every_s = every_s
        self._imported_at = -every_s
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._empty = Store(MemoryEngine())

    @classmethod
    def of(cls, store: Store) -> LazyStore:
        """Wraps a store that is open already."""
        return cls(lambda create: store)

    @property
    def store(self) -> Store:
        """The store to read from, including what hooks wrote; an empty one if there is none yet."""
        self._refresh()
        try:
            return self._open_once(create=False)
        except NotFoundError as exc:
            if exc.kind != "store-not-found":
                raise
            return self._empty

    @property
    def written(self) -> Store:
        """The store to write to, created if there is none."""
        return self._open_once(create=True)

    def _refresh(self) -> None:
        if self._take_in is None:
            return
        with self._lock:
            now = time.monotonic()
            if now - self._imported_at < self._every_s:
                return
            self._imported_at = now
            with contextlib.suppress(Exception):  # the read does not depend on it
                self._take_in()

    def _open_once(self, *, create: bool) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._open(create)
            return self._store
