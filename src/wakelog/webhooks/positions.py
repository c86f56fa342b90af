"""How far each hook is in each session: an SQLite file, so that a sender continues after a crash.

A position is written after the receiver has accepted a message. If the sender dies in between, it sends that message
again, with the same id: delivery is at least once, and in order. A refused message is recorded. Only a person can skip
it, and that is recorded too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

import apsw
import msgspec

from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId

_SCHEMA = """
create table if not exists hook(name text primary key, sent integer not null default 0, failing_since integer not null
    default 0, problem text not null default '', last_ok integer not null default 0) strict;
create table if not exists position(hook text not null, session text not null, seq integer not null,
    primary key(hook, session)) strict, without rowid;
create table if not exists refused(hook text not null, session text not null, seq integer not null, type text not null,
    problem text not null, since integer not null, primary key(hook, session)) strict, without rowid;
create table if not exists skipped(hook text not null, session text not null, seq integer not null, type text not null,
    problem text not null, at integer not null, primary key(hook, session, seq)) strict, without rowid;
"""


class HookStatus(msgspec.Struct, frozen=True):
    """The status of a hook. Times are in microseconds, 0 if there is none."""

    sent: int = 0
    failing_since: int = 0
    problem: str = ""
    last_ok: int = 0


class RefusedMessage(msgspec.Struct, frozen=True):
    """A message that a receiver refuses. It blocks its session until it is accepted or skipped."""

    session: SessionId
    event: Seq
    type: str
    problem: str
    since: int
    """When it was first refused, or skipped, in microseconds."""


class Positions:
    """One file, shared by the threads of one sender."""

    def __init__(self, file: Path, *, writes: bool = True) -> None:
        self._lock = threading.Lock()
        self._lock_file = -1
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if writes:
            self._take_lock(file)
        self._db = apsw.Connection(str(file))
        self._db.set_busy_timeout(10_000)
        for pragma in ("journal_mode=wal", "synchronous=full"):
            self._db.execute(f"pragma {pragma}").fetchall()
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self._db.execute(statement).fetchall()

    def _take_lock(self, file: Path) -> None:
        self._lock_file = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._lock_file)
            raise NotAllowedError(
                "another process sends the webhooks of this store", kind="sender-running", hint="stop it first"
            ) from exc

    def is_known(self, hook: str) -> bool:
        with self._lock:
            return self._db.execute("select 1 from hook where name = ?", (hook,)).get is not None

    def begin(self, hook: str, heads: dict[SessionId, Seq]) -> None:
        """Starts a new hook at these heads: it gets only what happens after them."""
        with self._lock, self._db:
            self._db.execute("insert or ignore into hook(name) values (?)", (hook,))
            self._db.executemany(
                "insert or replace into position values (?, ?, ?)", [(hook, s, n) for s, n in heads.items()]
            )

    def all(self, hook: str) -> dict[SessionId, Seq]:
        with self._lock:
            rows = self._db.execute("select session, seq from position where hook = ?", (hook,)).fetchall()
        return {SessionId(str(session)): int(str(seq)) for session, seq in rows}

    def advance(self, hook: str, session: SessionId, seq: Seq, *, sent_at: int = 0) -> None:
        """Moves the position to `seq`. `sent_at` is set if a message was sent about that event."""
        with self._lock, self._db:
            self._db.execute("insert or replace into position values (?, ?, ?)", (hook, session, seq))
            self._db.execute("delete from refused where hook = ? and session = ?", (hook, session))
            if sent_at:
                self._db.execute(
                    "update hook set sent = sent + 1, failing_since = 0, problem = '', last_ok = ? where name = ?",
                    (sent_at, hook),
                )

    def note_failure(self, hook: str, problem: str, at: int) -> None:
        with self._lock:
            self._db.execute(
                "update hook set problem = ?, failing_since = case failing_since when 0 then ? else failing_since end "
                "where name = ?",
                (problem, at, hook),
            ).fetchall()

    def note_refusal(self, hook: str, refused: RefusedMessage) -> None:
        """Records a refused message. After several tries it has the time of the first and the answer of the last."""
        with self._lock:
            self._db.execute(
                "insert into refused values (?, ?, ?, ?, ?, ?) on conflict(hook, session) do update set "
                "problem = excluded.problem, since = case seq when excluded.seq then since else excluded.since end, "
                "seq = excluded.seq, type = excluded.type",
                (hook, refused.session, refused.event, refused.type, refused.problem, refused.since),
            ).fetchall()

    def refused(self, hook: str) -> tuple[RefusedMessage, ...]:
        """The messages that block sessions now."""
        return self._messages("refused", "since", hook)

    def skipped(self, hook: str) -> tuple[RefusedMessage, ...]:
        """The messages that a person has skipped."""
        return self._messages("skipped", "at", hook)

    def _messages(self, table: str, time: str, hook: str) -> tuple[RefusedMessage, ...]:
        with self._lock:
            rows = self._db.execute(
                f"select session, seq, type, problem, {time} from {table} where hook = ? order by {time}, session, seq",
                (hook,),
            ).fetchall()
        names = RefusedMessage.__struct_fields__
        return msgspec.convert(
            [dict(zip(names, row, strict=True)) for row in rows], described(tuple[RefusedMessage, ...])
        )

    def skip(self, hook: str, session: SessionId, at: int) -> RefusedMessage:
        """Skips the message that blocks a session. NotFoundError if there is none."""
        found = next((message for message in self.refused(hook) if message.session == session), None)
        if found is None:
            raise NotFoundError(
                f"no message of {session} is refused by webhook {hook!r}",
                kind="nothing-refused",
                hint="wakelog webhooks ls shows the refused messages",
            )
        with self._lock, self._db:
            values = (hook, session, found.event)
            self._db.execute("insert or replace into position values (?, ?, ?)", values)
            self._db.execute("delete from refused where hook = ? and session = ?", values[:2])
            self._db.execute(
                "insert or replace into skipped values (?, ?, ?, ?, ?, ?)", (*values, found.type, found.problem, at)
            )
            self._db.execute(
                "update hook set failing_since = 0, problem = '' where name = ? and not exists "
                "(select 1 from refused where hook = name)",
                (hook,),
            )
        return msgspec.structs.replace(found, since=at)

    def position(self, hook: str, session: SessionId) -> Seq | None:
        with self._lock:
            row = self._db.execute(
                "select seq from position where hook = ? and session = ?", (hook, session)
            ).fetchone()
        return int(str(row[0])) if row else None

    def forget(self, hook: str) -> None:
        with self._lock, self._db:
            for table in ("refused", "skipped", "position"):
                self._db.execute(f"delete from {table} where hook = ?", (hook,))
            self._db.execute("delete from hook where name = ?", (hook,))

    def status(self, hook: str) -> HookStatus:
        with self._lock:
            row = self._db.execute(
                "select sent, failing_since, problem, last_ok from hook where name = ?", (hook,)
            ).fetchone()
        return HookStatus(*row) if row else HookStatus()

    def close(self) -> None:
        self._db.close()
        if self._lock_file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._lock_file)
