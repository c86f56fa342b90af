"""Folders of the user: where their own store is, and where a local index of a store on a server is kept.

An index can always be rebuilt from the log. This one is for read-only SQL, and for everything if the store's url says
`index=local`; otherwise the index is in the database (index/shared.py).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def cached_index(identity: str) -> Path | None:
    """The file for the index of the store that `identity` tells from others; None where there is no place for it."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("WAKELOG_CACHE")
    base = Path(chosen) / "wakelog" if chosen else user_cache_path("wakelog", appauthor=False)
    folder = base / hashlib.sha256(identity.encode()).hexdigest()[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder / "index.db"


def data_folder() -> str:
    """The user's data folder for wakelog: `WAKELOG_DATA`, or where the system keeps such things."""
    if named := os.environ.get("WAKELOG_DATA"):
        return os.path.expanduser(named)
    from platformdirs import user_data_path

    return str(user_data_path("wakelog", appauthor=False))


def store_folder(what: str, identity: str) -> Path:
    """A folder of the user's for what belongs to one store and is not in it: the store may be on a server."""
    return Path(data_folder()) / what / hashlib.sha256(identity.encode()).hexdigest()[:16]
