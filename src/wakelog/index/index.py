"""The index: tables made from the log, where questions are cheap.

One projector (projector.py) fills it from the engine's feed of changes. It has nothing that is not in the log, so
deleting the file loses nothing. Every question first lets it catch up, so answers are never stale. If there is nothing
new, that costs one look at the feed.

**Catching up.** The feed is read from the cursor to its end. That names the sessions with new commits. Each is brought
up to date from its own watermark, in batches of one transaction; then the cursor is moved. A process that dies in
between loses at most one batch. Several processes may do this at once. Each batch is made under the write lock; a
process that finds a moved cursor starts again and skips what is already projected.

**Words** of a file are indexed by the first search (word_backlog.py): other questions do not wait for them.

**The same log?** A log file may have been restored from a backup. When the index is opened, it looks for the newest
commit it has read. If the log does not have that commit, the index is rebuilt.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from wakelog.engine import Engine, FeedChange
from wakelog.errors import CorruptLogError, NotFoundError, UnavailableError
from wakelog.index.connection import Connection, Damaged, IndexPlace, ProjectionConflict
from wakelog.index.database import Database
from wakelog.index.questions import Queries
from wakelog.index.results import AsOf, Table
from wakelog.index.statements import IndexMoment
from wakelog.model.ids import Seq, SessionId, root_of
from wakelog.model.records import Head

if TYPE_CHECKING:
    # Loaded when there is news: most commands find none.
    from wakelog.index.projector import Projector

A = TypeVar("A")
Progress = Callable[[int, int], None]
"""Called with how many sessions are done, and how many there are."""

FEED_PAGE = 1000
TRIES = 5
"""How often a search adds missing words while other processes project more events."""
LONG_BACKLOG = 10_000
"""After words for this many events, and for at least half of all, the words are merged into one segment."""

_MOMENT = """
select m.cursor, m.at, (select count(*) from wl_session s where s.damaged <> '' and s.damaged > ''), m.made,
    case when m.removed > m.clean then 1 else 0 end
from wl_meta m
"""
_EVENTS = "select sum(s.events) from wl_session s"
_LACKS = "select 1 from wl_session s where s.worded < s.head{0} limit 1"
_OF_TREE = " and s.root = :root"
_KNOWN = "select m.session, m.seq, m.hash from wl_meta m"
# Every writer updates this one row first, so that there is one writer at a time in all processes. No row: another
# process moved the cursor meanwhile, or rebuilt the index.
_BEGIN = "update wl_meta set one = 1 where one = 1 and made = ? and cursor = ? returning one"
_NEWEST = "update wl_meta set at = case when at < ? then ? else at end{0} where one = 1"
_MOVE = _NEWEST.format(", cursor = ?, session = ?, seq = ?, hash = ?")


class Index(Queries):
    """The index of one engine: in the file at `path`, in memory, or at another `place`. Threads may share it. Close it
    when done."""

    def __init__(self, engine: Engine, path: Path | None, place: IndexPlace | None = None) -> None:
        self.engine = engine
        self._database: IndexPlace = Database(path) if place is None else place
        self._is_known = False
        self._has_words_later = isinstance(self._database, Database)

    @property
    def path(self) -> Path | None:
        """Its file; None if it is in memory, because no file was wanted or none could be written."""
        return self._database.path

    def catch_up(self, progress: Progress | None = None) -> AsOf:
        """Projects everything that was stored before this call."""
        once = RebuildOnce(self._database)
        while True:
            with once:
                return self._catch_up(progress)

    def catch_up_words(self, session: str | None = None, progress: Progress | None = None) -> None:
        """Also adds the words for searches: all, or those of a session's fork tree. `progress` counts events. A search
        does the same; this is for callers who show progress, or have time now. On a server words come with the rows."""
        once = RebuildOnce(self._database)
        is_done = not self._has_words_later
        while not is_done:
            with once:
                self._catch_up()
                self._add_words(root_of(SessionId(session)) if session else "", progress)
                is_done = True

    def peek(self) -> Sequence[FeedChange]:
        """The first page of changes that are not projected yet."""
        once = RebuildOnce(self._database)
        while True:
            with once:
                return self.engine.changes(self._now().as_of.cursor, FEED_PAGE)

    def rebuild(self) -> AsOf:
        """Rebuilds the index from the log."""
        self._database.reset()
        return self.catch_up()

    def ask(self, question: Callable[[IndexMoment], A]) -> A:
        words = getattr(question, "words_of", None)
        once = RebuildOnce(self._database)
        tries = 0
        while True:
            with once:
                if tries:
                    self._catch_up()
                    self._add_words(words)
                with self._database.reading() as db:
                    now = self._moment(db)
                    is_there = tries or (
                        self._is_known and now.is_clean and not self.engine.changes(now.as_of.cursor, 1)
                    )
                    if is_there and (tries >= TRIES or not self._lacks_words(db, words)):
                        return question(IndexMoment(db, now.as_of, self.engine))
                tries += 1

    def reading(self) -> AbstractContextManager[Connection]:
        """A read transaction on the index as it is, without catching up."""
        return self._database.reading()

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction for rows that the projector does not write (finding_rows.py)."""
        return self._database.writing()

    def query_sql(
        self,
        statement: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        max_rows: int = 1000,
        timeout_s: float = 2.0,
    ) -> Table:
        """Runs a read-only SELECT over the documented views: docs/reference/views.md."""
        from wakelog.index import sql

        assert isinstance(self._database, Database)
        once = RebuildOnce(self._database)
        while True:
            with once:
                return sql.run(self._database, self._catch_up(), statement, params, max_rows, timeout_s)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Catching up

    def _catch_up(self, progress: Progress | None = None) -> AsOf:
        self.check_same_log()
        while True:
            moment = self._now()
            news, end = self._news(moment.as_of.cursor)
            if end is not None:
                try:
                    if not self._project(moment, news, end, progress):
                        continue
                except ProjectionConflict:
                    continue
                moment = self._now()
            if not moment.is_clean:
                self._database.scrub()
            return moment.as_of

    def _moment(self, db: Connection) -> ReadProgress:
        return read_progress(db)

    def _now(self) -> ReadProgress:
        with self._database.reading() as db:
            return self._moment(db)

    def check_same_log(self) -> None:
        """Checks, once, that the index belongs to this log; otherwise resets it."""
        if self._is_known:
            return
        with self._database.reading() as db:
            row: Any = db.execute(_KNOWN).fetchone()
        if row is None:
            raise Damaged("wl_meta is empty")
        session, seq, hash_ = row
        if session and not self._is_stored(session, seq, hash_):
            self._database.reset()
        self._is_known = True

    def _is_stored(self, session: SessionId, seq: Seq, hash_: bytes) -> bool:
        try:
            head = self.engine.head(session)
            if head.seq == seq or head.status == "deleted":
                return head.seq >= seq if head.status == "deleted" else head.hash == hash_
            return any(c.last == seq and c.hash == hash_ for c in self.engine.read(session, after=seq - 1, upto=seq))
        except NotFoundError:
            return False
        except CorruptLogError:
            return True  # it is there; damage is reported elsewhere

    def _news(self, cursor: str) -> tuple[dict[SessionId, Seq], FeedChange | None]:
        """The sessions with new commits since `cursor`, in feed order, and the newest change."""
        news: dict[SessionId, Seq] = {}
        end: FeedChange | None = None
        while True:
            page = self.engine.changes(cursor, FEED_PAGE)
            for change in page:
                news[change.session] = max(change.seq, news.get(change.session, 0))
            if page:
                end = page[-1]
                cursor = end.cursor
            # A page that is not full ends at the present. Later changes are left for the next catch-up.
            if len(page) < FEED_PAGE:
                return news, end

    def _project(
        self, since: ReadProgress, news: dict[SessionId, Seq], end: FeedChange, progress: Progress | None
    ) -> bool:
        """Projects all sessions with new commits; False if another process did so, or rebuilt the index."""
        from wakelog.index.projector import Projector
        from wakelog.index.read_ahead import reading_ahead

        todo = list(news.items())[::-1]
        total = len(todo)
        with reading_ahead(self.engine, total) as engine:
            while todo:
                with self._database.writing() as db:
                    if not db.execute(_BEGIN, (since.made, since.as_of.cursor)).fetchall():
                        return False
                    projector = Projector(engine, db)
                    projector.bring_all(todo)
                    newest = projector.newest, projector.newest
                    if todo:
                        db.execute(_NEWEST.format(""), newest)
                    else:
                        db.execute(_MOVE, (*newest, end.cursor, *self._mark(projector, end)))
                if progress is not None:
                    progress(total - len(todo), total)
        return True

    def _mark(self, projector: Projector, end: FeedChange) -> tuple[SessionId, Seq, bytes]:
        """A recent stored position, by which the log is recognised later."""
        row = projector.batch.load(end.session)
        if row is not None and row.head >= row.first:
            return row.id, row.head, row.hash
        try:
            head = self.engine.head(end.session)
            return head.session, head.seq, head.hash
        except CorruptLogError:
            known: Any = projector.db.execute(_KNOWN).fetchone()
            return known[0], known[1], known[2]

    # Words

    def _lacks_words(self, db: Connection, root: str | None) -> bool:
        if root is None or not self._has_words_later:
            return False
        return db.execute(_LACKS.format(_OF_TREE if root else ""), {"root": root}).get is not None

    def _add_words(self, root: str | None, progress: Progress | None = None) -> None:
        """Adds missing words: of one fork tree, of all sessions if `root` is empty, or none (None)."""
        with self._database.reading() as db:
            if not self._lacks_words(db, root):
                return
        from wakelog.index.word_backlog import WordBacklog

        backlog = WordBacklog(self.engine, root or "")
        while not backlog.is_done:
            with self._database.writing() as db:
                backlog.add_some(db)
            if progress is not None:
                progress(backlog.done, backlog.done + backlog.left)
        if backlog.done >= LONG_BACKLOG:
            with self._database.reading() as db:
                is_most = 2 * backlog.done >= db.execute(_EVENTS).get
            if is_most and isinstance(self._database, Database):
                self._database.merge_words()

    # Scrubbing

    def scrub(self) -> None:
        """Projects erasures, prunes and deletions, and removes their bytes from the index's files. Call it after such
        an operation. UnavailableError if another process is reading the old bytes."""
        self.catch_up()
        if not self._now().is_clean:
            raise UnavailableError(
                f"the removed content is gone from the index, but other readers keep old bytes in"
                f" {self._database.place}-wal",
                kind="scrub-pending",
                hint="ask again when they have finished",
            )


class RebuildOnce:
    """Rebuilds an index that turns out to be damaged, so that the work is done again; an error the second time. Used as
    `while True: with once: return …`."""

    def __init__(self, database: IndexPlace) -> None:
        self._database = database
        self._is_rebuilt = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> bool:
        if not isinstance(exc, Damaged):
            return False
        if self._is_rebuilt:
            raise UnavailableError(
                f"{self._database.place} is damaged again right after it was rebuilt: {exc}",
                kind="index-damaged",
                hint="check the disk it is on; the log is not affected",
            ) from exc
        self._database.reset()
        self._is_rebuilt = True
        return True


class ReadProgress(msgspec.Struct, frozen=True):
    """How far the index has read, which index it is, and whether its files are free of removed content."""

    as_of: AsOf
    made: bytes
    is_clean: bool


def read_progress(db: Connection) -> ReadProgress:
    row: Any = db.execute(_MOMENT).fetchone()
    if row is None:
        raise Damaged("wl_meta is empty")
    cursor, at, damaged, made, is_dirty = row
    return ReadProgress(AsOf(cursor, at, damaged), made, not is_dirty)


FAR_BEHIND = 100
"""With more sessions than this in the first page of changes, a list should not wait for the catch-up."""


def is_far_behind(index: Index) -> bool:
    """Whether catching up with the local index takes a while. Costs a page of the feed."""
    if type(index) is not Index:
        return False  # a server's index is kept up to date
    page = index.peek()
    return len(page) >= FEED_PAGE and len({change.session for change in page}) > FAR_BEHIND


def newest_index(engine: Engine, heads: Iterable[Head], most: int) -> Index:
    """An index in memory of the `most` sessions written last: a first page that does not wait for the index of a large
    store. The same projector makes the same rows, so it answers as the full index would. Close it when done."""
    chosen = heapq.nlargest(most, heads, key=lambda head: (head.at, head.session))
    few: Any = _Few(engine, chosen)
    return Index(few, None)


class _Few:
    """An engine whose feed tells of some sessions only."""

    def __init__(self, engine: Engine, heads: Sequence[Head]) -> None:
        self._engine = engine
        self._heads = heads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        begin = int(cursor) if cursor else 0
        some = self._heads[begin : begin + limit]
        return [FeedChange(session=h.session, seq=h.seq, cursor=str(begin + n)) for n, h in enumerate(some, 1)]
