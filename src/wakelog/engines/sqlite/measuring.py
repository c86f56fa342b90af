"""Looking at a database from outside: how many bytes each session takes, and whether the file itself is sound.

Its own short-lived connection, so that a long check never holds up the engine's readers.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from wakelog.engines.sqlite.connection import _NETWORK, _file_system_of, connect, translated
from wakelog.model.ids import SessionId

# SQLite tells the length of a blob without reading it.
_SIZES = """
    select s.id, sum(length(records) + length(payloads))
        + coalesce((select sum(length(data)) from snapshot where snapshot.session = s.no), 0)
    from log join session s on s.no = log.session group by s.no
"""


def stored_bytes(path: Path) -> dict[SessionId, int]:
    """The bytes of each session, deleted ones with what is still kept of them included."""
    with translated(str(path)), contextlib.closing(connect(path, create=False)) as db:
        rows: Any = db.execute(_SIZES).fetchall()
        return {SessionId(session): count for session, count in rows}


def integrity_faults(path: Path) -> list[str]:
    """What SQLite's own integrity check finds wrong with the file; empty when it is sound."""
    with translated(str(path)), contextlib.closing(connect(path, create=False)) as db:
        rows: Any = db.execute("pragma integrity_check").fetchall()
    found = [str(row[0]) for row in rows]
    return [] if found == ["ok"] else found


def file_system(folder: Path) -> tuple[str, bool]:
    """The file system a folder is on (empty where the system does not tell), and whether it is a network's."""
    kind = _file_system_of(folder)
    return kind, kind in _NETWORK
