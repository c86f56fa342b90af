"""An archive that is kept up to date: round after round, each adds what is new.

The first round looks at every session, the others only at those that the engine's feed names since, and at those that
are left from before: they could not be read, or their bundle was not due. A round that fails changes nothing here, so
the next one has it to do again.
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
    """A store's archive in Parquet, and how far it is in the feed. One process for a place is enough: of two whose
    rounds overlap one adds nothing, raises ConflictError, and has the rest to do with its next round."""

    def __init__(self, store: Store, place: str, *, quiet_us: int | None = None, decrypt: bool = False) -> None:
        """As for `archive_parquet`."""
        self._store, self._place, self._quiet_us, self._decrypt = store, place, quiet_us, decrypt
        self._known: list[ArchiveRun] = []
        self._cursor: str | None = None
        self._left: set[SessionId] = set()

    def round(self, progress: Progress | None = None) -> ArchiveResult:
        """Adds what is new since the last round; what came of it."""
        cursor, moved = self._news()
        if moved is not None and not moved:
            self._cursor = cursor
            return ArchiveResult("", 0, 0, {})
        done = archive_parquet(
            self._store,
            self._place,
            sorted(moved or ()),
            progress,
            decrypt=self._decrypt,
            quiet_us=self._quiet_us,
            known=self._known,
        )
        self._cursor = cursor
        self._left = {*done.problems, *self._without_bundle(moved)}
        return done

    def _news(self) -> tuple[str, set[SessionId] | None]:
        """Where the feed is now, and which sessions to look at; None for all."""
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
        looked_at = entries.values() if moved is None else [entries[id] for id in moved if id in entries]
        return {each.session for each in looked_at if each.bundle != bundle_key(each.session, each.seq, each.hash)}
