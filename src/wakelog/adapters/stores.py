"""The store of an adapter: an open one that the caller keeps, or a place at which the adapter opens its own."""

from __future__ import annotations

import os
from typing import Self

import wakelog
from wakelog.store import Store

Place = Store | str | os.PathLike[str] | None
"""An open store, or an argument of `wakelog.open`."""


class StoreUser:
    """Base of adapters that keep sessions in a store."""

    def __init__(self, place: Place) -> None:
        self._is_own = not isinstance(place, Store)
        self.store = place if isinstance(place, Store) else wakelog.open(place)

    def close(self) -> None:
        """Closes the store if the adapter opened it."""
        if self._is_own:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
