"""The ranges of a history that are in view, as they are kept (visible.py says how they are found)."""

from __future__ import annotations

from typing import Any

from wakelog.index.connection import Connection
from wakelog.model.ids import Seq

OPEN_END = 1 << 62
"""The last seq of a range that goes on."""

Range = tuple[Seq, Seq]

VISIBLE = "select v.first, v.last from wl_visible v where v.session = ? order by v.first"
HIDE = "delete from wl_visible where session = ?"
SHOW = "insert into wl_visible values (?, ?, ?)"


def visible(db: Connection, session: int) -> list[Range]:
    """The ranges of a session's history that are in view, oldest first."""
    rows: Any = db.execute(VISIBLE, (session,)).fetchall()
    return [(first, last) for first, last in rows]
