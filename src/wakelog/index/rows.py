"""The rows of the index in memory, and how they are written: many at a time.

The rows of a session and of its newest turns are read, changed and written back; all other rows are only added. So a
batch is a list of tuples for each table, written with one statement each. Texts are written in the order of their ids,
because full-text search starts a new segment whenever an id is smaller than the one before.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from wakelog.index.connection import SEQ_BITS, Connection, IndexedText, Keep, as_key, as_rows
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import GENESIS
from wakelog.model.totals import NO_PHASE, CallKey, LastPhase
from wakelog.model.values import Value

BATCH_EVENTS = 2000
BATCH_CHARS = 4 << 20
DAMAGED_MAX = 400
"""How many characters of a damage message are kept."""

OPEN_END = 1 << 62
"""The last seq of a range without an end."""

Row = tuple[Any, ...]
Range = tuple[Seq, Seq]

ADDED = {
    "wl_event": 25,
    "wl_file": 6,
    "wl_decision": 5,
    "wl_fact": 5,
    "wl_error": 5,
    "wl_message": 3,
    "wl_cost": 13,
    "wl_spawn": 4,
    "wl_lineage": 4,
    "wl_step": 14,
    "wl_dead_end": 4,
    "wl_shown": 4,
}
"""Tables whose rows are only inserted, and how many columns they have."""

OF_SESSION = (
    *(*ADDED, "wl_rewind", "wl_turn", "wl_tool", "wl_sum", "wl_touch", "wl_label", "wl_visible", "wl_finding"),
    "wl_partly_worded",
)
"""Tables whose rows belong to a session, by number."""


class AskedStep(msgspec.Struct, array_like=True, frozen=True):
    """A call that was requested and has no outcome yet: the first columns of its step."""

    seq: Seq
    label: str
    target: str
    act: str
    input: str
    paths: tuple[str, ...]
    """The files it is about; if it fails, they are counted as places of failure."""
    trust: int


class ProjectionState(msgspec.Struct):
    """What the projector needs to continue a session: the parts of its state that columns are made from, at the
    watermark."""

    doc: dict[str, Value] = {}
    models: dict[str, str] = {}
    """The model of each pending model call."""
    asked: dict[str, AskedStep] = {}
    """The pending calls of tools."""
    phase: LastPhase = NO_PHASE
    closing: str = ""
    spent_before: dict[str, int] = {}
    """What was already spent at the fork point."""
    last_turn: int = 0
    is_pruned: bool = False
    """True if the newest events were pruned: then `doc` must be read from the prune's base."""
    damage: str = ""
    """A problem in the events read so far, which will not go away."""


class SessionRow(msgspec.Struct):
    """A row of wl_session, column by column."""

    no: int
    id: SessionId
    name: str
    root: str
    parent: SessionId | None
    forked_at: Seq | None
    spawner: str = ""
    agent: str = ""
    status: str = ""
    outcome: str = ""
    goal: str | None = None
    labels: str = "{}"
    turn: int = 0
    turns: int = 0
    events: int = 0
    first_at: int = 0
    last_at: int = 0
    tokens: int = 0
    usd_micros: int = 0
    pending: int = 0
    flags: int = 0
    last_error: str = ""
    head: Seq = 0
    hash: bytes = GENESIS
    born: Seq = 0
    carried: bytes = b""
    hidden: int = 0
    damaged: str = ""
    project: str = ""
    worded: Seq = 0
    marked: int = 0

    @property
    def first(self) -> Seq:
        """The first of the session's own events."""
        return (self.forked_at or 0) + 1


class TurnRow(msgspec.Struct):
    """A row of wl_turn: the totals of one attempt at a turn."""

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


def _upsert(table: str, row: type[msgspec.Struct], *key: str) -> str:
    """An upsert of a whole row."""
    columns = row.__struct_fields__
    changed = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    return f"insert into {table} values ({_marks(len(columns))}) on conflict ({', '.join(key)}) do update set {changed}"


_astuple = msgspec.structs.astuple
_SESSION_PUT = _upsert("wl_session", SessionRow, "no")
_SESSIONS_GET = "select s.* from wl_session s where s.id in (select value ->> 0 from json_each(:ids))"
_SESSION_LAST = "select coalesce(max(s.no), 0) from wl_session s"
_TURN_PUT = _upsert("wl_turn", TurnRow, "session", "turn", "attempt")
_TURN_GET = "select t.* from wl_turn t where t.session = ? and t.turn = ? and t.attempt = ?"
_TURN_FILES = "select count(distinct f.path) from wl_file f where f.session = ? and f.seq between ? and ?"
_TOOL_ADD = (
    "insert into wl_tool values (?, ?, ?, ?, ?, ?) on conflict (session, key) do update set"
    " calls = wl_tool.calls + excluded.calls, errors = wl_tool.errors + excluded.errors,"
    " last = case when wl_tool.last > excluded.last then wl_tool.last else excluded.last end"
)
_SUM_ADD = (
    "insert into wl_sum values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (session, turn, attempt, phase, bucket)"
    " do update set phases = wl_sum.phases + excluded.phases, calls = wl_sum.calls + excluded.calls,"
    " errors = wl_sum.errors + excluded.errors, duration_us = wl_sum.duration_us + excluded.duration_us"
)
_KEEP = (
    "insert into wl_kept values (?, ?, ?) on conflict (id) do update set"
    " totals = excluded.totals, calls = excluded.calls"
)
_TOUCH_ADD = (
    "insert into wl_touch values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (session, key, kind, how) do update set"
    " times = wl_touch.times + excluded.times, last = excluded.last,"
    " at = case when wl_touch.at > excluded.at then wl_touch.at else excluded.at end,"
    " trust = case when wl_touch.trust > excluded.trust then wl_touch.trust else excluded.trust end"
)
_LABELS_DROP = "delete from wl_label where session = ?"
_LABEL_ADD = "insert into wl_label values (?, ?, ?, ?)"
_ADD = {table: f"insert into {table} values ({_marks(count)})" for table, count in ADDED.items()}
_DELETE = [f"delete from {table} where session = ?" for table in OF_SESSION]
_SESSION_DELETE = "delete from wl_session where no = ?"
_VISIBLE = "select v.first, v.last from wl_visible v where v.session = ? order by v.first"
_HIDE = "delete from wl_visible where session = ?"
_SHOW = "insert into wl_visible values (?, ?, ?)"
_REMOVED = "update wl_meta set removed = removed + 1 where one = 1"


def visible_ranges(db: Connection, session: int) -> list[Range]:
    """The ranges of a session's history that are in view, oldest first (view.py)."""
    rows: Any = db.execute(_VISIBLE, (session,)).fetchall()
    return [(first, last) for first, last in rows]


class Batch:
    """Collects rows, and writes them in one transaction. Rows that are loaded through it include changes that are not
    written yet; anything else that reads the tables needs a `flush` first."""

    def __init__(self, db: Connection, numbers: Callable[[], int] | None = None) -> None:
        """`numbers` assigns numbers to new sessions if several processes write at once; else they are consecutive."""
        self.db = db
        self._numbers = numbers
        self.added: dict[str, list[Row]] = {table: [] for table in ADDED}
        self.texts: list[IndexedText] = []
        self.turns: dict[tuple[int, int, int], TurnRow] = {}
        self.tools: dict[tuple[int, str], list[int]] = {}
        self.touches: dict[tuple[int, str, str, str], list[int]] = {}
        self.sums: dict[int, dict[CallKey, list[int]]] = {}
        self.with_files: set[tuple[int, int, int]] = set()
        self._new_turns: set[tuple[int, int, int]] = set()
        """The turns that began in this batch, so that all their files are in it."""
        self.events = 0
        self.chars = 0
        self._sessions: dict[SessionId, SessionRow | None] = {}
        self._changed: set[SessionId] = set()
        self._labels: dict[int, str] = {}
        self._views: dict[int, list[Range]] = {}
        self._last_number: int | None = None

    @property
    def is_full(self) -> bool:
        return self.events >= BATCH_EVENTS or self.chars >= BATCH_CHARS

    def add_text(self, session: int, seq: Seq, text: str, keep: Keep) -> None:
        """Adds the text of an event."""
        if text:
            self.texts.append((session << SEQ_BITS | seq, text, keep))
            self.chars += len(text)

    def turn(self, session: int, turn: int, attempt: int, *, seq: Seq, at: int, is_new: bool) -> TurnRow:
        """The row of a turn; a new one starts at `seq`."""
        key = (session, turn, attempt)
        found = self.turns.get(key)
        if found is None:
            row: Any = None if is_new else self.db.execute(_TURN_GET, key).fetchone()
            if row is None:
                self._new_turns.add(key)
            found = TurnRow(*row) if row else TurnRow(*key, first=seq, last=seq, started_at=at)
            self.turns[key] = found
        return found

    def use(self, session: int, tool: str, seq: Seq, *, calls: int, errors: int) -> None:
        used = self.tools.setdefault((session, tool), [0, 0, 0])
        used[0] += calls
        used[1] += errors
        used[2] = max(used[2], seq if calls else 0)

    def touch(self, session: int, kind: str, name: str, how: str, *, seq: Seq, at: int, trust: int) -> None:
        """Counts that a session touched a thing."""
        if not name:
            return
        touched = self.touches.get((session, kind, name, how))
        if touched is None:
            self.touches[session, kind, name, how] = [1, seq, seq, at, trust]
            return
        touched[0] += 1
        touched[2] = seq
        touched[3] = max(touched[3], at)
        touched[4] = max(touched[4], trust)

    def calls(self, session: int) -> dict[CallKey, list[int]]:
        """The sums to add to a session's calls (model/totals.py)."""
        return self.sums.setdefault(session, {})

    def keep(self, session: SessionId, totals: str, calls: str) -> None:
        """Keeps the totals of a deleted session."""
        self.db.execute(_KEEP, (session, totals, calls))

    # Sessions

    def expect(self, sessions: Iterable[SessionId]) -> None:
        """Reads the rows of several sessions in one query."""
        unread = [session for session in sessions if session not in self._sessions]
        found: Any = self.db.execute(_SESSIONS_GET, {"ids": as_rows((session,) for session in unread)}).fetchall()
        self._sessions |= dict.fromkeys(unread)
        for row in found:
            self._know(SessionRow(*row))

    def load(self, session: SessionId) -> SessionRow | None:
        if session not in self._sessions:
            self.expect([session])
        row = self._sessions[session]
        return msgspec.structs.replace(row) if row is not None else None

    def next_number(self) -> int:
        if self._numbers is not None:
            return self._numbers()
        self._last_number = self._highest() + 1
        return self._last_number

    def _highest(self) -> int:
        if self._last_number is None:
            number: Any = self.db.execute(_SESSION_LAST).get
            self._last_number = int(number)
        return self._last_number

    def save(self, row: SessionRow) -> None:
        self._sessions[row.id] = msgspec.structs.replace(row, damaged=row.damaged[:DAMAGED_MAX])
        self._changed.add(row.id)

    def _know(self, row: SessionRow) -> None:
        self._sessions[row.id] = row
        self._labels[row.no] = row.labels

    # What is in view

    def view(self, session: int) -> list[Range]:
        return self._views[session] if session in self._views else visible_ranges(self.db, session)

    def show(self, session: int, ranges: list[Range]) -> None:
        """Replaces the ranges in view."""
        self._views[session] = ranges

    # Writing

    def flush(self) -> None:
        """Writes the collected rows."""
        db = self.db
        self._flush_sessions()
        self._count_files()
        for table, rows in self.added.items():
            if rows:
                db.executemany(_ADD[table], rows)
                rows.clear()
        self.texts.sort()
        db.words.add(self.texts)
        for key in self.with_files - self._new_turns:
            row = self.turns[key]
            counted: Any = db.execute(_TURN_FILES, (row.session, row.first, row.last)).get
            row.files = counted
        db.executemany(_TURN_PUT, list(map(_astuple, self.turns.values())))
        db.executemany(_TOOL_ADD, [(no, as_key(tool), tool, *used) for (no, tool), used in self.tools.items()])
        touches = [(no, as_key(name), kind, how, name, *row) for (no, kind, name, how), row in self.touches.items()]
        db.executemany(_TOUCH_ADD, touches)
        sums = [(no, *key, *row) for no, calls in self.sums.items() for key, row in calls.items()]
        db.executemany(_SUM_ADD, sums)
        for collected in (
            self.texts,
            self.turns,
            self.tools,
            self.touches,
            self.sums,
            self.with_files,
            self._new_turns,
        ):
            collected.clear()

    def _count_files(self) -> None:
        """Counts the files of turns that began in this batch."""
        changed: dict[int, list[tuple[Seq, str]]] = {}
        for session, seq, path, *_ in self.added["wl_file"]:
            changed.setdefault(session, []).append((seq, path))
        for rows in changed.values():
            rows.sort()
        for key in self.with_files & self._new_turns:
            turn = self.turns[key]
            rows = changed.get(turn.session, [])
            first, after = (bisect.bisect_left(rows, (seq, "")) for seq in (turn.first, turn.last + 1))
            turn.files = len({path for _, path in rows[first:after]})

    def _flush_sessions(self) -> None:
        db = self.db
        changed = [row for row in map(self._sessions.get, sorted(self._changed)) if row is not None]
        db.executemany(_SESSION_PUT, list(map(_astuple, changed)))
        relabelled = [row for row in changed if self._labels.get(row.no, "{}") != row.labels]
        labels = [
            (row.no, as_key(name), name, value)
            for row in relabelled
            for name, value in msgspec.json.decode(row.labels).items()
        ]
        db.executemany(_LABELS_DROP, [(row.no,) for row in relabelled])
        db.executemany(_LABEL_ADD, labels)
        self._labels |= {row.no: row.labels for row in relabelled}
        self._changed.clear()
        db.executemany(_HIDE, [(session,) for session in self._views])
        db.executemany(_SHOW, [(session, *span) for session, ranges in self._views.items() for span in ranges])
        self._views.clear()

    def remove(self, row: SessionRow) -> None:
        """Deletes all rows of a session."""
        self.flush()
        self._highest()  # read before the number is free, so that no other session gets it
        self.db.words.remove(row.no << SEQ_BITS, (row.no + 1 << SEQ_BITS) - 1)
        for statement in _DELETE:
            self.db.execute(statement, (row.no,))
        self.db.execute(_SESSION_DELETE, (row.no,))
        self.db.execute(_REMOVED)
        self._sessions[row.id] = None
        self._labels.pop(row.no, None)
