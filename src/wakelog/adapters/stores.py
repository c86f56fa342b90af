"""The store of an adapter: one that is open already, or a place to open one at.

The second is closed with the adapter, the first is not.
"""

from __future__ import annotations

import os

import wakelog
from wakelog.store import Store

Place = Store | str | os.PathLike[str] | None
"""An open store; or the url of one, as for `wakelog.open`."""


class InStore:
    """What keeps its sessions in a store."""

    def __init__(self, place: Place) -> None:
        self._is_own = not isinstance(place, Store)
        self.store = place if isinstance(place, Store) else wakelog.open(place)

    def close(self) -> None:
        """Closes the store, if it was opened here."""
        if self._is_own:
            self.store.close()
