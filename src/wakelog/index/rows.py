"""The rows of the index as the projector holds them, and how they are written: many at a time.

A session's row and the rows of its newest turns are read, changed and put back; everything else is only ever added. So
a batch is a list of tuples for each table, written with one statement each. Texts are written in the order of their
ids: full-text search starts a new piece of its index whenever an id is smaller than the one before.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value

OPEN_END = 1 << 62
"""The last seq of a range that goes on."""
SEQ_BITS = 32
BATCH_EVENTS = 2000
BATCH_CHARS = 4 << 20

Row = tuple[Any, ...]

ADDED = {
    "wl_event": 25,
    "wl_file": 6,
    "wl_decision": 5,
    "wl_fact": 5,
    "wl_error": 5,
    "wl_message": 3,
    "wl_cost": 12,
    "wl_spawn": 4,
}
"""Tables that rows are only added to, and how many columns they have."""

OF_SESSION = (*ADDED, "wl_rewind", "wl_turn", "wl_tool", "wl_visible", "wl_lineage")
"""Tables whose rows belong to a session, by number."""


class Carried(msgspec.Struct):
    """What has to be remembered of a session to go on: the parts of its state that columns are made from, as of the
    watermark."""

    doc: dict[str, Value] = {}
    models: dict[str, str] = {}
    """Which model a pending call was made to."""
    closing: str = ""
    spent_before: dict[str, int] = {}
    """What was already spent where the session was forked."""
    last_turn: int = 0
    is_pruned: bool = False
    """The newest events had no bodies any more: `doc` is to be found elsewhere."""
    damage: str = ""
    """What went wrong on the way here, and will not be better next time."""


class SessionRow(msgspec.Struct):
    """A row of wl_session, column by column."""

    no: int
    id: SessionId
    name: str
    root: str
    parent: SessionId | None
    forked_at: Seq | None
    spawner: str
    agent: str
    status: str
    outcome: str
    goal: str | None
    labels: str
    turn: int
    turns: int
    events: int
    first_at: int
    last_at: int
    tokens: int
    usd_micros: int
    pending: int
    flags: int
    last_error: str
    head: Seq
    hash: bytes
    born: Seq
    carried: bytes
    hidden: int
    damaged: str

    @property
    def first(self) -> Seq:
        """The first seq that this session holds itself."""
        return (self.forked_at or 0) + 1


class TurnRow(msgspec.Struct):
    """A row of wl_turn: what an attempt at a turn came to."""

    session: int
    turn: int
    attempt: int
    first: Seq
    last: Seq
    started_at: int
    ended_at: int | None = None
    outcome: str = "open"
    input: str = ""
    events: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    model_calls: int = 0
    files: int = 0
    added: int = 0
    removed: int = 0
    tokens: int = 0
    tokens_out: int = 0
    usd_micros: int = 0
    trust: int = 0


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_astuple = msgspec.structs.astuple
_SESSION_PUT = f"insert or replace into wl_session values ({_marks(len(SessionRow.__struct_fields__))})"
_SESSION_GET = "select * from wl_session where id = ?"
_SESSION_NEW = "select coalesce(max(no), 0) + 1 from wl_session"
_TURN_PUT = f"insert or replace into wl_turn values ({_marks(len(TurnRow.__struct_fields__))})"
_TURN_GET = "select * from wl_turn where session = ? and turn = ? and attempt = ?"
_TURN_FILES = "select count(distinct path) from wl_file where session = ? and seq between ? and ?"
_TOOL_ADD = (
    "insert into wl_tool values (?, ?, ?, ?, ?) on conflict do update set"
    " calls = calls + excluded.calls, errors = errors + excluded.errors, last = max(last, excluded.last)"
)
_ADD = {table: f"insert into {table} values ({_marks(count)})" for table, count in ADDED.items()}
_TEXT_ADD = "insert into wl_text values (?, ?)"
_WORDS_ADD = "insert into wl_words (rowid, body) values (?, ?)"
_TEXT_DELETE = "delete from wl_text where id between ? and ?"
_DELETE = [f"delete from {table} where session = ?" for table in OF_SESSION]


class Batch:
    """Rows on their way into the index, inside one transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.added: dict[str, list[Row]] = {table: [] for table in ADDED}
        self.texts: list[tuple[int, str]] = []
        self.turns: dict[tuple[int, int, int], TurnRow] = {}
        self.tools: dict[tuple[int, str], list[int]] = {}
        self.with_files: set[tuple[int, int, int]] = set()
        self.events = 0
        self.chars = 0
        self.has_removed = False

    @property
    def is_full(self) -> bool:
        return self.events >= BATCH_EVENTS or self.chars >= BATCH_CHARS

    def add_text(self, session: int, seq: Seq, text: str) -> None:
        if text:
            self.texts.append((session << SEQ_BITS | seq, text))
            self.chars += len(text)

    def turn(self, session: int, turn: int, attempt: int, *, seq: Seq, at: int, is_new: bool) -> TurnRow:
        """The row of a turn, begun at `seq` if there is none yet."""
        key = (session, turn, attempt)
        found = self.turns.get(key)
        if found is None:
            row: Any = None if is_new else self.db.execute(_TURN_GET, key).fetchone()
            found = TurnRow(*row) if row else TurnRow(*key, first=seq, last=seq, started_at=at)
            self.turns[key] = found
        return found

    def use(self, session: int, tool: str, seq: Seq, *, calls: int, errors: int) -> None:
        used = self.tools.setdefault((session, tool), [0, 0, 0])
        used[0] += calls
        used[1] += errors
        used[2] = max(used[2], seq if calls else 0)

    def load(self, session: SessionId) -> SessionRow | None:
        row: Any = self.db.execute(_SESSION_GET, (session,)).fetchone()
        return SessionRow(*row) if row else None

    def next_number(self) -> int:
        number: Any = self.db.execute(_SESSION_NEW).get
        return int(number)

    def save(self, row: SessionRow) -> None:
        self.db.execute(_SESSION_PUT, _astuple(row))

    def flush(self) -> None:
        """Writes what was collected."""
        db = self.db
        for table, rows in self.added.items():
            if rows:
                db.executemany(_ADD[table], rows)
                rows.clear()
        self.texts.sort()
        db.executemany(_TEXT_ADD, self.texts)
        if not self.has_removed:
            db.executemany(_WORDS_ADD, self.texts)
        for key in self.with_files:
            row = self.turns[key]
            counted: Any = db.execute(_TURN_FILES, (row.session, row.first, row.last)).get
            row.files = counted
        db.executemany(_TURN_PUT, map(_astuple, self.turns.values()))
        db.executemany(_TOOL_ADD, [(*key, *used) for key, used in self.tools.items()])
        for collected in (self.texts, self.turns, self.tools, self.with_files):
            collected.clear()

    def remove(self, row: SessionRow) -> None:
        """Takes all rows of a session out."""
        self.flush()
        for statement in _DELETE:
            self.db.execute(statement, (row.no,))
        self.db.execute(_TEXT_DELETE, (row.no << SEQ_BITS, (row.no + 1 << SEQ_BITS) - 1))
        self.db.execute("delete from wl_session where no = ?", (row.no,))
        self.db.execute("update wl_meta set removed = removed + 1")
        self.has_removed = True

    def finish(self) -> None:
        """Writes the rest. After this the transaction can be committed."""
        self.flush()
        if self.has_removed:
            # Taking words out text by text costs far more, and leaves the beginnings of some in the inner pages.
            self.db.execute("insert into wl_words (wl_words) values ('rebuild')")
            self.has_removed = False
