"""What is in the tables, told through any connection: numbers, heads, names, and what may be dropped.

Functions here run inside whatever transaction the connection is in; the engine decides which.
"""

from __future__ import annotations

from typing import Any

import apsw

from wakelog.engine import Known
from wakelog.engines.sqlite.rows import COLUMNS, HEAD_COLUMNS, Packed, check_name, checksum, head_from_row, to_row
from wakelog.errors import CorruptLogError, NotFoundError, UnsupportedError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head, Heartbeat, Snapshot

_HEAD = f"select {HEAD_COLUMNS} from log join session s on s.no = log.session where"
_HEAD_OF = f"{_HEAD} log.session = ? order by last desc limit 1"
_HEAD_AT = f"{_HEAD} log.session = ? and last = ? and commit_id = ?"
_NEWEST = "log.id = (select id from log where session = s.no order by last desc limit 1)"
_INSERT_NAMES = f"{COLUMNS}, records, payloads".replace("log.", "")
_INSERT = f"insert into log (session, {_INSERT_NAMES}) values ({', '.join('?' * 18)})"
_UPDATE = ", ".join(f"{name} = ?" for name in _INSERT_NAMES.split(", "))
# A commit holds all events from `first` to `last`, and no two hold the same: the one that reaches `upto` is the last.
_READ = f"""
    select {COLUMNS}, records, payloads from log
    where session = ?1 and last > ?2 and first <= ?3 and last <= coalesce(
        (select last from log where session = ?1 and last >= ?3 order by last limit 1), ?3)
    order by last limit ?4
"""


def number_of(db: apsw.Connection, session: str) -> int:
    """The number that stands for a session id, or 0."""
    found: Any = db.execute("select no from session where id = ?", (session,)).get
    return found or 0


def require_number(db: apsw.Connection, session: str) -> int:
    number = number_of(db, session)
    if not number:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    return number


def head_of(db: apsw.Connection, number: int, session: str) -> Head:
    row: Any = db.execute(_HEAD_OF, (number,)).fetchone()
    head = head_from_row(row) if row else None
    if head is None or head.session != session:
        raise CorruptLogError(f"session {session} has lost its commits, or its number")
    return head


def heads(db: apsw.Connection, where: str, values: tuple[Any, ...]) -> list[Head]:
    """The heads of the sessions that `where` picks."""
    rows: Any = db.execute(f"{_HEAD} {_NEWEST} and {where}", values).fetchall()
    return [head_from_row(row) for row in rows]


def page(db: apsw.Connection, number: int, after: Seq, upto: Seq, limit: int) -> list[tuple[Any, ...]]:
    """Rows of commits holding events `after` < seq ≤ `upto`, in order."""
    return db.execute(_READ, (number, after, upto, limit)).fetchall()


def commit_at(db: apsw.Connection, number: int, last: Seq, commit_id: str) -> Known | None:
    row: Any = db.execute(_HEAD_AT, (number, last, commit_id)).fetchone()
    return Known(head_from_row(row), row[11]) if row else None


def commit_by_id(db: apsw.Connection, number: int, session: str, commit_id: str) -> Known | None:
    """What is stored under an id that its caller chose."""
    query = "select last, checksum from commit_id where session = ? and id = ?"
    row: Any = db.execute(query, (number, commit_id)).fetchone()
    if row is None:
        return None
    known = commit_at(db, number, row[0], commit_id) if checksum(session, commit_id, row[0]) == row[1] else None
    if known is None:
        raise CorruptLogError(f"what is stored of commit id {commit_id!r} of {session} is damaged")
    return known


def insert_session(db: apsw.Connection, commit: Commit) -> int:
    fork = commit.fork
    if fork is not None:
        parent = number_of(db, fork.parent)
        head = head_of(db, parent, fork.parent) if parent else None
        if head is None or head.status == "deleted" or head.seq < fork.at:
            raise NotFoundError(f"session {fork.parent} has no event {fork.at} to fork from", kind="session-not-found")
    row = (commit.session, fork.parent, fork.at, fork.hash) if fork else (commit.session, None, None, None)
    db.execute(
        "insert into session (id, parent, fork_at, fork_hash, checksum) values (?, ?, ?, ?, ?)", (*row, checksum(*row))
    )
    return db.last_insert_rowid()


def insert_commit(db: apsw.Connection, number: int, packed: Packed) -> None:
    commit = packed.commit
    db.execute(_INSERT, (number, *packed.row))
    if commit.fingerprint:
        row = (number, commit.commit_id, commit.last, checksum(commit.session, commit.commit_id, commit.last))
        db.execute("insert into commit_id (session, id, last, checksum) values (?, ?, ?, ?)", row)
    if commit.snapshot is not None:
        stored = (number, commit.last, commit.snapshot, checksum(commit.session, commit.last, commit.snapshot))
        db.execute("insert into snapshot (session, seq, data, checksum) values (?, ?, ?, ?)", stored)


def update_commit(db: apsw.Connection, number: int, commit: Commit) -> None:
    """Puts rewritten bytes in place of a stored commit's."""
    db.execute(f"update log set {_UPDATE} where session = ? and last = ?", (*to_row(commit), number, commit.last))
    assert db.changes() == 1, "surgery on a commit that is not there"


def snapshot(db: apsw.Connection, number: int, session: str, upto: Seq) -> Snapshot | None:
    """The newest one that is whole: a damaged one is only a cache that is not there."""
    query = "select seq, data, checksum from snapshot where session = ? and seq <= ? order by seq desc"
    rows: Any = db.execute(query, (number, upto))
    return next((Snapshot(*row[:2]) for row in rows if checksum(session, *row[:2]) == row[2]), None)


def bind_name(db: apsw.Connection, name: str, session: SessionId) -> None:
    row = (name, session, checksum(name, session))
    db.execute("insert into name (name, session, checksum) values (?, ?, ?) on conflict do nothing", row)


def bound_to(db: apsw.Connection, name: str) -> SessionId | None:
    row: Any = db.execute("select session, checksum from name where name = ?", (name,)).fetchone()
    if row is None:
        return None
    check_name(name, *row)
    return SessionId(row[0])


def name_of(db: apsw.Connection, session: str) -> str:
    """The name bound to a session that has no commits yet, or nothing."""
    row: Any = db.execute("select name, checksum from name where session = ?", (session,)).fetchone()
    if row is None:
        return ""
    check_name(row[0], session, row[1])
    return str(row[0])


def mark(db: apsw.Connection, name: str) -> str | None:
    """A note, if there is a place for them and it can be read: it may be lost."""
    if not _has_marks(db):
        return None
    row: Any = db.execute("select value, checksum from mark where name = ?", (name,)).fetchone()
    return str(row[0]) if row and checksum(name, row[0]) == row[1] else None


def put_mark(db: apsw.Connection, name: str, value: str) -> None:
    if not _has_marks(db):
        raise UnsupportedError(
            "this store has no place for marks yet", kind="migration-waits", hint="wakelog store migrate"
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
    """The last sign of life, if it can be read: it may be lost."""
    row: Any = db.execute(
        "select epoch, holder, until, checksum from heartbeat where session = ?", (number,)
    ).fetchone()
    return Heartbeat(*row[:3]) if row and checksum(session, *row[:3]) == row[3] else None


def drop_if_unread(db: apsw.Connection, session: SessionId) -> None:
    """Drops a deleted session's content once no fork reads through it, and then looks at its parent's, and so on."""
    at: SessionId | None = session
    while at is not None:
        number = require_number(db, at)
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
