"""The names of sessions, read from a store's file with one statement: for a shell that waits.

Everything else asks the engine, which checks what it reads. Here a wrong name would be offered, and nothing more.
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
"""What connection.py calls the application and the schema; a test holds them together."""
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
    """Name, or id where there is none, status, turn and time of the sessions whose name begins so, the last written
    first. None where this is no plain store of this version: then ask the engine."""
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
