"""Inspects a database: the bytes of each session, and whether the file is sound.

Uses a short-lived connection of its own, so that a long check never holds up the engine's readers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from wakelog.engine import StoreFinding
from wakelog.engines.sqlite import tables
from wakelog.engines.sqlite.connection import _NETWORK, _file_system_of, connect, translate_errors
from wakelog.engines.sqlite.fork_safety import gate
from wakelog.engines.sqlite.index_damage import damaged_index, integrity, rebuild_index
from wakelog.engines.sqlite.row_damage import repair_rows
from wakelog.engines.sqlite.rows import checksum
from wakelog.errors import CorruptLogError
from wakelog.model.ids import SessionId, is_session_id

# SQLite tells the length of a blob without reading it.
_SIZES = """
    select s.id, sum(length(records) + length(payloads))
        + coalesce((select sum(length(data)) from snapshot where snapshot.session = s.no), 0)
    from log join session s on s.no = log.session group by s.no
"""


# A reader that finds nothing under a key cannot tell damage from absence.
_COMMIT_IDS = """
    select s.id, c.id, c.last, c.checksum, log.commit_id from commit_id c
    left join session s on s.no = c.session
    left join log on log.session = c.session and log.last = c.last
"""
_FORGOTTEN = """
    select commit_id, session from log where fingerprint <> x'' and not exists
    (select 1 from commit_id c where c.session = log.session and c.id = log.commit_id and c.last = log.last)
"""
# Reads each row twice, by the index and by its number: SQLite takes a column from the index wherever it can. A flipped
# bit can make a column null, which is neither equal nor unequal to anything: hence `is not`.
_STRAYED = """
    select row.first from log place indexed by log_place join log row not indexed on row.id = place.id
    where place.session = ? and (row.session is not place.session or row.last is not place.last)
"""
_SNAPSHOTS = "select s.id, seq, data, x.checksum, x.session from snapshot x left join session s on s.no = x.session"
_CACHE = "drop it, it is a cache"


def stored_bytes(path: Path) -> dict[SessionId, int]:
    """The bytes of each session, including what is still stored of deleted ones."""
    with _looking(path) as db:
        rows: Any = db.execute(_SIZES).fetchall()
        return {SessionId(session): count for session, count in rows}


def integrity_faults(path: Path, *, vfs: str | None = None) -> list[str]:
    """What is wrong with the file: what SQLite's own check finds, and rows that are not found under their key. Empty
    when it is sound."""
    results: list[str] = []
    try:
        with _looking(path, vfs) as db:
            results += integrity(db)
            results += _faults(db)
    except CorruptLogError as exc:
        results = results or [str(exc)]
    return results


def _faults(db: apsw.Connection) -> Iterator[str]:
    for name, session, stored in db.execute("select name, session, checksum from name"):
        if checksum(name, session) != stored:
            yield f"the stored name {name!r} is damaged"
    for session, commit_id, last, stored, committed in db.execute(_COMMIT_IDS):
        if commit_id != committed or checksum(session, commit_id, last) != stored:
            yield f"what is stored of commit id {commit_id!r} of {session} is damaged"
    for commit_id, number in db.execute(_FORGOTTEN):
        yield f"commit id {commit_id!r} of session number {number} would not be known if it came again"
    for session, seq, data, stored, _ in db.execute(_SNAPSHOTS):
        if checksum(session, seq, data) != stored:
            yield f"the snapshot at event {seq} of {session} is damaged; {_CACHE}"


def session_faults(db: apsw.Connection, number: int, session: SessionId) -> list[str]:
    """The same for the rows beside one session's commits, in time that depends on the session, not on the store."""
    results: list[str] = []
    try:
        results += _find_session_faults(db, number, session)
    except CorruptLogError as exc:
        results.append(exc.message)
    except (apsw.CorruptError, UnicodeDecodeError) as exc:
        results.append(f"what is kept beside the commits of {session} cannot be read: {exc}")
    return results


def _find_session_faults(db: apsw.Connection, number: int, session: SessionId) -> Iterator[str]:
    ids = f"{_COMMIT_IDS} where c.session = ?"
    for _, commit_id, last, stored, committed in db.execute(ids, (number,)):
        if commit_id != committed or checksum(session, commit_id, last) != stored:
            yield f"what is stored of commit id {commit_id!r} of {session} is damaged"
    for (first,) in db.execute(_STRAYED, (number,)):
        yield f"the row of event {first} of {session} is not found under what it says"
    for commit_id, _ in db.execute(f"{_FORGOTTEN} and session = ?", (number,)):
        yield f"commit id {commit_id!r} of {session} would not be known if it came again"
    name = tables.name_of(db, session)
    if name and tables.session_by_name(db, name) != session:
        yield f"the name {name!r} of {session} leads elsewhere"
    tables.refuse_lost_children(db, session)


def session_ids(db: apsw.Connection) -> list[SessionId]:
    """The ids of all sessions that any table or index still names."""
    ways = ("select id from session not indexed", "select id from session where id > ''", "select session from name")
    results = {str(id) for way in ways for (id,) in _as_far_as_possible(db, way)}
    return sorted(SessionId(id) for id in results if is_session_id(id))


def _as_far_as_possible(db: apsw.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    with contextlib.suppress(apsw.CorruptError, UnicodeDecodeError):
        yield from db.execute(query)


# Rows beside commits whose session does not exist, or no longer.
_ORPHANS = {
    "commits": "select count(*) from log where session not in (select no from session)",
    "snapshots": "select count(*) from snapshot where session not in (select no from session)",
    "heartbeats": "select count(*) from heartbeat where session not in (select no from session)",
}
_EMPTY = "select id from session where no not in (select session from log)"
_NAMES = """
    select name, name.session, (select status from log where log.session = s.no order by last desc limit 1)
    from name left join session s on s.id = name.session
"""


def findings(path: Path, *, vfs: str | None = None) -> Iterator[StoreFinding]:
    """Faults of the file, and rows that belong to nothing."""
    faults = integrity_faults(path, vfs=vfs)
    index = _index_of(path, vfs) if faults else ""
    for text in faults:
        is_cache = text.endswith(_CACHE)
        fix = "wakelog store scrub --repair drops it" if is_cache else "restore the file from a backup"
        if index:
            fix = "wakelog store scrub --repair rebuilds that index: no row is damaged"
        yield StoreFinding(text, fix=fix, can_tidy=is_cache or bool(index))
    try:
        with _looking(path, vfs) as db:
            results = list(_leftovers(db))
    except CorruptLogError as exc:
        results = [StoreFinding(str(exc), fix="restore the file from a backup")]
    yield from results


def _index_of(path: Path, vfs: str | None) -> str:
    with contextlib.suppress(CorruptLogError), _looking(path, vfs) as db:
        return damaged_index(db, integrity(db))
    return ""


def _leftovers(db: apsw.Connection) -> Iterator[StoreFinding]:
    for (session,) in db.execute(_EMPTY):
        yield StoreFinding(
            f"session {session} has lost its commits", session, fix="wakelog store restore BACKUP brings them back"
        )
    for what, query in _ORPHANS.items():
        count: Any = db.execute(query).get
        if count:
            is_damage = what == "commits"
            fix = "restore the file from a backup" if is_damage else "wakelog store scrub --repair drops them"
            yield StoreFinding(
                f"{count} {what} belong to no session", is_damage=is_damage, fix=fix, can_tidy=not is_damage
            )
    for name, session, status in db.execute(_NAMES):
        if status is None or status == "deleted":
            yield name_to_nowhere(name, session, is_deleted=status == "deleted")


def name_to_nowhere(name: str, session: str, *, is_deleted: bool) -> StoreFinding:
    """A name whose session is deleted, or was never opened."""
    if is_deleted:
        return StoreFinding(
            f"the name {name!r} is bound to a session that is deleted",
            session,
            is_damage=False,
            fix="wakelog store scrub --repair frees it",
            can_tidy=True,
        )
    return StoreFinding(
        f"the name {name!r} was claimed for a session that was never opened",
        session,
        is_damage=False,
        fix="none needed: the next session with this name uses it",
    )


def tidy(db: apsw.Connection) -> int:
    """Restores damaged rows of sessions and names, rebuilds a damaged index, and drops damaged caches and orphaned
    rows. Returns how many."""
    count = repair_rows(db)
    faults = integrity(db)
    index = damaged_index(db, faults) if faults else ""
    count += int(rebuild_index(db, index)) if index else 0
    for session, seq, data, stored, number in db.execute(_SNAPSHOTS).fetchall():
        if checksum(session, seq, data) != stored:
            db.execute("delete from snapshot where session = ? and seq = ?", (number, seq))
            count += 1
    db.execute("delete from heartbeat where session not in (select no from session)")
    count += db.changes()
    for name, _, status in db.execute(_NAMES).fetchall():
        if status == "deleted":
            db.execute("delete from name where name = ?", (name,))
            count += 1
    return count


@contextlib.contextmanager
def _looking(path: Path, vfs: str | None = None) -> Iterator[apsw.Connection]:
    with gate.inside(), translate_errors(str(path)), contextlib.closing(connect(path, create=False, vfs=vfs)) as db:
        yield db


def file_system(folder: Path) -> tuple[str, bool]:
    """The file system of a folder (empty where unknown), and whether it is a network file system."""
    kind = _file_system_of(folder)
    return kind, kind in _NETWORK
