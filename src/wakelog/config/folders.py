"""Folders of the user: where their own store is, and where a local index of a store on a server is kept.

An index can always be rebuilt from the log. This one is for read-only SQL, and for everything if the store's url says
`index=local`; otherwise the index is in the database (index/shared.py).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing has it: a shell's completion asks here, and waits
if TYPE_CHECKING:
    from pathlib import Path


def cached_index(identity: str) -> Path | None:
    """The file for the index of the store that `identity` tells from others; None where there is no place for it."""
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
    """The user's data folder for wakelog: `WAKELOG_DATA`, or where the system keeps such things."""
    if named := os.environ.get("WAKELOG_DATA"):
        return os.path.expanduser(named)
    return user_folder("data")


_ON_LINUX = {
    "data": ("XDG_DATA_HOME", "~/.local/share"),
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
}


def user_folder(what: str) -> str:
    """Where the system keeps such things of the user: "data", "config" or "cache", as platformdirs has it. On Linux it
    is asked for without importing that, since every command asks."""
    if sys.platform != "linux":
        import platformdirs

        return str(getattr(platformdirs, f"user_{what}_path")("wakelog", appauthor=False))
    variable, otherwise = _ON_LINUX[what]
    base = os.environ.get(variable, "").strip() or os.path.expanduser(otherwise)
    return os.path.join(base, "wakelog")


def store_folder(what: str, identity: str) -> Path:
    """A folder of the user's for what belongs to one store and is not in it: the store may be on a server."""
    import hashlib
    from pathlib import Path

    return Path(data_folder()) / what / hashlib.sha256(identity.encode()).hexdigest()[:16]
