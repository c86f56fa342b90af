"""What is in the tables, told through any connection: numbers, heads, names, and what may be dropped.

Functions here run inside whatever transaction the connection is in; the engine decides which.
"""

from __future__ import annotations

from typing import Any

import apsw

from wakelog.engine import Known
from wakelog.engines.sqlite.rows import COLUMNS, HEAD_COLUMNS, head_from_row, to_row
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Head

_HEAD = f"select {HEAD_COLUMNS} from log join session s on s.no = log.session where"
_HEAD_OF = f"{_HEAD} log.session = ? order by last desc limit 1"
_HEAD_AT = f"{_HEAD} log.session = ? and last = ? and commit_id = ?"
_NEWEST = "log.id = (select id from log where session = s.no order by last desc limit 1) and status <> 'deleted'"
_INSERT = f"insert into log (session, {COLUMNS}, records, payloads) values ({', '.join('?' * 18)})"
_UPDATE = ", ".join(f"{name} = ?" for name in f"{COLUMNS}, records, payloads".split(", "))


def number_of(db: apsw.Connection, session: str) -> int:
    """The number that stands for a session id, or 0."""
    found: Any = db.execute("select no from session where id = ?", (session,)).get
    return found or 0


def require_number(db: apsw.Connection, session: str) -> int:
    number = number_of(db, session)
    if not number:
        raise NotFoundError(f"there is no session {session}", kind="session-not-found")
    return number


def head_of(db: apsw.Connection, number: int) -> Head:
    row: Any = db.execute(_HEAD_OF, (number,)).fetchone()
    if row is None:
        raise CorruptLogError(f"session number {number} has lost its commits")
    return head_from_row(row)


def heads(db: apsw.Connection, where: str, values: tuple[Any, ...]) -> list[Head]:
    """The heads of sessions that are not deleted, in order of id."""
    rows: Any = db.execute(f"{_HEAD} {_NEWEST} and {where}", values).fetchall()
    return [head_from_row(row) for row in rows]


def commit_at(db: apsw.Connection, number: int, last: Seq, commit_id: str) -> Known | None:
    row: Any = db.execute(_HEAD_AT, (number, last, commit_id)).fetchone()
    return Known(head_from_row(row), row[11]) if row else None


def commit_by_id(db: apsw.Connection, number: int, commit_id: str) -> Known | None:
    """What is stored under an id that its caller chose."""
    last: Any = db.execute("select last from commit_id where session = ? and id = ?", (number, commit_id)).get
    return None if last is None else commit_at(db, number, last, commit_id)


def insert_session(db: apsw.Connection, commit: Commit) -> int:
    fork = commit.fork
    if fork is not None:
        parent = number_of(db, fork.parent)
        head = head_of(db, parent) if parent else None
        if head is None or head.status == "deleted" or head.seq < fork.at:
            raise NotFoundError(f"session {fork.parent} has no event {fork.at} to fork from", kind="session-not-found")
    db.execute(
        "insert into session (id, parent, fork_at, fork_hash) values (?, ?, ?, ?)",
        (commit.session, fork.parent, fork.at, fork.hash) if fork else (commit.session, None, None, None),
    )
    return db.last_insert_rowid()


def insert_commit(db: apsw.Connection, number: int, commit: Commit) -> None:
    db.execute(_INSERT, (number, *to_row(commit)))
    if commit.fingerprint:
        row = (number, commit.commit_id, commit.last)
        db.execute("insert into commit_id (session, id, last) values (?, ?, ?)", row)
    if commit.snapshot is not None:
        db.execute("insert into snapshot (session, seq, data) values (?, ?, ?)", (number, commit.last, commit.snapshot))


def update_commit(db: apsw.Connection, number: int, commit: Commit) -> None:
    """Puts rewritten bytes in place of a stored commit's."""
    db.execute(f"update log set {_UPDATE} where session = ? and last = ?", (*to_row(commit), number, commit.last))
    assert db.changes() == 1, "surgery on a commit that is not there"


def drop_if_unread(db: apsw.Connection, session: SessionId) -> None:
    """Drops a deleted session's content once no fork reads through it, and then looks at its own parent."""
    number = require_number(db, session)
    head = head_of(db, number)
    if head.status != "deleted" or _is_read(db, session):
        return
    for table, column in (("log", "last"), ("commit_id", "last"), ("snapshot", "seq")):
        db.execute(f"delete from {table} where session = ? and {column} < ?", (number, head.seq))
    db.execute("delete from snapshot where session = ?", (number,))
    if head.fork:
        drop_if_unread(db, head.fork.parent)


def _is_read(db: apsw.Connection, session: str) -> bool:
    """Whether any fork, at any depth, still needs this session's content."""
    forks: Any = db.execute("select id, no from session where parent = ?", (session,)).fetchall()
    return any(head_of(db, number).status != "deleted" or _is_read(db, fork) for fork, number in forks)
