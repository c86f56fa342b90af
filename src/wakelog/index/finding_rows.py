"""Caches the findings of rules by turn: positions only, no text.

The projector does not write these rows; it only removes them together with their session. They are read without
catching up: a finished turn does not change, and the text of a finding is read from the log. If anything is wrong with
the cache, the findings are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakelog.errors import WakelogError
from wakelog.index.connection import Connection, Damaged, ProjectionConflict
from wakelog.index.index import Index
from wakelog.model.ids import SessionId

COLUMNS = 17
_FAILURES = (Damaged, ProjectionConflict, WakelogError)
_NUMBER = "select s.no from wl_session s where s.id = ?"
_LOAD = """
select f.no, f.rules, f.kind, f.seq, f.block, f.start, f.stop, f.reason_seq, f.reason_block, f.reason_start,
    f.reason_stop, f.score, f.detail, f.calls
from wl_finding f where f.session = ? and f.turn = ? and f.attempt = ? order by f.no
"""
_DROP = "delete from wl_finding where session = ? and turn = ? and attempt = ?"
_ADD = f"insert into wl_finding values ({', '.join('?' * COLUMNS)})"

FindingRow = tuple[Any, ...]
"""kind, seq, block, start, stop, the same four of the reason, score, detail, calls."""


def load_findings(index: Index, session: SessionId, turn: int, attempt: int, rules: int) -> list[FindingRow] | None:
    """What these rules found in a turn; None if that is not cached."""
    try:
        with index.reading() as db:
            number = _number(db, session)
            rows: Any = db.execute(_LOAD, (number, turn, attempt)).fetchall() if number else []
    except _FAILURES:
        return None
    if not rows or rows[0][0] != 0 or rows[0][1] != rules:
        return None
    return [tuple(row[2:]) for row in rows[1:]]


def save_findings(
    index: Index, session: SessionId, turn: int, attempt: int, rules: int, found: Sequence[FindingRow]
) -> None:
    """Caches what rules found in a turn, and replaces older findings. Does nothing for a session that is not indexed
    yet."""
    marker: FindingRow = ("", 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "[]")
    try:
        with index.writing() as db:
            number = _number(db, session)
            if number:
                db.execute(_DROP, (number, turn, attempt))
                rows = [(number, turn, attempt, no, rules, *row) for no, row in enumerate((marker, *found))]
                db.executemany(_ADD, rows)
    except _FAILURES:
        return


def _number(db: Connection, session: SessionId) -> int:
    row: Any = db.execute(_NUMBER, (session,)).fetchone()
    return int(row[0]) if row else 0
