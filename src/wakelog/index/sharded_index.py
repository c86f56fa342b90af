"""The index of a store with many shards, in a PostgreSQL database beside the log: filled by projectors, asked by all.

Each shard has its own feed. A fork tree lives in one shard, and its rows are written by one process at a time. So
several processes can write the index at once, each its own shards (shard_book.py). A process that reads beyond the
watermark of a session, or a page of the feed twice, skips what is already projected: every event is projected once.

**Asking.** An answer is about one moment, and `as_of` says which. First the index catches up: the asking process
projects the shards that no projector holds, and waits for the others, but no longer than `ANSWER_S`. So while
projectors are at work an answer may be behind the log, but is never slow because of them.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from wakelog.engine import Engine, FeedChange
from wakelog.errors import UnavailableError
from wakelog.index import shard_book
from wakelog.index.connection import Connection, ProjectionConflict
from wakelog.index.index import FEED_PAGE, Progress, ReadProgress, RebuildOnce, read_progress
from wakelog.index.projector import Projector
from wakelog.index.read_ahead import reading_ahead
from wakelog.index.results import AsOf
from wakelog.index.shard_book import ShardedDatabase, ShardRow
from wakelog.index.shared_index import SharedConnection, SharedIndex
from wakelog.model.shards import ShardChange

ANSWER_S = 1.0
"""How long a question waits for projectors."""
PATIENCE_S = 60.0
"""How long `catch_up` waits for projectors."""
_LOOK_S = 0.02


class ShardedIndex(SharedIndex):
    """The index of a namespace, in the database that its engine names."""

    def __init__(self, engine: Engine, path: Path | None) -> None:
        where, feeds = engine.abilities.index, engine.abilities.shard_feeds
        assert where is not None
        assert feeds is not None
        self._sharded = ShardedDatabase(where.url, where.key)
        super().__init__(engine, path, self._sharded)
        self._feeds = feeds
        self.owner = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(3).hex()}"
        self._numbers: Iterator[int] = iter(())
        self._number_lock = threading.Lock()

    # Asking

    def _moment(self, db: Connection) -> ReadProgress:
        assert isinstance(db, SharedConnection)
        known, rows = read_progress(db), shard_book.rows(db)
        cursor = self._feeds.cursor_at({row.shard: row.place for row in rows.values()})
        at = max((row.at for row in rows.values()), default=0)
        return msgspec.structs.replace(known, as_of=AsOf(cursor, at, known.as_of.damaged))

    def catch_up(self, progress: Progress | None = None) -> AsOf:
        """Projects everything that was stored before this call, or waits for projectors to do it. UnavailableError if
        that takes longer than a minute."""
        once = RebuildOnce(self._database)
        while True:
            with once:
                if self._bring_all(PATIENCE_S, progress):
                    return self._settled()
                raise UnavailableError(
                    "the projectors of this store are behind by more than a minute",
                    kind="index-behind",
                    hint="start more of them: wakelog project",
                )

    def _catch_up(self, progress: Progress | None = None) -> AsOf:
        self._bring_all(ANSWER_S, progress)
        return self._settled()

    def _settled(self) -> AsOf:
        moment = self._now()
        if not moment.is_clean:
            self._database.scrub()
        return moment.as_of

    def check_same_log(self) -> None:
        if self._is_known:
            return
        with self._sharded.reading() as db:
            marks = list(shard_book.rows(db).values())
        if any(row.session and not self._is_stored(row.session, row.seq, row.hash) for row in marks):
            self._database.reset()
        self._is_known = True

    def _bring_all(self, patience_s: float, progress: Progress | None) -> bool:
        """Projects every shard to its present end; False if other processes hold some that are still behind."""
        deadline = time.monotonic() + patience_s
        todo = {shard: end for shard, end in enumerate(self._feeds.ends()) if not self._is_there(shard, end)}
        behind = len(todo)
        while todo:
            for shard, end in list(todo.items()):
                if self._is_there(shard, end) or self.bring(shard, end):
                    del todo[shard]
                    if progress is not None:
                        progress(behind - len(todo), behind)
            if todo:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_LOOK_S)
        return True

    def _is_there(self, shard: int, end: int) -> bool:
        with self._sharded.reading() as db:
            row = shard_book.rows(db).get(shard)
        place = row.place if row is not None else 0
        return place >= end or not self._feeds.shard_changes(shard, place, 1)

    # Projecting

    def bring(self, shard: int, end: int) -> bool:
        """Projects a shard up to a position, and releases it; False if another process has it."""
        try:
            while True:
                row = self.take(shard)
                if row is None:
                    return False
                if row.place >= end or not self.project(row):
                    return True
        finally:
            self.give_back([shard])

    def take(self, shard: int) -> ShardRow | None:
        """Takes a shard, or renews the lease on it; None if another process has it."""
        self.check_same_log()
        with self._sharded.separate_transaction() as db:
            return shard_book.take(db, shard, self.owner)

    def give_back(self, shards: Sequence[int]) -> None:
        with self._sharded.separate_transaction() as db:
            shard_book.give_back(db, shards, self.owner)

    def project(self, row: ShardRow) -> int:
        """Projects the next page of a shard that was taken; returns how many changes were in it, including those that
        another process projected meanwhile."""
        page = self._feeds.shard_changes(row.shard, row.place, FEED_PAGE)
        if page:
            with reading_ahead(self.engine, len({change.session for change in page})) as engine:
                self._project_page(engine, row, page)
        return len(page)

    def _project_page(self, engine: Any, row: ShardRow, page: Sequence[ShardChange]) -> None:
        news = {change.session: change.seq for change in page}
        todo = list(news.items())[::-1]
        while todo:
            try:
                with self._sharded.writing() as db:
                    if not shard_book.begin(db, row):
                        return
                    projector = Projector(engine, db, self._number)
                    projector.bring_all(todo)
                    if todo:
                        shard_book.note_newest(db, row, projector.newest)
                    else:
                        end = page[-1]
                        mark = self._mark(projector, FeedChange(end.session, end.seq, ""))
                        shard_book.move(db, row, projector.newest, end.place, mark)
            except ProjectionConflict:
                return

    def _number(self) -> int:
        """A number for a new session. Numbers of a failed transaction are not used again."""
        with self._number_lock:
            for number in self._numbers:
                return number
            with self._sharded.separate_transaction() as db:
                self._numbers = iter(shard_book.next_numbers(db))
            return next(self._numbers)

    # Projectors

    def beat(self) -> list[str]:
        """Records that this process is a projector; returns the names of all projectors."""
        with self._sharded.separate_transaction() as db:
            return shard_book.beat(db, self.owner)

    def leave(self) -> None:
        """Releases all shards to the other projectors."""
        with self._sharded.separate_transaction() as db:
            shard_book.give_back(db, shard_book.rows(db), self.owner)
            shard_book.leave(db, self.owner)

    def shard_rows(self) -> dict[int, ShardRow]:
        """How far each shard was projected, and by whom."""
        with self._sharded.reading() as db:
            return shard_book.rows(db)

    def projectors(self) -> list[str]:
        """The running projectors."""
        with self._sharded.reading() as db:
            return shard_book.live(db)
