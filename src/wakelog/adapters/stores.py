"""The store of an adapter: one that is open already, or a place to open one at."""

from __future__ import annotations

import os

import wakelog
from wakelog.store import Store

Place = Store | str | os.PathLike[str] | None
"""An open store; or the url of one, as for `wakelog.open`."""


def store_at(place: Place) -> tuple[Store, bool]:
    """The store, and whether it was opened here and so is to be closed here."""
    return (place, False) if isinstance(place, Store) else (wakelog.open(place), True)
