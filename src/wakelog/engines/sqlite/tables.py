"""Queries and statements on the tables: numbers, heads, names, commits, snapshots.

They run in whatever transaction the connection is in; the engine decides which.
"""

from __future__ import annotations

import contextlib
from typing import Any

import apsw
import msgspec

from wakelog.engine import Known
from wakelog.engines.sqlite.rows import COLUMNS, HEAD_COLUMNS, PackedCommit, check_name, checksum, head_from_row, to_row
from wakelog.errors import CorruptLogError, NotFoundError, UnsupportedError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

_HEAD = f"select {HEAD_COLUMNS} from log join session s on s.no = ?1 where"
_HEAD_AT = f"{_HEAD} log.session = ?1 and last = ?2 and commit_id = ?3"
_NEWEST = "select id from log indexed by log_place where session = s.no order by last desc limit 1"
# The newest commit by the twin index too, in the same statement, so that no other writer appends in between.
_TWIN = (
    "(select id from log indexed by log_twin where session = s.no order by first desc limit 1) = log.id,"
    " (select name from name indexed by name_session_twin where length(session) = length(s.id) and session = s.id)"
)
_NO_TWIN = "1, null"
_HEAD_IN_ROW = f"{_HEAD} log.id = ?2".replace(HEAD_COLUMNS, HEAD_COLUMNS.rpartition(", (select")[0])
_NEWEST_TRIED = 64
"""How many of the newest commits are tried when the last one is damaged."""
_HEADS = f"select {HEAD_COLUMNS}, {{twin}} from session s left join log on log.id = ({_NEWEST}) where {{where}}"
_HEAD_OF, _HEAD_OF_WITHOUT = (_HEADS.format(twin=twin, where="s.no = ?") for twin in (_TWIN, _NO_TWIN))
_NUMBER_WITHOUT = "select (select no from session where id = ?1), 0"
_NUMBER = _NUMBER_WITHOUT.replace(
    ", 0", ", exists (select 1 from session indexed by session_twin where length(id) = length(?1) and id = ?1)"
)
_INSERT_NAMES = f"{COLUMNS}, records, payloads".replace("log.", "")
_INSERT = f"insert into log (session, {_INSERT_NAMES}) values ({', '.join('?' * 18)})"
_UPDATE = ", ".join(f"{name} = ?" for name in _INSERT_NAMES.split(", "))
# Commits do not overlap, so the first one that reaches `upto` is the last one wanted.
_READ = f"""
    select {COLUMNS}, records, {{payloads}} from log
    where session = ?1 and last > ?2 and first <= ?3 and last <= coalesce(
        (select last from log where session = ?1 and last >= ?3 order by last limit 1), ?3)
    order by last limit ?4
"""
_READ_ALL = _READ.format(payloads="payloads")
_READ_RECORDS = _READ.format(payloads="iif(typeof(payloads) = 'blob', x'', null)")
# The same commits by the index alone, which has no unreadable columns; or by the table, if the index is damaged.
_READ_PLACES = """
    select id, last from log {way}
    where session = ?1 and last > ?2 and last <= coalesce(
        (select last from log {way} where session = ?1 and last >= ?3 order by last limit 1), ?3)
    order by last limit ?4
"""
_PLACES = tuple(_READ_PLACES.format(way=way) for way in ("indexed by log_place", "not indexed"))
_ROW = f"select {COLUMNS}, records, payloads from log where id = ?"
_COLUMN_COUNT = 17


def query_with_twins(db: apsw.Connection, query: str, values: tuple[Any, ...], *, without: str) -> Any:
    """All rows of a query that uses the twin indexes. A store that has none yet is asked `without` them."""
    try:
        return db.execute(query, values).fetchall()
    except apsw.SQLError as exc:
        if "no such index" not in str(exc):
            raise
        return db.execute(without, values).fetchall()


def _look_up(db: apsw.Connection, found: str, twin: str, values: tuple[Any, ...]) -> tuple[Any, bool]:
    """One value, and whether the twin index has it, by one statement and so of one moment."""
    rows = query_with_twins(db, f"select ({found}), exists ({twin})", values, without=f"select ({found}), 0")
    return rows[0][0], bool(rows[0][1])


def number_of(db: apsw.Connection, session: str, *, may_be_new: bool = False) -> int:
    """The number of an existing session; 0 for one that `may_be_new` and is."""
    found, is_there = query_with_twins(db, _NUMBER, (session,), without=_NUMBER_WITHOUT)[0]
    if found is None and is_there:
        raise CorruptLogError(
            f"session {session} exists, but its entry in the store is damaged",
            hint="wakelog store scrub --repair rebuilds it, if it is an index",
            session=session,
        )
    if not found and not may_be_new:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    return found or 0


def head_of(db: apsw.Connection, number: int, session: str) -> Head:
    rows = query_with_twins(db, _HEAD_OF, (number,), without=_HEAD_OF_WITHOUT)
    head = head_from_row(rows[0], *rows[0][-2:]) if rows else None
    if head is None or head.session != session:
        raise CorruptLogError(f"session {session} has no entry of its own in the store", session=session)
    return head


def heads(db: apsw.Connection, where: str, values: tuple[Any, ...]) -> list[Head]:
    """The heads of the sessions that `where` picks."""
    with_twin, without = (_HEADS.format(twin=twin, where=where) for twin in (_TWIN, _NO_TWIN))
    return [head_from_row(row, *row[-2:]) for row in query_with_twins(db, with_twin, values, without=without)]


def last_sound(db: apsw.Connection, number: int, session: str) -> Head | None:
    """The newest head of a damaged session that can still be read, by either index. For reading only."""
    found: Head | None = None
    for index, order in (("log_place", "last"), ("log_twin", "first")):
        newest = f"select id from log indexed by {index} where session = ?1 order by {order} desc limit {_NEWEST_TRIED}"
        with contextlib.suppress(apsw.CorruptError):
            for (place,) in query_with_twins(db, newest, (number,), without="select 0 where ?1 is null"):
                head = _head_at(db, number, place)
                found = head if head is not None and (found is None or head.seq > found.seq) else found
    if found is None or found.session != session:
        return None
    with contextlib.suppress(CorruptLogError, UnicodeDecodeError, apsw.CorruptError):
        return msgspec.structs.replace(found, name=name_of(db, session))
    return found


def _head_at(db: apsw.Connection, number: int, place: int) -> Head | None:
    """The head in one row, without the session's name: that is read apart, because it may be what is damaged."""
    with contextlib.suppress(CorruptLogError, UnicodeDecodeError, apsw.CorruptError):
        for row in db.execute(_HEAD_IN_ROW, (number, place)).fetchall():
            return head_from_row((*row, None))
    return None


def refuse_lost_sessions(db: apsw.Connection) -> None:
    """CorruptLogError when the index of ids has fewer sessions than the table."""
    query = "select (select count(*) from session not indexed), (select count(*) from session where id > '')"
    stored, listed = db.execute(query).fetchall()[0]
    if stored != listed:
        raise CorruptLogError(
            f"the list of sessions is damaged: it has {listed}, and {stored} are stored",
            hint="wakelog verify --all",
        )


def refuse_lost_children(db: apsw.Connection, session: str) -> None:
    """CorruptLogError when a session's forks cannot all be found."""
    twin = (
        "select count(*) from session indexed by session_parent_twin where length(parent) = length(?1) and parent = ?1"
    )
    query = f"select (select count(*) from session where parent = ?1) = ({twin})"
    if not query_with_twins(db, query, (session,), without="select ?1 is not null")[0][0]:
        raise CorruptLogError(f"the list of forks of session {session} is damaged", session=session)


def page(db: apsw.Connection, number: int, after: Seq, upto: Seq, limit: int, payloads: bool) -> list[tuple[Any, ...]]:
    """Rows of commits with events `after` < seq ≤ `upto`, in order. Without `payloads` those are not read, and the row
    has empty bytes instead. A row that cannot be read becomes one with its position and no content. Its checksum does
    not match, so a reader that skips damage loses that commit and no other."""
    values = (number, after, upto, limit)
    try:
        return db.execute(_READ_ALL if payloads else _READ_RECORDS, values).fetchall()
    except (UnicodeDecodeError, apsw.CorruptError) as exc:
        for way in _PLACES:
            with contextlib.suppress(UnicodeDecodeError, apsw.CorruptError):
                places: Any = db.execute(way, values).fetchall()
                firsts = [after + 1, *(last + 1 for _, last in places)]
                return [_row(db, place, first, last) for (place, last), first in zip(places, firsts, strict=False)]
        raise exc


def _row(db: apsw.Connection, place: int, first: Seq, last: Seq) -> tuple[Any, ...]:
    with contextlib.suppress(UnicodeDecodeError, apsw.CorruptError):
        for row in db.execute(_ROW, (place,)).fetchall():
            return row
    return (first, last, *[None] * (_COLUMN_COUNT - 2))


def commit_at(db: apsw.Connection, number: int, last: Seq, commit_id: str) -> Known | None:
    row: Any = db.execute(_HEAD_AT, (number, last, commit_id)).fetchone()
    return Known(head_from_row(row), row[11]) if row else None


def commit_by_id(db: apsw.Connection, number: int, session: str, commit_id: str) -> Known | None:
    """The stored commit with an id that its caller chose."""
    found = "select last || ' ' || checksum from commit_id where session = ?1 and id = ?2"
    twin = (
        "select 1 from commit_id indexed by commit_id_twin where session = ?1 and length(id) = length(?2) and id = ?2"
    )
    row, is_there = _look_up(db, found, twin, (number, commit_id))
    if row is None and not is_there:
        return None
    last, _, stored = (row or "0 0").partition(" ")
    is_sound = last.isdecimal() and str(checksum(session, commit_id, int(last))) == stored
    known = commit_at(db, number, int(last), commit_id) if is_sound else None
    if known is None:
        raise CorruptLogError(f"what is stored of commit id {commit_id!r} of {session} is damaged", session=session)
    return known


def insert_session(db: apsw.Connection, commit: Commit) -> int:
    fork = commit.fork
    if fork is not None:
        parent = number_of(db, fork.parent, may_be_new=True)
        head = head_of(db, parent, fork.parent) if parent else None
        if head is None or head.status == "deleted" or head.seq < fork.at:
            raise NotFoundError(f"session {fork.parent} has no event {fork.at} to fork from", kind="session-not-found")
    row = (commit.session, fork.parent, fork.at, fork.hash) if fork else (commit.session, None, None, None)
    db.execute(
        "insert into session (id, parent, fork_at, fork_hash, checksum) values (?, ?, ?, ?, ?)", (*row, checksum(*row))
    )
    return db.last_insert_rowid()


def insert_commit(db: apsw.Connection, number: int, packed: PackedCommit) -> None:
    commit = packed.commit
    db.execute(_INSERT, (number, *packed.row))
    if commit.fingerprint:
        row = (number, commit.commit_id, commit.last, checksum(commit.session, commit.commit_id, commit.last))
        db.execute("insert into commit_id (session, id, last, checksum) values (?, ?, ?, ?)", row)
    if commit.snapshot is not None:
        stored = (number, commit.last, commit.snapshot, checksum(commit.session, commit.last, commit.snapshot))
        db.execute("insert into snapshot (session, seq, data, checksum) values (?, ?, ?, ?)", stored)


def update_commit(db: apsw.Connection, number: int, commit: Commit) -> None:
    """Replaces the bytes of a stored commit."""
    db.execute(f"update log set {_UPDATE} where session = ? and last = ?", (*to_row(commit), number, commit.last))
    assert db.changes() == 1, "surgery on a commit that is not there"


def snapshot(db: apsw.Connection, number: int, session: str, upto: Seq) -> Snapshot | None:
    """The newest snapshot that is intact. A damaged one is a lost cache, not an error."""
    query = "select seq, data, checksum from snapshot where session = ? and seq <= ? order by seq desc"
    rows: Any = db.execute(query, (number, upto))
    # A damaged index may find one beyond `upto`. Returning it would make the caller ask again without end.
    rows = (row for row in rows if row[0] <= upto)
    return next((Snapshot(*row[:2]) for row in rows if checksum(session, *row[:2]) == row[2]), None)


def bind_name(db: apsw.Connection, name: str, session: SessionId) -> None:
    row = (name, session, checksum(name, session))
    db.execute("insert into name (name, session, checksum) values (?, ?, ?) on conflict do nothing", row)


def session_by_name(db: apsw.Connection, name: str) -> SessionId | None:
    twin = "select 1 from name indexed by name_twin where length(name) = length(?1) and name = ?1"
    row, is_there = _look_up(db, "select checksum || ' ' || session from name where name = ?1", twin, (name,))
    if row is None and not is_there:
        return None
    stored, _, session = (row or "0 ").partition(" ")
    check_name(name, session, int(stored))
    return SessionId(session)


def name_of(db: apsw.Connection, session: str) -> str:
    """The name of a session, or an empty text."""
    twin = "select 1 from name indexed by name_session_twin where length(session) = length(?1) and session = ?1"
    row, is_there = _look_up(db, "select checksum || ' ' || name from name where session = ?1", twin, (session,))
    if row is None and not is_there:
        return ""
    stored, _, name = (row or "0 ").partition(" ")
    check_name(name, session, int(stored))
    return name


def mark(db: apsw.Connection, name: str) -> str | None:
    """The value of a mark, or None where it is absent or damaged: marks may be lost."""
    if not _has_marks(db):
        return None
    row: Any = db.execute("select value, checksum from mark where name = ?", (name,)).fetchone()
    return str(row[0]) if row and checksum(name, row[0]) == row[1] else None


def put_mark(db: apsw.Connection, name: str, value: str) -> None:
    if not _has_marks(db):
        raise UnsupportedError(
            "this store has no table for marks yet", kind="migration-waits", hint="wakelog store migrate"
        )
    row = (name, value, checksum(name, value))
    db.execute("insert or replace into mark (name, value, checksum) values (?, ?, ?)", row)


def _has_marks(db: apsw.Connection) -> bool:
    return bool(db.execute("select count(*) from sqlite_schema where type = 'table' and name = 'mark'").get)


def put_beat(db: apsw.Connection, number: int, session: str, beat: Heartbeat) -> None:
    row = (beat.epoch, beat.holder, beat.until)
    query = "insert or replace into heartbeat (session, epoch, holder, until, checksum) values (?, ?, ?, ?, ?)"
    db.execute(query, (number, *row, checksum(session, *row)))


def last_beat(db: apsw.Connection, number: int, session: str) -> Heartbeat | None:
    """The last heartbeat, or None where it is absent or damaged: heartbeats may be lost."""
    row: Any = db.execute(
        "select epoch, holder, until, checksum from heartbeat where session = ?", (number,)
    ).fetchone()
    return Heartbeat(*row[:3]) if row and checksum(session, *row[:3]) == row[3] else None


def live_sessions(db: apsw.Connection, since: int) -> list[SessionId]:
    """The sessions whose last heartbeat is intact and valid until `since` or later."""
    query = (
        "select s.id, b.epoch, b.holder, b.until, b.checksum from heartbeat b join session s on s.no = b.session"
        " where b.until >= ?"
    )
    rows: Any = db.execute(query, (since,)).fetchall()
    return [SessionId(row[0]) for row in rows if checksum(*row[:4]) == row[4]]


def drop_if_unread(db: apsw.Connection, session: SessionId) -> None:
    """Drops a deleted session's content once no fork reads through it; then its parent's, and so on."""
    at: SessionId | None = session
    while at is not None:
        number = number_of(db, at)
        head = head_of(db, number, at)
        if head.status != "deleted" or _is_read(db, at):
            return
        for table, column in (("log", "last"), ("commit_id", "last"), ("snapshot", "seq")):
            db.execute(f"delete from {table} where session = ? and {column} < ?", (number, head.seq))
        db.execute("delete from snapshot where session = ?", (number,))
        db.execute("delete from heartbeat where session = ?", (number,))
        at = head.fork.parent if head.fork else None


def _is_read(db: apsw.Connection, session: str) -> bool:
    """Whether any fork, at any depth, still needs this session's content."""
    unseen = [session]
    while unseen:
        forks: Any = db.execute("select id, no from session where parent = ?", (unseen.pop(),)).fetchall()
        if any(head_of(db, number, fork).status != "deleted" for fork, number in forks):
            return True
        unseen += [fork for fork, _ in forks]
    return False
