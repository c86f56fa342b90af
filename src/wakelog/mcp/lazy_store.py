"""The store behind the MCP server, created by the first write. A client that only connects leaves nothing in the user's
folder; until the first write, reads find an empty store."""

from __future__ import annotations

import threading
from collections.abc import Callable

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.store import Store

Opener = Callable[[bool], Store]
"""Opens the store; with True it makes it."""


class LazyStore:
    """A store that is opened when it is needed."""

    def __init__(self, opener: Opener) -> None:
        self._open = opener
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._nothing = Store(MemoryEngine())

    @classmethod
    def of(cls, store: Store) -> LazyStore:
        """The place of a store that is open already."""
        return cls(lambda create: store)

    @property
    def store(self) -> Store:
        """The store to read from; an empty one as long as there is none."""
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

    def _opened(self, *, create: bool) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._open(create)
            return self._store
