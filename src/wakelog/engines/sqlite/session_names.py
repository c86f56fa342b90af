"""Reads the names of sessions from a store's file with one statement, for shell completion.

Everything else asks the engine, which checks what it reads. Here damage could at most offer a wrong name.
"""

from __future__ import annotations

import apsw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SessionLine = tuple[str, str, int, int]
WAIT_MS = 200
_STORE = "select application_id, user_version from pragma_application_id, pragma_user_version"
_KNOWN = (0x77616B65, 1)
"""Application id and schema version as in connection.py; a test compares them."""
_IS_ENCRYPTED = "select count(*) from sqlite_schema where type = 'table' and name = 'mark'"
_MARK = "select count(*) from mark where name = 'encryption'"
_NEWEST = """
select coalesce((select name from name where session = s.id), s.id) as label, log.status, log.turn, log.at
from session s
join log on log.id = (select id from log where session = s.no order by last desc limit 1)
where log.status <> 'deleted' and substr(label, 1, length(?1)) = ?1
order by log.at desc, s.id limit ?2
"""


def newest_names(path: str, begin: str, most: int) -> list[SessionLine] | None:
    """Name (or id), status, turn and time of the sessions whose name has this prefix, the last written first. None
    where this is no plain store of this version: then ask the engine."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(WAIT_MS)
        if db.execute(_STORE).fetchone() != _KNOWN:
            return None
        if db.execute(_IS_ENCRYPTED).get and db.execute(_MARK).get:
            return None
        found: Any = db.execute(_NEWEST, (begin, most)).fetchall()
        return list(found)
    finally:
        db.close(True)
