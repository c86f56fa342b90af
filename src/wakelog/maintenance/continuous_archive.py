"""Keeps an archive up to date in rounds; each round adds what is new.

The first round checks every session. Later rounds check the sessions that the engine's feed names, and those left over:
they could not be read, or their bundle was not due yet. If a round fails, the next one does its work again.
"""

from __future__ import annotations

from wakelog.engine import end_of
from wakelog.maintenance.archive import ArchiveResult, Progress, bundle_key
from wakelog.maintenance.parquet_archive import archive_parquet
from wakelog.maintenance.parquet_runs import ArchiveRun, archived_sessions
from wakelog.model.ids import SessionId
from wakelog.store import Store

PAGE = 1000


class ContinuousArchive:
    """A store's Parquet archive, and its position in the feed. Run one process for each place: if the rounds of two
    overlap, one raises ConflictError, adds nothing, and tries again in its next round."""

    def __init__(self, store: Store, place: str, *, quiet_us: int | None = None, decrypt: bool = False) -> None:
        """The arguments are those of `archive_parquet`."""
        self._store, self._place, self._quiet_us, self._decrypt = store, place, quiet_us, decrypt
        self._known: list[ArchiveRun] = []
        self._cursor: str | None = None
        self._left: set[SessionId] = set()

    def round(self, progress: Progress | None = None) -> ArchiveResult:
        """Adds what is new since the last round."""
        cursor, moved = self._news()
        if moved is not None and not moved:
            self._cursor = cursor
            return ArchiveResult("", 0, 0, {})
        result = archive_parquet(
            self._store,
            self._place,
            sorted(moved or ()),
            progress,
            decrypt=self._decrypt,
            quiet_us=self._quiet_us,
            known=self._known,
        )
        self._cursor = cursor
        self._left = {*result.problems, *self._without_bundle(moved)}
        return result

    def _news(self) -> tuple[str, set[SessionId] | None]:
        """Returns the feed's position, and the sessions to check; None means all."""
        if self._cursor is None:
            return end_of(self._store.engine), None  # before the sessions are listed
        cursor, moved = self._cursor, set(self._left)
        while changes := self._store.engine.changes(cursor, PAGE):
            moved.update(change.session for change in changes)
            cursor = changes[-1].cursor
        return cursor, moved

    def _without_bundle(self, moved: set[SessionId] | None) -> set[SessionId]:
        if self._quiet_us is None:
            return set()
        entries = archived_sessions(self._known)
        checked = entries.values() if moved is None else [entries[id] for id in moved if id in entries]
        return {e.session for e in checked if e.bundle != bundle_key(e.session, e.seq, e.hash)}
