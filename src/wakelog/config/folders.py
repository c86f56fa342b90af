"""Folders of the user: for their own store, and for the local index of a store on a server.

That index can always be rebuilt from the log. It is used for read-only SQL, and for everything if the store's URL says
`index=local`; otherwise the index is in the database (index/shared_index.py).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not imported from typing, because shell completion must start fast
if TYPE_CHECKING:
    from pathlib import Path


def cached_index(identity: str) -> Path | None:
    """Returns the index file for the store with this `identity`; None if its folder cannot be created."""
    import hashlib
    from pathlib import Path

    chosen = os.environ.get("WAKELOG_CACHE")
    base = Path(chosen) / "wakelog" if chosen else Path(user_folder("cache"))
    folder = base / hashlib.sha256(identity.encode()).hexdigest()[:24]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder / "index.db"


def data_folder() -> str:
    """Returns the user's data folder for wakelog: `WAKELOG_DATA`, or the system's default."""
    if wakelog_data := os.environ.get("WAKELOG_DATA"):
        return os.path.expanduser(wakelog_data)
    return user_folder("data")


_ON_LINUX = {
    "data": ("XDG_DATA_HOME", "~/.local/share"),
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
}


def user_folder(what: str) -> str:
    """Returns the user's "data", "config" or "cache" folder, as platformdirs does. On Linux platformdirs is not
    imported, because every command needs this."""
    if sys.platform != "linux":
        import platformdirs

        return str(getattr(platformdirs, f"user_{what}_path")("wakelog", appauthor=False))
    variable, otherwise = _ON_LINUX[what]
    base = os.environ.get(variable, "").strip() or os.path.expanduser(otherwise)
    return os.path.join(base, "wakelog")


def store_folder(what: str, identity: str) -> Path:
    """Returns a user's folder for files that belong to one store but are not in it: the store may be on a server."""
    import hashlib
    from pathlib import Path

    return Path(data_folder()) / what / hashlib.sha256(identity.encode()).hexdigest()[:16]
