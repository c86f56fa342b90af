"""From commits to rows: one projector for every engine.

A session is read from its watermark, commit by commit. Every byte is checked, and each event is turned into rows
(event_rows.py).

**Surgery.** Erasing and pruning rewrite stored events before the watermark. The event that records it makes the
projector read the session again. After an erasure it reads the whole fork tree again, because deleted sessions that
share the events have no such event, nor have forks made at the same moment. Then the removed text is scrubbed from the
files (index.py).

**Forks** have rows for their own events only. A table beside them (wl_lineage) says who has the rest of their history,
and what was in view at the fork point.

**Deletion.** A deleted session has no rows, unless forks read through it. Then its rows stay hidden until the engine
has dropped its content with the last of those forks. The numbers that its tombstone has are kept apart.

**Damage.** A session that cannot be read beyond some event keeps its rows up to there, and `damaged` says so. Other
sessions are not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wakelog.codec.envelope import DELETED, NOT_AT_HAND
from wakelog.codec.records import decode_body
from wakelog.engine import Engine
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.index import view
from wakelog.index.connection import Connection
from wakelog.index.event_rows import PARTS, SessionProjection, encode_carried
from wakelog.index.event_texts import UNREADABLE
from wakelog.index.pruned_rows import keep_deleted
from wakelog.index.read_ahead import SESSIONS_AHEAD, ReadAheadEngine
from wakelog.index.rows import OPEN_END, Batch, ProjectionState, SessionRow
from wakelog.log.reader import Segment, fold_at, lineage
from wakelog.model.ids import Seq, SessionId, root_of
from wakelog.model.json_fields import as_text
from wakelog.model.records import GENESIS, ForkPoint, Head
from wakelog.model.values import as_int

EXPECTED = 500
"""How many sessions' rows are read together."""

_TREE = "select s.id from wl_session s where s.root = ? and s.id <> ? order by s.no"


class Projector:
    """Brings sessions forward, inside one transaction of the index."""

    def __init__(
        self, engine: Engine | ReadAheadEngine, db: Connection, numbers: Callable[[], int] | None = None
    ) -> None:
        self.engine: Any = engine
        self.db = db
        self.batch = Batch(db, numbers)
        self.newest = 0
        """The time of the newest event that was projected."""

    def bring_all(self, todo: list[tuple[SessionId, Seq]]) -> None:
        """Projects sessions from the end of `todo`, and removes them from it, until the batch is full; then writes the
        batch. After this the transaction can be committed."""
        self.batch.expect(session for session, _ in todo[-EXPECTED:])
        while todo and not self.batch.is_full:
            if isinstance(self.engine, ReadAheadEngine):
                for session, upto in todo[: -1 - SESSIONS_AHEAD : -1]:
                    row = self.batch.load(session)
                    if row is None or row.head < upto:
                        self.engine.expect(session, row.head if row is not None else None)
            session, upto = todo[-1]
            row = self.batch.load(session) or self._begin(session)
            if row is not None and row.head < upto and not self._project(row, upto=upto):
                break  # the batch is full
            todo.pop()
        self.batch.flush()
        self.db.words.finish()

    def _project(self, row: SessionRow, *, whole: bool = False, is_new: bool = False, upto: Seq | None = None) -> bool:
        """Projects a session's commits from its watermark to the end or, unless `whole`, until the batch is full."""
        projection = SessionProjection(self.engine, self.batch, row)
        row.damaged = ""
        try:
            for commit in self.engine.read(row.id, after=row.head, payloads=True):
                if self.batch.is_full:
                    if not whole:
                        projection.save()
                        return False
                    self.batch.flush()
                    self.batch.events = self.batch.chars = 0
                if commit.first != row.head + 1 or commit.prev != row.hash:
                    # Either the content was dropped meanwhile, or the index does not match the log.
                    if commit.status == "deleted":
                        return self._drop(row)
                    if not is_new:
                        return self._start_again(row, whole=whole)
                    raise CorruptLogError(f"event {row.head + 1} of {row.id} is missing", kind="gap", seq=row.head + 1)
                if commit.last > row.born:
                    if "payload.erased" in commit.kinds:
                        self._start_tree_again(row)
                        return self._start_again(row, whole=whole)
                    if "range.pruned" in commit.kinds:
                        return self._start_again(row, whole=whole)
                elif upto is not None and commit.last > upto and "payload.erased" in commit.kinds:
                    # Erased after the feed was read: other sessions of the tree may have been read before.
                    self._start_tree_again(row)
                projection.project(commit)
                self.newest = max(self.newest, commit.at)
        except UNREADABLE as exc:
            row.damaged = exc.message
            if exc.kind in (NOT_AT_HAND, DELETED):
                head = self.engine.head(row.id)  # which is not encrypted
                row.status, row.turn, row.last_at = head.status, head.turn, head.at
        if row.status == "deleted":
            if not self._is_there(row):
                return self._drop(row)
            row.hidden = 1
            self._keep_deleted(row.id)
        projection.save()
        return True

    def _start_again(self, row: SessionRow, *, whole: bool) -> bool:
        """Projects a session again from its first event. It keeps its number, because its forks refer to it."""
        self.batch.remove(row)
        self._forget()
        new = self._begin(row.id, number=row.no)
        return new is None or self._project(new, whole=whole, is_new=True)

    def _start_tree_again(self, row: SessionRow) -> None:
        """Projects the other sessions of a fork tree again, each to its end: they may never get another commit."""
        self.batch.flush()
        self._forget()
        others: Any = self.db.execute(_TREE, (row.root, row.id)).fetchall()
        for (session,) in others:
            other = self.batch.load(session)
            if other is not None:
                self._start_again(other, whole=True)

    def _forget(self) -> None:
        if isinstance(self.engine, ReadAheadEngine):
            self.engine.forget()

    def _drop(self, row: SessionRow) -> bool:
        """Removes a session whose content is gone, and ancestors that only it still needed."""
        self.batch.remove(row)
        self._keep_deleted(row.id)
        parent = self.batch.load(row.parent) if row.parent else None
        if parent is not None and parent.hidden and not self._is_there(parent):
            self._drop(parent)
        return True

    def _keep_deleted(self, session: SessionId) -> None:
        """Keeps the totals in the tombstone of a session (pruned_rows.py)."""
        try:
            seq = self.engine.head(session).seq
            for commit in self.engine.read(session, after=seq - 1):
                keep_deleted(self.batch, session, decode_body(commit.records[-1].body))
        except UNREADABLE:
            return

    def _is_there(self, row: SessionRow) -> bool:
        """Whether the engine still has the session's own events: of a dropped session only the last is left."""
        return any(
            commit.first == row.first for commit in self.engine.read(row.id, after=row.first - 1, upto=row.first)
        )

    # A session seen for the first time

    def _begin(self, session: SessionId, *, number: int = 0) -> SessionRow | None:
        """The row of a session before its first event; None if there is nothing to project."""
        try:
            head = self.engine.head(session)
            segments = lineage(self.engine, session, own=head)
            row = _new_row(head, number)
            if head.status == "deleted" and not self._is_there(row):
                self._keep_deleted(session)
                return None
        except NotFoundError:
            return None
        except UNREADABLE as exc:
            # Its start is not known. The row says why, and is made again once the head can be read.
            head = Head(session, 0, GENESIS, 0, 0, "", 0, "")
            segments, row = [Segment(session, 1, None)], _new_row(head, number)
            row.damaged = exc.message
        parent = self._ancestor(head.fork.parent) if head.fork else None
        row.no = number or self.batch.next_number()
        carried = self._forked(row, segments, head.fork, parent) if head.fork else self._opened(row)
        row.carried = encode_carried(carried)
        self.batch.save(row)
        self._keep_lineage(row, segments)
        return None if row.damaged else row

    def _opened(self, row: SessionRow) -> ProjectionState:
        self.batch.show(row.no, [(1, OPEN_END)])
        return ProjectionState()

    def _forked(
        self, row: SessionRow, segments: list[Segment], fork: ForkPoint, parent: SessionRow | None
    ) -> ProjectionState:
        """The state and the view at the fork point."""
        carried, ranges = ProjectionState(), [(1, fork.at)]
        try:
            row.agent, row.spawner = self._origin(segments)
            doc = fold_at(self.engine, segments, fork.at).fold.doc
            carried.doc = {part: doc[part] for part in PARTS if part in doc}
            carried.spent_before = dict(doc["budget"]["spent"])
            # The parent's view is only useful if the parent was projected up to the fork point.
            now = self.batch.view(parent.no) if parent and parent.head >= fork.at else []
            under = as_int(doc["view"]["rewound"])
            ranges = view.view_at(self.batch, self.engine, segments, parent.no if parent else 0, now, fork.at, under)
        except UNREADABLE as exc:
            carried.damage = exc.message
        self.batch.show(row.no, [*ranges[:-1], (ranges[-1][0], OPEN_END)])
        return carried

    def _origin(self, segments: list[Segment]) -> tuple[str, str]:
        """Agent and spawner, which only the first event of the whole tree has."""
        for commit in self.engine.read(segments[0].session, upto=1):
            opened = decode_body(commit.records[0].body)
            return as_text(opened.get("agent")), as_text(opened.get("spawner"))
        return "", ""

    def _ancestor(self, session: SessionId) -> SessionRow | None:
        """The row of a fork's parent, made if necessary: a feed may list a fork before its parent."""
        row = self.batch.load(session)
        if row is None:
            new = self._begin(session)
            if new is not None:
                self._project(new, upto=1)
            row = self.batch.load(session)
        return row

    def _keep_lineage(self, row: SessionRow, segments: list[Segment]) -> None:
        for segment in segments:
            holder = row if segment.session == row.id else self.batch.load(segment.session)
            if holder is not None:
                last = OPEN_END if segment.last is None else segment.last
                self.batch.added["wl_lineage"].append((row.no, segment.first, last, holder.no))


def _new_row(head: Head, number: int) -> SessionRow:
    fork = head.fork
    return SessionRow(
        number,
        head.session,
        head.name,
        root_of(head.session),
        fork.parent if fork else None,
        fork.at if fork else None,
        head=fork.at if fork else 0,
        hash=fork.hash if fork else GENESIS,
        born=head.seq,
        worded=fork.at if fork else 0,
    )
