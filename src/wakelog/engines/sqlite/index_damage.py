"""Finds the one damaged index of a database, and rebuilds it if nothing else is wrong.

An index holds nothing that is not in its table, so it can be rebuilt from there. But it is also the proof that no row
is missing (schema.sql: every row is found in two ways). So it is rebuilt only when it alone is wrong: every row's
checksum is right, and all other indexes agree with the rows.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import apsw

from wakelog.engines.sqlite.rows import COLUMNS, checksum

# SQLite's integrity check names an index directly, by its first page, or by one of its pages.
_OF_AN_INDEX = re.compile(r"(?:.* )?index (\w+)\b|Tree (\d+) |.* (?:on|of) page (\d+)$")
_PAGES = (
    "select rootpage, name from sqlite_schema where type = 'index'",
    "select pageno, name from dbstat where name in (select name from sqlite_schema where type = 'index')",
)
_ROWS = (
    f"select s.id, {COLUMNS} from log not indexed left join session s on s.no = log.session",
    "select id, parent, fork_at, fork_hash, checksum from session not indexed",
    "select name, session, checksum from name not indexed",
    # Without this order SQLite uses an index here, even with `not indexed`.
    "select s.id, c.id, c.last, c.checksum from commit_id c not indexed left join session s on s.no = c.session"
    " order by c.session, c.id",
)


def damaged_index(db: apsw.Connection, faults: list[str]) -> str:
    """The index that all faults of an integrity check are about; empty where more than that is wrong."""
    pages: dict[int, str] = {}
    for query in _PAGES:
        with contextlib.suppress(apsw.Error):  # damaged, or this SQLite has no such table
            pages.update((number, name) for number, name in db.execute(query))
    results = {_index_in(fault, pages) for fault in faults}
    with contextlib.suppress(apsw.CorruptError, UnicodeDecodeError):
        return results.pop() if len(results) == 1 and all(results) and all(_are_sound(db)) else ""
    return ""


def rebuild_index(db: apsw.Connection, name: str) -> bool:
    """Rebuilds an index, within a transaction. False where that did not help; then nothing has changed."""
    db.execute("savepoint index_damage")
    try:
        db.execute(f'reindex "{name}"')
        is_whole = not integrity(db)
    except apsw.Error:
        is_whole = False
    if not is_whole:
        db.execute("rollback to index_damage")
    db.execute("release index_damage")
    return is_whole


def integrity(db: apsw.Connection) -> list[str]:
    """The faults that SQLite's own check finds."""
    rows: Any = db.execute("pragma integrity_check").fetchall()
    lines = (line for (text,) in rows for line in str(text).splitlines())
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _index_in(fault: str, pages: dict[int, str]) -> str:
    match = _OF_AN_INDEX.match(fault)
    if match is None:
        return ""
    return match[1] or pages.get(int(match[2] or match[3]), "")


def _are_sound(db: apsw.Connection) -> Iterator[bool]:
    """For each row of every table whether its checksum is right."""
    for query in _ROWS:
        for *values, stored in db.execute(query):
            yield checksum(*values) == stored
