"""Rows of sessions and names that a flipped bit has damaged, and what they said before.

Every value of such a row is stored in a second place: ids in the indexes and in other rows, the start of a fork in its
first commit, and each commit's checksum covers its session's id. So there are few candidates for the original row, and
the one that matches the stored checksum is right. If none matches but the row is a candidate, the checksum is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from wakelog.engines.sqlite.rows import COLUMNS, checksum
from wakelog.model.ids import SessionId, is_session_id, root_of

Row = tuple[Any, ...]

_SESSIONS = "select no, id, parent, fork_at, fork_hash, checksum from session not indexed"
_NAMES = "select name, session, checksum from name not indexed"
# A column that an index has is read from there.
_IDS = (
    "select id from session not indexed",
    "select id from session indexed by sqlite_autoindex_session_1 where id > ''",
    "select id from session indexed by session_twin where length(id) > 0",
    "select parent from session not indexed where parent is not null",
    "select session from name not indexed",
    "select session from name indexed by name_session where session > ''",
    "select session from name indexed by name_session_twin where length(session) > 0",
)
_KNOWN = "select name from name indexed by name_twin where length(name) > 0"
_WAYS = (
    ("session not indexed", "session indexed by session_twin where length(id) > 0"),
    ("name not indexed", "name indexed by name_session_twin where length(session) > 0"),
)
_FIRST = f"select {COLUMNS} from log where session = ? order by first limit 1"


def repair_rows(db: apsw.Connection) -> int:
    """Restores damaged rows where the original is certain, within a transaction. Returns how many."""
    damaged = [row for row in db.execute(_SESSIONS).fetchall() if checksum(*row[1:-1]) != row[-1]]
    damaged_names = [row for row in db.execute(_NAMES).fetchall() if checksum(*row[:-1]) != row[-1]]
    if not (damaged or damaged_names) or _is_row_missing(db):
        return 0
    ids = sorted({id for query in _IDS for (id,) in db.execute(query) if is_session_id(id)})
    sessions = [repaired for row in damaged if (repaired := _session(db, row, ids))]
    if sessions:
        db.execute("reindex session")  # first: to change a row, SQLite looks for it in the indexes
    for number, *values in sessions:
        change = "update session set id = ?, parent = ?, fork_at = ?, fork_hash = ?, checksum = ? where no = ?"
        db.execute(change, (*values, checksum(*values), number))
    there = {id for (id,) in db.execute("select id from session")}
    known = {name for (name,) in db.execute(_KNOWN)}
    names = [fixed for row in damaged_names if row[0] in known and (fixed := _name(row, ids, there))]
    if names:
        db.execute("reindex name")
    for name, session in names:
        db.execute("update name set session = ?, checksum = ? where name = ?", (session, checksum(name, session), name))
    return len(sessions) + len(names)


def _is_row_missing(db: apsw.Connection) -> bool:
    """Whether an index has a row that its table lacks. Then it is the only witness, and must not be rebuilt."""
    counts = [[db.execute(f"select count(*) from {way}").get for way in ways] for ways in _WAYS]
    return any(len({*each}) > 1 for each in counts)


def _session(db: apsw.Connection, row: Row, ids: list[str]) -> Row | None:
    """The original of a damaged row of a session, or None."""
    number, *values, stored = row
    commit: Any = db.execute(_FIRST, (number,)).fetchone()
    if commit is None:
        return None
    its_own = [
        id for id in ids if checksum(id, *commit[:-1]) == commit[-1]
    ]  # a commit's checksum covers its session's id
    possible = [each for id in its_own for each in _possible(id, commit, ids)]
    right = [each for each in possible if checksum(*each) == stored] or [
        each for each in possible if each == tuple(values)
    ]
    return (number, *right[0]) if right else None


def _possible(id: str, commit: Row, ids: list[str]) -> Iterator[Row]:
    """The candidates for a session's row, from its id and its first commit."""
    first, prev = commit[0], commit[-3]
    if first == 1:
        yield id, None, None, None
        return
    for parent in ids:
        if parent != id and root_of(SessionId(parent)) == root_of(SessionId(id)):
            yield id, parent, first - 1, prev


def _name(row: Row, ids: list[str], there: set[str]) -> tuple[str, str] | None:
    """The original of a damaged row of a name, or None."""
    name, session, stored = row
    right = [id for id in ids if checksum(name, id) == stored] or [id for id in ids if id == session and id in there]
    return (name, right[0]) if right else None
